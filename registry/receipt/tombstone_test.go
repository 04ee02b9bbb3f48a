package receipt_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry/receipt"
)

// TestTombstone: what was signed is read back, and every change is found.
func TestTombstone(t *testing.T) {
	t.Parallel()
	key, err := receipt.ParseKey(receipt.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	want := receipt.Tombstone{
		Object: "ark:/99999/x", Owner: "ark:/99999/o", LocalIDs: []string{`a"b`, "c"}, Collection: "maps", Reason: "rights\nwithdrawn", AskedBy: "ann",
		AskedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), ApprovedBy: "ben", ApprovedAt: time.Date(2026, 2, 2, 3, 4, 5, 0, time.UTC), Item: "i",
		Last: receipt.Remains{Version: 2, Inventory: "sha256:aa", Files: "sha256:bb"}, LastEvent: 7, LastHash: receipt.Zero,
	}
	text := key.SignTombstone(want)
	if again := key.SignTombstone(want); string(again) != string(text) {
		t.Errorf("another text:\n%s\n%s", text, again)
	}
	got, trusted, err := receipt.ReadTombstone(text, []receipt.PublicKey{key.Public()})
	signed := want
	signed.Key, signed.PublicKey = key.Public().ID(), key.Public().String()
	if diff := cmp.Diff(signed, got); diff != "" || !trusted || err != nil {
		t.Errorf("trusted %t, %v (-want +got):\n%s", trusted, err, diff)
	}
	if _, trusted, err := receipt.ReadTombstone(text, nil); trusted || err != nil {
		t.Errorf("without a key: trusted %t, %v", trusted, err)
	}
	var none *receipt.Key
	got, trusted, err = receipt.ReadTombstone(none.SignTombstone(want), nil)
	if diff := cmp.Diff(want, got); diff != "" || trusted || err != nil {
		t.Errorf("unsigned: trusted %t, %v (-want +got):\n%s", trusted, err, diff)
	}
	for what, changed := range map[string]string{
		"another reason":       strings.Replace(string(text), "withdrawn", "with drawn", 1),
		"a space":              strings.Replace(string(text), `,"owner"`, `, "owner"`, 1),
		"a name twice":         strings.Replace(string(text), `,"owner"`, `,"owner":"","owner"`, 1),
		"a line more":          string(text) + "{}\n",
		"no signature":         string(text[:strings.Index(string(text), "\n")+1]),
		"cut off":              string(text[:40]),
		"another key's name":   strings.Replace(string(text), signed.Key[:8], "00000000", 1),
		"a newer format":       strings.Replace(string(text), `{"holdfast_tombstone":1`, `{"holdfast_tombstone":2`, 1),
		"nothing":              "",
		"something else":       "{}",
		"an object without it": strings.Replace(string(text), want.Object, "", 1),
	} {
		if _, _, err := receipt.ReadTombstone([]byte(changed), []receipt.PublicKey{key.Public()}); !errors.Is(err, receipt.ErrTombstone) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const earlier = `{
  "object_id": "ark:/99999/x",
  "reason": "rights",
  "asked_by": "ann",
  "asked_at": "2026-01-02T03:04:05Z",
  "approved_by": "ben",
  "approved_at": "2026-01-02T03:04:06Z",
  "item_id": "i",
  "last": {
    "version": 2,
    "inventory": "sha256:aa"
  }
}
`
	got, trusted, err = receipt.ReadTombstone([]byte(earlier), []receipt.PublicKey{key.Public()})
	if err != nil || trusted || got.Object != want.Object || got.Last.Version != 2 || got.ApprovedBy != "ben" || got.Key != "" {
		t.Errorf("an earlier one: trusted %t, %v, %+v", trusted, err, got)
	}
}
