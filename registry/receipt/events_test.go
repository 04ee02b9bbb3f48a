package receipt_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry/receipt"
)

// segment is a text of two events, signed by a key or, with nil, by nobody.
func segment(k *receipt.Key) []byte {
	span, body := receipt.Span{First: 4, Count: 2, Before: strings.Repeat("0f", 32)}, bytes.Buffer{}
	span.After = span.Before
	for i := range 2 {
		e := receipt.Event{
			Seq: int64(4 + i), Object: "ark:/99999/fk4x", ID: fmt.Sprint("id", i), Type: "fixity check",
			At: time.Date(2026, 8, 1, 14, 30, i, 5000, time.UTC), Agent: "Holdfast 1.0", Outcome: "success", Detail: "a \"detail\"",
		}
		span.After = e.Hash(span.After)
		body.Write(e.Line(span.After))
	}
	return append(k.SignEvents(receipt.EventsHeader{Object: "ark:/99999/fk4x", Events: span}), body.Bytes()...)
}

// TestEvents_Golden: the format must not change.
func TestEvents_Golden(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "events.jsonl")
	if *update {
		if err := os.WriteFile(path, segment(key(t, keyText)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(segment(key(t, keyText)))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func verifyEvents(t testing.TB, text []byte, o receipt.Options) *receipt.Result {
	t.Helper()
	r, err := receipt.VerifyEvents(bytes.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerifyEvents(t *testing.T) {
	t.Parallel()
	text, trusted := segment(key(t, keyText)), []receipt.PublicKey{key(t, keyText).Public()}
	var seqs []int64
	o := receipt.Options{Keys: trusted, Event: func(e receipt.Event, _ string) error { seqs = append(seqs, e.Seq); return nil }}
	if r := verifyEvents(t, text, o); !r.Valid() || !r.Trusted || r.Events != 2 || r.Header.Object != "ark:/99999/fk4x" || r.Header.Events.Last() != 5 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]int64{4, 5}, seqs); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if r := verifyEvents(t, text, receipt.Options{Keys: []receipt.PublicKey{key(t, otherText).Public()}}); r.Valid() || r.Trusted {
		t.Errorf("with another key: %+v", r)
	}
	if r := verifyEvents(t, segment(nil), receipt.Options{}); !r.Valid() || r.Signed || r.Events != 2 {
		t.Errorf("not signed: %+v", r)
	}
	if r := verifyEvents(t, segment(nil), receipt.Options{Keys: trusted}); r.Valid() || r.Trusted {
		t.Errorf("not signed, with a key: %+v", r)
	}
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		seqs = nil
		if verifyEvents(t, changed, o).Valid() {
			t.Errorf("byte %d, %q, may be %q", i, text[i], changed[i])
		}
	}
	for name, text := range map[string]string{
		"a receipt": string(sample(t)), "nothing": "", "more": string(text) + string(text), "a newer one": strings.Replace(string(text), `events":1`, `events":2`, 1),
		"cut off": string(text[:len(text)-1]), "endless": strings.SplitAfter(string(text), "\n")[0] + strings.Repeat("x", 2<<20),
	} {
		if r := verifyEvents(t, []byte(text), receipt.Options{}); r.Valid() {
			t.Errorf("%s was taken for events", name)
		}
	}
}

// TestDocs_Events: the commands in docs/evidence.md work as written.
func TestDocs_Events(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "openssl", "sha256sum", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here; it is needed to run what docs/evidence.md shows", tool)
		}
	}
	doc, err := os.ReadFile("../../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(doc), "```sh\n")
	script, _, ok := strings.Cut(script, "```")
	if !ok {
		t.Fatal("docs/evidence.md has no script")
	}
	text := string(segment(key(t, keyText)))
	for name, tt := range map[string]struct {
		text  string
		valid bool
	}{
		"as it is": {text, true}, "another object": {strings.Replace(text, "fk4x", "fk4y", 1), false}, "another event": {strings.Replace(text, "id1", "id2", 1), false},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"segment.jsonl": tt.text, "key.pem": key(t, keyText).Public().PEM()} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-e", "-c", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err == nil) != tt.valid {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// FuzzVerifyEvents: whatever comes in, VerifyEvents ends, and what it calls valid are exactly these
// events.
func FuzzVerifyEvents(f *testing.F) {
	f.Add(segment(key(f, keyText)))
	f.Add(segment(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		var again bytes.Buffer
		r := verifyEvents(t, text, receipt.Options{Event: func(e receipt.Event, hash string) error { again.Write(e.Line(hash)); return nil }})
		if (r.Total == 0) != (len(r.Faults) == 0) || r.Events > max(0, r.Header.Events.Count) || r.Files > 0 {
			t.Fatalf("%+v", r)
		}
		if r.Valid() && !bytes.HasSuffix(text, again.Bytes()) {
			t.Fatalf("the events read are not those that stand there: %q in %q", again.Bytes(), text)
		}
	})
}
