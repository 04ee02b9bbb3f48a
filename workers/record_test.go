package workers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/workers"
)

// errDied is the death of a worker.
var errDied = errors.New("died")

// dying is a Registry whose writes of the inventory die: before the call, or before its answer.
type dying struct {
	registry.ForWorkers
	before, after int // the call, counted from 1; 0: none
	calls         int
	chunks        []int // files of each call that was let through
}

func (m *dying) call(do func() error) error {
	m.calls++
	if m.calls == m.before {
		return errDied
	}
	err := do()
	if m.calls == m.after {
		return errDied
	}
	return err
}

func (m *dying) RecordFiles(ctx context.Context, l registry.Lease, object string, version int, files []registry.File) error {
	return m.call(func() error {
		m.chunks = append(m.chunks, len(files))
		return m.ForWorkers.RecordFiles(ctx, l, object, version, files)
	})
}

func (m *dying) RecordVersion(ctx context.Context, l registry.Lease, v registry.VersionRecord) error {
	return m.call(func() error { return m.ForWorkers.RecordVersion(ctx, l, v) })
}

// Record is killed before and after each of its portions and of the last transaction. Before that
// commits, readers see nothing of the version, afterwards all of it. The successor continues there
// and changes nothing.
func TestR25_RecordDiesBetweenPortions(t *testing.T) {
	t.Parallel()
	kept := storagetest.NewMemory()
	r := newRig(t, func(d *workers.Deps) {
		d.Staging = storagetest.NewMemory()
		d.Policy = func(registry.Stage) base.Worker { return base.Worker{Attempts: 1000} }
	})
	r.staging, r.storage = r.deps.Staging, kept
	var err error
	r.objects, err = ocfl.OpenRoot(t.Context(), kept, "", nil)
	must(t, err)
	r.deps.Objects = roots(r.objects)
	want := map[string]string{}
	for i := range 1100 {
		want[fmt.Sprintf("d%d/f%d", i%7, i)] = fmt.Sprint(i % 3)
	}
	id := r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("c.zip", zipOf(t, want)), Filename: "c.zip"})
	r.advance(id, registry.Record)
	var chunks []int
	die := func(before, after int) {
		m := &dying{ForWorkers: r.registry, before: before, after: after}
		r.deps.Registry = m
		_, err := r.run(id)
		if !errors.Is(err, errDied) {
			t.Fatalf("die before %d, after %d: %v", before, after, err)
		}
		chunks = append(chunks, m.chunks...)
		r.wait(2 * time.Hour)
	}
	invisible := func() {
		t.Helper()
		_, err := r.registry.Object(t.Context(), r.ark(id))
		_, files := r.registry.Files(t.Context(), r.ark(id), 1, "", 1)
		_, receipt := r.registry.DepositReceipt(t.Context(), r.ark(id), 1)
		for _, err := range []error{err, files, receipt} {
			if !errors.Is(err, registry.ErrNotFound) {
				t.Errorf("a reader sees something of a version that is not recorded: %v", err)
			}
		}
		page, err := r.registry.PremisEvents(t.Context(), r.ark(id), "", 1)
		if err != nil || len(page.Rows) > 0 {
			t.Errorf("events of a version that is not recorded: %v %v", page.Rows, err)
		}
	}
	invisible()
	die(1, 0)
	for range 3 { // three portions: each dies when it is done; it is repeated, being noted only afterwards, and the next never begins
		invisible()
		die(0, 1)
		invisible()
		die(2, 0)
	}
	invisible() // the last death was before the version
	die(0, 2)   // and this one when it is recorded
	before := r.object(id)
	receipt, err := r.registry.DepositReceipt(t.Context(), before.ID, 1)
	must(t, err)
	r.deps.Registry = r.registry
	o := r.complete(id)
	if diff := cmp.Diff(before, o); diff != "" {
		t.Errorf("the repeat changed the object:\n%s", diff)
	}
	again, err := r.registry.DepositReceipt(t.Context(), o.ID, 1)
	must(t, err)
	if diff := cmp.Diff(receipt, again); diff != "" {
		t.Errorf("there is another receipt:\n%s", diff)
	}
	if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if slices.Max(chunks) > 500 {
		t.Errorf("portions of %v files, want 500 at most", chunks)
	}
}
