package workers_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// inOrder brings jobs of one object as far as they can come while the first of them is not
// downloaded, and checks that the object's versions after before are theirs in the order given.
func (r *rig) inOrder(before int, jobs ...string) registry.Object {
	r.t.Helper()
	r.advance(jobs[0], registry.Download)
	must(r.t, r.registry.AddHold(r.t.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Reason: "a slow source", Actor: "tester"}))
	for i, job := range jobs[1:] {
		r.advance(job, registry.Process)
		_, err := r.run(job)
		var refused *registry.NotClaimable
		if !errors.As(err, &refused) || refused.Reason != registry.ReasonLocked {
			r.t.Errorf("job %d overtakes: %v, want locked", i+1, err)
		}
	}
	must(r.t, r.registry.RemoveHold(r.t.Context(), registry.HoldItem, jobs[0], "tester"))
	var o registry.Object
	for i, job := range jobs {
		o = r.complete(job)
		r.valid(o, before+i+1)
	}
	for i, job := range jobs {
		if got := o.Versions[before+i].ItemID; got != job {
			r.t.Errorf("version %d is of %s, want %s", before+i+1, got, job)
		}
	}
	return o
}

// Two versions of one object are stored in the order of submission, although the first has a slow
// source and the second is ready earlier.
func TestR01_VersionsInSubmitOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	spec := func(name, text string) registry.Spec {
		return registry.Spec{
			Type: registry.AutoType, Mode: registry.Update, URL: r.site.put(name, text), Filename: "f", LocalIDs: []string{"one"},
		}
	}
	made := spec("made", "nothing yet")
	made.Mode = registry.Add
	r.complete(r.job(made))
	early := r.submit(spec("early", "first"))
	r.wait(time.Millisecond)
	late := r.submit(spec("late", "second"))
	r.site.fault = func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != "/early" {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if _, err := r.run(early); err == nil {
		t.Fatal("expanded although its source is away")
	}
	r.site.fault = nil
	second := r.expand(late)[0].ID
	r.advance(second, registry.Process)
	r.wait(time.Hour)
	jobs := r.expand(early)
	o := r.inOrder(1, jobs[0].ID, second)
	for version, want := range []string{"first", "second"} {
		if diff := cmp.Diff(map[string]string{"f": want}, r.producer(o, version+2)); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", version+2, diff)
		}
	}
}

// Rows of one batch that name one object make its versions in the order of the rows.
func TestR01_RowsOfOneObject(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	row := func(text string) checkm.Row {
		return checkm.Row{URL: r.site.put(text, text), Name: "f", LocalIDs: []string{"one"}}
	}
	jobs := r.expand(r.submit(registry.Spec{
		Type: registry.SingleFileBatch, URL: r.site.manifest("m", checkm.FileBatch, row("first"), row("second"), row("third")),
	}))
	o := r.inOrder(0, jobs[0].ID, jobs[1].ID, jobs[2].ID)
	if diff := cmp.Diff(map[string]string{"f": "third"}, r.producer(o, 3)); diff != "" {
		t.Errorf("the last version (-want +got):\n%s", diff)
	}
}
