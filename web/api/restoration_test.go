package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/periodic/staging"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// restoring asks for an object and takes the item, as a worker does.
func (b *bench) restoring(t *testing.T, ark string) registry.Claim {
	t.Helper()
	_, err := b.store.RequestObject(t.Context(), registry.ObjectRequest{Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: "tester"})
	must(t, err)
	return b.claim(t, registry.Restore)
}

// restored makes a restore of an object, as a worker does, which comes to this text.
func (b *bench) restored(t *testing.T, ark, text string) registry.Restoration {
	t.Helper()
	c := b.restoring(t, ark)
	place := registry.RestoredKey(c.Lease, "bag.tar")
	_, err := storage.Put(t.Context(), b.staging, place, []byte(text))
	must(t, err)
	sum := sha256.Sum256([]byte(text))
	r, err := b.store.RecordRestoration(t.Context(), c.Lease, registry.RestorationRecord{
		RestoredParcel: registry.RestoredParcel{Name: "bag.tar", Place: place, SizeBytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), Files: 1},
		Keep:           time.Hour,
	})
	must(t, err)
	b.settle(t, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	return r
}

func TestRestore(t *testing.T) {
	b := newBench(t)
	const ark = "ark:/99999/mine"
	b.preserve(t, ark, map[string]string{"producer/a": "mine"})
	c := b.as(t, registry.RoleDepositor)
	first, err := c.Restore(t.Context(), ark, 0, "a fire", "key")
	must(t, err)
	if first.N != 1 || first.Version != 1 || first.Status != registry.RestoreWaiting || first.Reason != "a fire" || first.AskedBy == "" {
		t.Errorf("asked %+v", first)
	}
	for _, key := range []string{"key", ""} { // by its key, and because it is under way
		again, err := c.Restore(t.Context(), ark, 1, "a fire", key)
		must(t, err)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("with key %q (-want +got):\n%s", key, diff)
		}
	}
	if _, err := c.Restore(t.Context(), ark, 1, "another reason", "key"); !errors.Is(err, registry.ErrIdempotencyConflict) {
		t.Errorf("another request with the same key: %v", err)
	}
	for _, version := range []int{2, 99} {
		if _, err := c.Restore(t.Context(), ark, version, "", ""); !errors.Is(err, registry.ErrNotFound) || !strings.Contains(err.Error(), "newest is 1") {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if _, err := c.Restore(t.Context(), "ark:/99999/none", 0, "", ""); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("an unknown object: %v", err)
	}
	one, err := c.RestorationOf(t.Context(), first.ItemID)
	must(t, err)
	list, err := c.Restorations(t.Context(), ark, 0, 10)
	must(t, err)
	if diff := cmp.Diff([]registry.Restoration{one}, list); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if _, err := c.Restored(t.Context(), first, 0); err == nil || !strings.Contains(err.Error(), "not ready yet") {
		t.Errorf("fetched before it is there: %v", err)
	}
	if answer, text := b.send(t, http.MethodGet, "/api/v1/objects/ark:%2F99999%2Fmine/restores/7", "", "Authorization", "Bearer "+tokenText(registry.RoleViewer)); answer.StatusCode != http.StatusNotFound {
		t.Errorf("one that is not there: %d %s", answer.StatusCode, text)
	}
}

func TestRestore_Content(t *testing.T) {
	b := newBench(t)
	const ark, text = "ark:/99999/mine", "a bag in a tar"
	b.preserve(t, ark, map[string]string{"producer/a": "mine"})
	r := b.restored(t, ark, text)
	c := b.as(t, registry.RoleDepositor)
	for _, offset := range []int64{0, 6} {
		in, err := c.Restored(t.Context(), r, offset)
		must(t, err)
		got, err := io.ReadAll(in)
		if err != nil || string(got) != text[offset:] || in.Digests["sha256"] != r.SHA256 {
			t.Errorf("from %d: %q, %v, digests %v", offset, got, err, in.Digests)
		}
		must(t, in.Close())
	}
	path := "/api/v1/objects/ark:%2F99999%2Fmine/restores/1/content"
	who := []string{"Authorization", "Bearer " + tokenText(registry.RoleViewer)}
	whole, _ := b.send(t, http.MethodGet, path, "", who...)
	for name, want := range map[string]string{
		"Content-Type": "application/x-tar", "ETag": `"sha256:` + r.SHA256 + `"`, "Content-Length": "14", "Content-Disposition": "attachment; filename=bag.tar",
		"X-Holdfast-Digest": "sha256:" + r.SHA256, "Accept-Ranges": "bytes",
	} {
		if got := whole.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	part, got := b.send(t, http.MethodGet, path, "", append(who, "Range", "bytes=2-4", "If-Range", whole.Header.Get("ETag"))...)
	if part.StatusCode != http.StatusPartialContent || got != text[2:5] {
		t.Errorf("a part: %d %q", part.StatusCode, got)
	}
	same, _ := b.send(t, http.MethodGet, path, "", append(who, "If-None-Match", whole.Header.Get("ETag"))...)
	if same.StatusCode != http.StatusNotModified {
		t.Errorf("what is known already: %d", same.StatusCode)
	}
	for bad, want := range map[string]int{path + "?version=1": http.StatusUnprocessableEntity, strings.Replace(path, "/1/", "/x/", 1): http.StatusUnprocessableEntity, strings.Replace(path, "/1/", "/2/", 1): http.StatusNotFound} {
		if answer, text := b.send(t, http.MethodGet, bad, "", who...); answer.StatusCode != want {
			t.Errorf("%s: %d %s", bad, answer.StatusCode, text)
		}
	}
	must(t, b.staging.Delete(t.Context(), r.Place))
	if lost, text := b.send(t, http.MethodGet, path, "", who...); lost.StatusCode != http.StatusInternalServerError || !strings.Contains(text, "request another restore") {
		t.Errorf("what staging has lost: %d %s", lost.StatusCode, text)
	}
}

// TestRestore_OfADeletedObject checks that deleted objects cannot be restored, and that their
// restored files cannot be fetched.
func TestRestore_OfADeletedObject(t *testing.T) {
	b := newBench(t)
	const ark = "ark:/99999/mine"
	b.preserve(t, ark, map[string]string{"producer/a": "mine"})
	r := b.restored(t, ark, "text")
	_, err := b.store.AskDeletion(t.Context(), ark, "because", "one")
	must(t, err)
	_, err = b.store.ApproveDeletion(t.Context(), ark, "two")
	must(t, err)
	l := b.claim(t, registry.Delete).Lease
	_, err = b.store.LockObject(t.Context(), l, ark)
	must(t, err)
	_, err = b.store.MarkDeleting(t.Context(), l, ark, registry.Remains{Version: 1})
	must(t, err)
	c := b.as(t, registry.RoleDepositor)
	if _, err := c.Restore(t.Context(), ark, 0, "", ""); err == nil || !strings.Contains(err.Error(), "because") {
		t.Errorf("asked for: %v", err)
	}
	if _, err := c.Restored(t.Context(), r, 0); err == nil || !strings.Contains(err.Error(), "because") {
		t.Errorf("fetched: %v", err)
	}
	sweep(t, b)
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v", left)
	}
}

func sweep(t *testing.T, b *bench) {
	t.Helper()
	must(t, (&staging.Sweeper{Registry: b.store, Staging: b.staging, Log: slog.New(slog.DiscardHandler)}).Sweep(t.Context()))
}

// TestRestore_Swept checks that restored files that are needed or under way are kept, and others
// removed. An open download goes on.
func TestRestore_Swept(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"ready", "running", "given-up"} {
		b.mark = name
		b.preserve(t, "ark:/99999/"+name, map[string]string{"producer/a": name})
	}
	ready := b.restored(t, "ark:/99999/ready", "to be fetched")
	running := b.restoring(t, "ark:/99999/running")
	up := b.restoring(t, "ark:/99999/given-up")
	_, err := b.store.Command(t.Context(), registry.Command{ItemID: up.Item.ID, Act: registry.ActAbort, Actor: "admin", Confirmed: true})
	must(t, err)
	keep := []string{ready.Place, registry.RestoredKey(running.Lease, "bag.tar"), registry.RestoredKey(registry.Lease{ItemID: "unknown", N: 1}, "young.tar")}
	drop := []string{registry.RestoredKey(registry.Lease{ItemID: ready.ItemID, N: 99}, "bag.tar"), registry.RestoredKey(up.Lease, "bag.tar")}
	for _, key := range slices.Concat(keep[1:], drop) {
		_, err := storage.Put(t.Context(), b.staging, key, []byte("x"))
		must(t, err)
	}
	sweep(t, b)
	slices.Sort(keep)
	if diff := cmp.Diff(keep, b.staged(t)); diff != "" {
		t.Errorf("after the first sweep (-want +got):\n%s", diff)
	}
	in, err := b.as(t, registry.RoleDepositor).Restored(t.Context(), ready, 0)
	must(t, err)
	defer in.Close()
	b.pass(2 * time.Hour)
	sweep(t, b)
	if slices.Contains(b.staged(t), ready.Place) {
		t.Error("what can be fetched no more is still there")
	}
	if text, err := io.ReadAll(in); err != nil || string(text) != "to be fetched" {
		t.Errorf("whoever was reading got %q, %v", text, err)
	}
	if _, err := b.as(t, registry.RoleDepositor).Restored(t.Context(), ready, 0); err == nil || !strings.Contains(err.Error(), "was removed on") {
		t.Errorf("fetched when its time is over: %v", err)
	}
	got, err := b.store.RestorationOf(t.Context(), ready.ItemID)
	if err != nil || got.Status != registry.RestoreRemoved || got.SHA256 != ready.SHA256 {
		t.Errorf("its record is %+v, %v", got, err)
	}
}
