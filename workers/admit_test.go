package workers_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
)

// flatRig is a rig whose storage names folders by the last part of identifiers.
func flatRig(t *testing.T) *rig {
	t.Helper()
	return newRig(t, func(d *workers.Deps) {
		root, err := ocfl.OpenRoot(t.Context(), openDir(t, filepath.Join(t.TempDir(), "flat")), "", ocfl.NewFlatOmitPrefix("/"))
		must(t, err)
		d.Objects = roots(root)
	})
}

func (r *rig) named(ark, text string) string {
	r.t.Helper()
	name := strings.NewReplacer("/", "-", ":", "-").Replace(ark) + text
	return r.job(registry.Spec{Type: registry.FileType, Mode: registry.Add, URL: r.site.put(name, text), Filename: "f", SizeBytes: -1, PrimaryID: ark})
}

// notIntended checks that a failed job announced nothing and keeps nobody: it can be deleted, and a
// job of another's is not kept by its locks.
func (r *rig) notIntended(id string) {
	r.t.Helper()
	events, err := r.registry.Events(r.t.Context(), id, 0, 500)
	must(r.t, err)
	for _, e := range events {
		if e.Type == "intend" {
			r.t.Errorf("item %s announced a version: %s", id, e.Data)
		}
	}
	_, err = r.registry.Command(r.t.Context(), registry.Command{ItemID: id, Act: registry.ActDelete, Reason: "it cannot be", Actor: "admin", Confirmed: true})
	must(r.t, err)
}

// An object that its storage could never store is refused before its version is announced: nothing
// stays locked, and the object that has the folder is unaffected.
func TestR07_RefusedBeforeTheIntent(t *testing.T) {
	t.Parallel()
	t.Run("the folder is another object's", func(t *testing.T) {
		t.Parallel()
		r := flatRig(t)
		r.complete(r.named("ark:/99999/X", "one"))
		it := r.fails(r.named("ark:/12345/X", "two"))
		isContent(t, it, "ark:/99999/X", "ark:/12345/X", "give the object another ARK")
		if it.Stage != registry.Process || it.Attempt != 4 {
			t.Errorf("stage=%s after %d attempts", it.Stage, it.Attempt)
		}
		r.notIntended(it.ID)
		if o := r.complete(r.named("ark:/99999/X", "three")); o.Head != 2 {
			t.Errorf("head=%d, want 2", o.Head)
		}
	})
	t.Run("OCFL keeps the folder for itself", func(t *testing.T) {
		t.Parallel()
		r := flatRig(t)
		it := r.fails(r.named("ark:/99999/extensions", "one"))
		isContent(t, it, "ark:/99999/extensions", "give the object another ARK")
		r.notIntended(it.ID)
	})
	t.Run("storage is ahead of the Registry", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		o := r.complete(r.named("ark:/99999/X", "one"))
		key, err := r.objects.ObjectKey(o.ID)
		must(t, err)
		_, err = storage.Put(t.Context(), r.storage, key+"/v2/inventory.json", []byte("{}"))
		must(t, err)
		it := r.fails(r.named("ark:/99999/X", "two"))
		if it.ErrorClass != registry.SystemFault || !strings.Contains(it.Note, "later version") || it.Stage != registry.Process {
			t.Errorf("class=%s note=%q at %s, want a system fault that says so", it.ErrorClass, it.Note, it.Stage)
		}
		why, err := r.registry.Why(t.Context(), it.ID)
		must(t, err)
		if !strings.Contains(why.Act, "update the Registry") {
			t.Errorf("what helps: %q", why.Act)
		}
		r.notIntended(it.ID)
		must(t, r.storage.Delete(t.Context(), key+"/v2/inventory.json"))
		if o := r.complete(r.named("ark:/99999/X", "three")); o.Head != 2 {
			t.Errorf("head=%d, want 2", o.Head)
		}
	})
}

// Two objects that would share a folder are never written at the same time.
func TestR01_OneFolderOneObject(t *testing.T) {
	t.Parallel()
	r := flatRig(t)
	first, second := r.named("ark:/99999/X", "one"), r.named("ark:/12345/X", "two")
	r.advance(first, registry.Process)
	r.advance(second, registry.Process)
	c, err := r.registry.Claim(t.Context(), registry.ClaimRequest{
		RequestID: "first", Stage: registry.Process, Hint: first, Worker: "w", Lease: time.Hour, MaxAttempts: 5, StuckAfter: time.Hour,
	})
	must(t, err)
	if c.Item.ID != first {
		t.Fatalf("claimed %s", c.Item.ID)
	}
	ask := registry.IdentifyRequest{Owner: "ark:/99999/owner", Supplied: "ark:/99999/X", Folders: []string{"folder:" + registry.DefaultStorage + ":X"}}
	_, err = r.registry.Identify(t.Context(), c.Lease, ask)
	must(t, err)
	_, err = r.registry.Intend(t.Context(), c.Lease, registry.Intent{ObjectID: "ark:/99999/X", Version: 1, Plan: json.RawMessage("{}")})
	must(t, err)
	_, _ = r.run(second) // what became of it is asked of the Registry
	why, err := r.registry.Why(t.Context(), second)
	must(t, err)
	if why.Reason != registry.ReasonLocked || why.Actor != first {
		t.Errorf("%+v, want that it waits for %s", why, first)
	}
	events, err := r.registry.Events(t.Context(), second, 0, 500)
	must(t, err)
	for _, e := range events {
		if e.Type == "intend" {
			t.Errorf("it announced a version: %s", e.Data)
		}
	}
}
