package workers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// TestR24_FullAfterAnyByte runs a deposit to three storages repeatedly, with a disk that accepts a
// limited number of bytes: staging, the first storage, and the second, which replicate fills.
// Wherever that is, the item waits, uncounted, while the disk is full, and nothing incomplete is
// visible. With room again there is one version of one object with the right bytes everywhere.
func TestR24_FullAfterAnyByte(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"staging", registry.DefaultStorage, "b"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			r, first, others, behind := newReplicatedRig(t)
			disk := map[string]*storagetest.Faulty{
				"staging": r.deps.Staging.(*storagetest.Faulty), registry.DefaultStorage: first, "b": others["b"],
			}[where]
			stages := map[registry.Stage]bool{}
			jobs := 0
			for quota, filled := int64(0), true; filled; quota += 1 + quota/4 {
				what := fmt.Sprintf("full after %d bytes", quota)
				jobs++
				files := sample()
				files["which.txt"] = fmt.Sprint(quota)
				batch := r.submitTo(replicated, registry.Spec{Type: registry.AutoType, URL: r.site.put("c.zip", zipOf(t, files)), Filename: "c.zip", Title: longTitle})
				disk.Quota(quota)
				filled = r.outlastFull(what, batch, disk, stages)
				id := r.jobs(batch)[0].ID
				filled = r.outlastFull(what, id, disk, stages) || filled
				o := r.object(id)
				r.valid(o, 1)
				if diff := cmp.Diff(files, r.producer(o, 1)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
				r.inAll(o, 1, behind, registry.DefaultStorage, "b", "c")
				r.nothingStaged(id)
				if t.Failed() {
					t.Fatal(what)
				}
			}
			want := map[string]map[registry.Stage]bool{
				"staging":               {registry.Download: true, registry.Process: true},
				registry.DefaultStorage: {registry.Process: true, registry.Record: true},
				"b":                     {registry.Replicate: true, registry.Record: true},
			}[where]
			if diff := cmp.Diff(want, stages); diff != "" {
				t.Errorf("stages that met a full disk (-want +got):\n%s", diff)
			}
			for name, root := range behind {
				report, err := ocfl.ValidateRoot(t.Context(), root.Store(), "", ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return nil })
				must(t, err)
				if !report.Valid() || report.Objects != jobs {
					t.Errorf("storage %s: %+v, want %d objects", name, report, jobs)
				}
			}
		})
	}
}

// outlastFull runs an item to its end, or a batch to where it waits for its jobs, and gives the
// disk room again when the item has met it full twice. It says whether that was so, and notes the
// stages.
func (r *rig) outlastFull(what, id string, disk *storagetest.Faulty, stages map[registry.Stage]bool) (filled bool) {
	r.t.Helper()
	for range 40 {
		it := r.item(id)
		if it.Status == registry.Completed || it.Stage == registry.Report {
			return filled
		}
		if it.Status.Settled() {
			r.t.Fatalf("%s: status=%s stage=%s class=%s note=%s, want completed", what, it.Status, it.Stage, it.ErrorClass, it.Note)
		}
		if _, err := r.run(id); err != nil {
			filled, stages[it.Stage] = true, true
			r.isFull(what, id, it.Stage)
			r.wait(2 * time.Hour)
			if _, err := r.run(id); err == nil {
				r.t.Errorf("%s: %s went on although the disk is full", what, it.Stage)
			}
			r.isFull(what, id, it.Stage)
			disk.Quota(-1)
		}
		r.wait(2 * time.Hour)
	}
	r.t.Fatalf("%s: item %s does not come to an end: %+v", what, id, r.item(id))
	return filled
}

// isFull checks how an item waits for room.
func (r *rig) isFull(what, id string, stage registry.Stage) {
	r.t.Helper()
	it := r.item(id)
	waits(r.t, it)
	if it.Stage != stage || !strings.Contains(it.Note, "no space") {
		r.t.Errorf("%s: at %s, note %q, want it to stay at %s and name the want of room", what, it.Stage, it.Note, stage)
	}
	if why, err := r.registry.Why(r.t.Context(), id); err != nil || why.Reason != registry.ReasonNoSpace {
		r.t.Errorf("%s: %s waits for %s (%v), want no-space", what, stage, why.Reason, err)
	}
	r.committedIsSound(what, id)
}
