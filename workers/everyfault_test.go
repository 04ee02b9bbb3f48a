package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// outlast runs a job to its end although a step fails, and returns its object. At the first failure
// it looks at storage, where what is committed is sound, whatever is half done, and takes back what
// is left of the fault.
func (r *rig) outlast(what, id string, heal func()) registry.Object {
	r.t.Helper()
	for range 40 {
		it := r.item(id)
		if it.Status == registry.Completed {
			heal()
			return r.object(id)
		}
		if it.Status.Settled() {
			r.t.Fatalf("%s: status=%s stage=%s class=%s note=%s, want completed", what, it.Status, it.Stage, it.ErrorClass, it.Note)
		}
		if _, err := r.run(id); err != nil {
			r.committedIsSound(what, id)
			heal()
		}
		r.wait(2 * time.Hour)
	}
	r.t.Fatalf("%s: item %s does not come to an end: %+v", what, id, r.item(id))
	return registry.Object{}
}

// committedIsSound checks a job's object in the midst of things: there is none yet, or it is whole
// at the version that it shows.
func (r *rig) committedIsSound(what, id string) {
	r.t.Helper()
	if r.item(id).Results["ark"] == nil {
		return
	}
	ark := r.ark(id)
	head, err := r.objects.Head(r.t.Context(), ark)
	if err != nil {
		return // nobody sees it
	}
	inv, err := r.objects.Inventory(r.t.Context(), ark, head.Head)
	if err != nil {
		r.t.Errorf("%s: version %d is shown and cannot be read: %v", what, head.Head, err)
		return
	}
	for _, f := range inv.State(0) {
		in, err := r.objects.OpenContent(r.t.Context(), inv, f.Digest, 0, -1)
		if err != nil {
			r.t.Errorf("%s: version %d is shown without %s: %v", what, head.Head, f.Path, err)
			continue
		}
		r.all(in)
	}
}

// faultKinds are what can befall the k-th call of a store, of one operation or of any.
var faultKinds = []struct {
	name string
	op   storagetest.Op
	do   func(s *storagetest.Faulty, k int)
}{
	{"an error", storagetest.Any, func(s *storagetest.Faulty, k int) { s.Fail(storagetest.Any, k, nil) }},
	{"a lost answer", storagetest.Any, func(s *storagetest.Faulty, k int) { s.FailAfter(storagetest.Any, k, nil) }},
	{"no space", storagetest.Any, func(s *storagetest.Faulty, k int) { s.Fail(storagetest.Any, k, storage.ErrNoSpace) }},
	{"a cut reading", storagetest.Open, func(s *storagetest.Faulty, k int) { s.CutAt(k) }},
	{"a flipped bit", storagetest.Open, func(s *storagetest.Faulty, k int) { s.FlipAt(k) }},
}

// TestEveryFault runs a deposit once for each of its calls to staging and storage, and injects a
// fault into that call. In the end there is one version of one object with the right bytes. The
// storage is a valid storage root with nothing else, staging is empty, and nothing incomplete was
// ever visible.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"staging", "storage"} {
		for _, kind := range faultKinds {
			t.Run(where+"/"+kind.name, func(t *testing.T) {
				t.Parallel()
				eachPlan(t, func(t *testing.T, title string) {
					r, staging, objects := newFaultyRig(t)
					store := map[string]*storagetest.Faulty{"staging": staging, "storage": objects}[where]
					before := store.Count(kind.op)
					id, _ := r.zipJobs(title)(0)
					r.complete(id)
					calls := store.Count(kind.op) - before
					if calls < 1 || calls < 4 && title != "" { // staged are the container, its files, perhaps the plan
						t.Fatalf("a deposit makes %d calls, want more", calls)
					}
					jobs := 1
					for k := range looptest.Steps(t) {
						if k > calls {
							break
						}
						what := fmt.Sprintf("%s at call %d of %d", kind.name, k, calls)
						id, want := r.zipJobs(title)(k)
						jobs++
						kind.do(store, k)
						o := r.outlast(what, id, store.Heal)
						r.valid(o, 1)
						if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
							t.Errorf("%s (-want +got):\n%s", what, diff)
						}
						r.nothingStaged(id)
						if t.Failed() {
							t.Fatal(what)
						}
					}
					report, err := ocfl.ValidateRoot(t.Context(), r.storage, "", ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return nil })
					must(t, err)
					if !report.Valid() || report.Objects != jobs {
						t.Errorf("storage root: %+v, want %d objects", report, jobs)
					}
				})
			})
		}
	}
}
