package workers_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/web/api/checkpoint"
)

// TestRebuild_Keys: a Registry that is made again knows all keys that signed anything, also those that signed no
// receipt: only a segment, a tombstone or a checkpoint. Of trusted keys it knows these, and no others.
func TestRebuild_Keys(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	gone := p.complete(p.jobTo("pair", registry.Spec{Type: registry.FileType, URL: p.site.put("gone", "gone"), Filename: "a.txt"}))
	path := filepath.Join(t.TempDir(), "registry.db")
	must(t, sqldb.Copy(t.Context(), "sqlite:"+p.copied(t), path))
	old := p.registry
	t.Cleanup(func() { p.on(old) })
	var public []receipt.PublicKey
	for _, act := range []func(){
		func() {
			p.check(aContent)
			must(t, p.keeper(0).Make(t.Context()))
		},
		func() {
			if it := p.advance(p.deletion(gone), ""); it.Status != registry.Completed {
				t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
			}
		},
		func() {
			c := checkpoint.Checkpointer{Registry: p.registry, Objects: p.deps.Objects, Now: time.Now}
			must(t, c.Make(t.Context()))
		},
	} {
		key, err := receipt.ParseKey(receipt.NewKey())
		must(t, err)
		public = append(public, key.Public())
		now, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + path, ReceiptKey: key, Mail: true})
		must(t, err)
		p.on(now)
		act()
		must(t, now.Close())
	}
	last, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + path})
	must(t, err)
	want := keyIDs(t, last)
	must(t, last.Close())
	if len(want) != 4 {
		t.Fatalf("the keys were %v", want)
	}
	to := p.rebuilding(t)
	_, err = rebuild.Run(t.Context(), rebuild.Options{Roots: p.deps.Objects, To: to, Now: time.Now})
	must(t, err)
	if diff := cmp.Diff(want, keyIDs(t, to)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	to = p.rebuilding(t)
	unused, err := receipt.ParseKey(receipt.NewKey())
	must(t, err)
	trusted := []receipt.PublicKey{public[0], unused.Public()}
	_, err = rebuild.Run(t.Context(), rebuild.Options{Roots: p.deps.Objects, To: to, Keys: trusted, Now: time.Now})
	must(t, err)
	if diff := cmp.Diff(map[string]bool{trusted[0].ID(): true, trusted[1].ID(): true}, keyIDs(t, to)); diff != "" {
		t.Errorf("trusted keys (-want +got):\n%s", diff)
	}
}

// keyIDs returns the keys that a Registry knows.
func keyIDs(t *testing.T, r *sqlstore.Store) map[string]bool {
	t.Helper()
	keys, err := r.ReceiptKeys(t.Context())
	must(t, err)
	out := map[string]bool{}
	for _, k := range keys {
		out[k.ID] = true
	}
	return out
}
