package workers_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// deletion makes the item that deletes an object.
func (r *rig) deletion(o registry.Object) string {
	r.t.Helper()
	_, err := r.registry.AskDeletion(r.t.Context(), o.ID, "because", "asker")
	must(r.t, err)
	d, err := r.registry.ApproveDeletion(r.t.Context(), o.ID, "approver")
	must(r.t, err)
	return d.ItemID
}

// deleted sees that nothing of an object is left but its tombstones.
func (r *rig) deleted(o registry.Object) {
	r.t.Helper()
	now, err := r.registry.Object(r.t.Context(), o.ID)
	must(r.t, err)
	if now.Gone != registry.DeletionDeleted || now.Deletion.Last.Version != o.Head || now.Deletion.Last.Files == "" || now.Deletion.Last.Inventory == "" {
		r.t.Errorf("object %+v, deletion %+v", now, now.Deletion)
	}
	key, err := r.objects.ObjectKey(o.Stored())
	must(r.t, err)
	for info, err := range r.storage.List(r.t.Context(), key+"/") {
		must(r.t, err)
		r.t.Errorf("left in storage: %s", info.Key)
	}
	raw, err := r.objects.Tombstone(r.t.Context(), o.ID)
	must(r.t, err)
	stone, trusted, err := receipt.ReadTombstone(raw, r.trusted())
	must(r.t, err)
	want := receipt.Tombstone{
		Object: o.ID, Owner: o.Owner, LocalIDs: stone.LocalIDs, Collection: o.Collection, Reason: "because", AskedBy: "asker", ApprovedBy: "approver",
		Last: receipt.Remains(now.Deletion.Last),
	}
	got := stone
	got.AskedAt, got.ApprovedAt, got.Item, got.LastEvent, got.LastHash, got.Key, got.PublicKey = time.Time{}, time.Time{}, "", 0, "", "", ""
	if diff := cmp.Diff(want, got); diff != "" || !trusted || !slices.Equal(stone.LocalIDs, o.LocalIDs) || !stone.ApprovedAt.Equal(*now.Deletion.ApprovedAt) {
		r.t.Errorf("tombstone, trusted %t (-want +got):\n%s\n%s", trusted, diff, raw)
	}
	events, err := r.registry.PremisEvents(r.t.Context(), o.ID, "", 0)
	must(r.t, err)
	count := 0
	for _, e := range events.Rows {
		if e.Type == "deletion" {
			count++
		}
		if e.Seq == stone.LastEvent && e.Hash != stone.LastHash || e.Type == "deletion" && e.Seq != stone.LastEvent+1 {
			r.t.Errorf("the tombstone ends the chain at event %d with %s, and there is %+v", stone.LastEvent, stone.LastHash, e)
		}
	}
	if count != 1 {
		r.t.Errorf("%d deletion events", count)
	}
}

// TestR02_DeleteDiesAnywhere: wherever a deletion is killed, the remains of the object never count
// as complete, readers get an error, and the next attempt keeps the tombstone.
func TestR02_DeleteDiesAnywhere(t *testing.T) {
	t.Parallel()
	r, _, objects := newFaultyRig(t)
	dies := []func(int){objects.DieAt, objects.DieAfter}
	survived := false
	for n := range looptest.Steps(t) {
		if survived {
			break
		}
		job, _ := r.zipJob(n)
		o := r.complete(job)
		id := r.deletion(o)
		dies[n%2](n)
		_, err := r.run(id)
		objects.Heal()
		survived = err == nil
		if !survived {
			r.between(n, o)
			r.wait(2 * time.Hour)
			if v, err := r.run(id); err != nil || v.Status != registry.Completed {
				t.Fatalf("death at operation %d: then %+v, %v", n, v, err)
			}
		}
		r.deleted(o)
	}
}

// between sees that an object that is being deleted is either untouched, or known to be going by
// the Registry and by storage alone.
func (r *rig) between(n int, o registry.Object) {
	r.t.Helper()
	now, err := r.registry.Object(r.t.Context(), o.ID)
	must(r.t, err)
	_, noStone := r.objects.Tombstone(r.t.Context(), o.ID)
	report, err := r.objects.Verify(r.t.Context(), o.ID, ocfl.ValidateOptions{})
	whole := err == nil && report.Valid()
	if err != nil && !errors.Is(err, ocfl.ErrNotFound) {
		r.t.Fatal(err)
	}
	if !whole && (now.Gone == "" || noStone != nil) {
		r.t.Errorf("death at %d: it is not whole any more, the Registry says %q, the tombstone: %v", n, now.Gone, noStone)
	}
	if whole && noStone == nil && now.Gone == "" {
		r.t.Errorf("death at %d: a tombstone of an object that can be read", n)
	}
}

// Lost answers of the Registry change nothing.
func TestDelete_AnswersLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := &losing{ForWorkers: r.registry}
	job, _ := r.zipJob(1)
	o := r.complete(job)
	id := r.deletion(o)
	r.deps.Registry = f
	for _, which := range []*bool{&f.mark, &f.record} {
		*which = true
		if _, err := r.run(id); !errors.Is(err, errTest) {
			t.Fatalf("error %v", err)
		}
		*which = false
		r.wait(2 * time.Hour)
	}
	if v, err := r.run(id); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	r.deleted(o)
}

type losing struct {
	registry.ForWorkers
	mark, record bool
}

func (l *losing) MarkDeleting(ctx context.Context, lease registry.Lease, id string, last registry.Remains) (registry.Deletion, error) {
	d, err := l.ForWorkers.MarkDeleting(ctx, lease, id, last)
	if l.mark {
		err = errTest
	}
	return d, err
}

func (l *losing) RecordDeletion(ctx context.Context, lease registry.Lease, id string, events []registry.Premis) error {
	err := l.ForWorkers.RecordDeletion(ctx, lease, id, events)
	if l.record {
		err = errTest
	}
	return err
}

// A deletion waits for running work on the object. Later deposits to the object are content faults.
func TestDelete_AmongOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job, _ := r.zipJob(1)
	o := r.complete(job)
	update := func(n string) string {
		return r.job(registry.Spec{
			Type: registry.AutoType, Mode: registry.Update, PrimaryID: o.ID, Filename: "c.zip",
			URL: r.site.put("c"+n+".zip", zipOf(t, map[string]string{"n": n})),
		})
	}
	before := update("1")
	r.advance(before, registry.Record)
	id := r.deletion(o)
	after := update("2")
	r.advance(after, registry.Process)
	if v, err := r.run(id); v.Status != registry.Pending || v.Tries != 0 {
		t.Fatalf("beside a version that is written: %+v %v", v, err)
	}
	o = r.complete(before)
	r.wait(2 * time.Hour)
	if v, err := r.run(id); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	r.deleted(o)
	r.wait(2 * time.Hour)
	if it := r.fails(after); it.ErrorClass != registry.ContentFault {
		t.Errorf("a deposit for a deleted object: %+v", it)
	}
	if _, err := r.storage.Stat(t.Context(), r.objects.TombstoneKey(o.ID)); errors.Is(err, storage.ErrNotFound) {
		t.Error("the tombstone is gone")
	}
}
