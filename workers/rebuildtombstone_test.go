package workers_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// TestTombstone_Forged: whoever can write into one storage cannot have objects deleted. A tombstone that no known
// key signed is named, and its object stays alive; one that cannot be read does not hide the right one.
func TestTombstone_Forged(t *testing.T) {
	t.Parallel()
	s := newSignedPair(t)
	text, err := s.deps.Objects[0].Tombstone(t.Context(), s.gone.ID)
	must(t, err)
	genuine, _, err := receipt.ReadTombstone(text, nil)
	must(t, err)
	other, err := receipt.ParseKey(receipt.NewKey())
	must(t, err)
	nobody := (*receipt.Key)(nil)
	bury := func(t *testing.T, root ocfl.Named, id string, key *receipt.Key) {
		t.Helper()
		stone := genuine
		stone.Object, stone.Item = id, ""
		_, err := storage.Put(t.Context(), root.Store(), root.TombstoneKey(id), key.SignTombstone(stone))
		must(t, err)
	}
	in := s.copies(t, func(t *testing.T, name string) storage.Store { return openDir(t, filepath.Join(t.TempDir(), name)) })
	first, last := in[0], in[len(in)-1]
	bury(t, last, s.check.ID, nobody)
	bury(t, last, s.waits.ID, other)
	must(t, first.Store().Replace(t.Context(), first.TombstoneKey(s.gone.ID), bytes.Repeat([]byte{'x'}, 2<<20)))

	got, said := s.rebuilt(t, rebuild.Options{Roots: in, Keys: s.trusted()})
	if got.Unreadable != 3 || got.Contradicted != 0 || !strings.Contains(said, s.waits.ID+" in "+last.Name+": none of the keys signed its tombstone") {
		t.Errorf("a rebuild counts %+v, and says %s", got, said)
	}
	remove(t, first, s.check.ID, "", "") // of an object that is gone, a forged tombstone does not tell why
	remove(t, last, s.check.ID, "", "")
	for _, dry := range []bool{false, true} {
		got, said = s.rebuilt(t, rebuild.Options{Roots: in, Keys: s.trusted(), DryRun: dry})
		if got.Contradicted != 2 || !strings.Contains(said, "no storage has the object right, which was preserved") {
			t.Errorf("dry %t: a rebuild counts %+v, and says %s", dry, got, said)
		}
	}

	in = s.copies(t, func(t *testing.T, name string) storage.Store { return openDir(t, filepath.Join(t.TempDir(), name)) })
	bury(t, in[1], s.check.ID, other)
	for _, apply := range []bool{false, true} {
		found := found{}
		to := s.restoredOf(t, s.backup)
		o := rebuild.ReconcileOptions{Roots: in, To: to, Now: time.Now, Apply: apply, Found: func(f rebuild.Finding) error {
			if len(f.Disagrees) > 0 {
				return found.add(f)
			}
			return nil
		}}
		got, err := rebuild.Reconcile(t.Context(), o)
		must(t, err)
		if got.Disagree != 1 || got.Deleted != 1 || !strings.Contains(found.text(s.check.ID), "none of the known keys signed") {
			t.Errorf("apply %t: %+v: %+v", apply, got, found)
		}
		if now, err := to.Object(t.Context(), s.check.ID); err != nil || now.Gone != "" {
			t.Errorf("apply %t: the object is %s, %v", apply, now.Gone, err)
		}
		o.Keys = append(s.trusted(), other.Public()) // it was the service's own
		if got, err = rebuild.Reconcile(t.Context(), o); err != nil || got.Disagree != 0 || got.Deleted == 0 {
			t.Errorf("apply %t, with its key: %+v, %v", apply, got, err)
		}
		now, err := to.Object(t.Context(), s.check.ID)
		must(t, err)
		if deletes := now.Gone == registry.DeletionDeleting; deletes != apply {
			t.Errorf("apply %t, with its key: the object is %q", apply, now.Gone)
		}
	}
}

// ofOtherKeys is a record that knows other keys than those that signed what the storages have.
type ofOtherKeys struct {
	registry.Reconciling
	key *receipt.Key
}

func (r ofOtherKeys) ReceiptKeys(context.Context) ([]registry.ReceiptKey, error) {
	return []registry.ReceiptKey{{PublicKey: r.key.Public().String()}}, nil
}

// TestReconcile_StrangeKeys: what a record lacks, and no key signed that it knows or that is trusted, is named
// and not adopted.
func TestReconcile_StrangeKeys(t *testing.T) {
	t.Parallel()
	s := newSignedPair(t)
	other, err := receipt.ParseKey(receipt.NewKey())
	must(t, err)
	in := s.copies(t, func(t *testing.T, name string) storage.Store { return openDir(t, filepath.Join(t.TempDir(), name)) })
	to := s.restoredOf(t, s.backup)
	found := found{}
	o := rebuild.ReconcileOptions{Roots: in, To: ofOtherKeys{to, other}, Now: time.Now, Apply: true, Found: func(f rebuild.Finding) error {
		if len(f.Disagrees) > 0 {
			return found.add(f)
		}
		return nil
	}}
	strange, err := rebuild.Reconcile(t.Context(), o)
	must(t, err)
	if strange.Adopted != 0 || strange.Deleted != 0 || strange.Disagree == 0 || !strings.Contains(found.text(s.check.ID), "none of the known keys signed it") {
		t.Errorf("%+v: %+v", strange, found)
	}
	o.Keys = s.trusted()
	got, err := rebuild.Reconcile(t.Context(), o)
	must(t, err)
	if got.Disagree != 0 || got.Adopted == 0 || got.Deleted == 0 {
		t.Errorf("with its key: %+v, before it %+v", got, strange)
	}
}
