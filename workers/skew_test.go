package workers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestR15_ClockJumps: a Registry clock that is set forwards and backwards between steps costs only
// time. The deposit is preserved once and completely, and the object's history is in the right
// order.
func TestR15_ClockJumps(t *testing.T) {
	t.Parallel()
	for name, jumps := range map[string][]time.Duration{
		"forwards": {3 * time.Hour}, "backwards": {-3 * time.Hour}, "to and fro": {-3 * time.Hour, 5 * time.Hour, -40 * time.Minute, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a.txt", "what was sent"), Filename: "a.txt", LocalIDs: []string{"l"}})
			for i := 0; !r.item(job).Status.Settled(); i++ {
				if i > 100 {
					t.Fatalf("it does not come to an end: %+v", r.item(job))
				}
				r.wait(jumps[i%len(jumps)])
				var refused *registry.NotClaimable
				if _, err := r.run(job); errors.As(err, &refused) {
					if refused.Reason != registry.ReasonNotDue {
						t.Fatal(err)
					}
					r.wait(r.item(job).RunAt.Sub(time.Now().Add(time.Duration(r.later.Load())))) // until the clock has caught up
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if it := r.item(job); it.Status != registry.Completed || it.Attempt > 12 {
				t.Errorf("%s after %d attempts: %s", it.Status, it.Attempt, it.Note)
			}
			o := r.object(job)
			r.valid(o, 1)
			r.nothingStaged(job)
			if got := r.producer(o, 1); got["a.txt"] != "what was sent" || len(got) != 1 {
				t.Errorf("preserved %q", got)
			}
			events, err := r.registry.PremisEvents(t.Context(), o.ID, "", 0)
			must(t, err)
			for i, e := range events.Rows {
				if e.Seq != int64(i+1) {
					t.Errorf("event %d is number %d of the chain", i+1, e.Seq)
				}
			}
			history, err := r.registry.Events(t.Context(), job, 0, 500)
			must(t, err)
			if n := len(history); n == 0 || history[n-1].Type != string(registry.ActComplete) {
				t.Errorf("the history ends with %+v", history[max(0, n-1):])
			}
		})
	}
}
