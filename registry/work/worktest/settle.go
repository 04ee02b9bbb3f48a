package worktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func settleTests() tests {
	return tests{
		"job_happy_path": jobHappyPath,
		"outcomes":       settleOutcomes,
		"R09_a_repeated_settle_gets_the_recorded_verdict":   repeatedSettle,
		"R09_another_outcome_is_refused":                    otherOutcome,
		"R09_a_lost_attempt_cannot_settle":                  lostCannotSettle,
		"I11_max_attempts":                                  maxAttempts,
		"I11_an_unset_bound_is_the_default":                 unsetBound,
		"estimate_never_fails":                              estimateNeverFails,
		"retry_waits":                                       retryWaits,
		"R24_repeated_snoozes_share_an_attempt_row":         snoozesShareRow,
		"I11_a_release_is_not_counted":                      releaseIsNotCounted,
		"a_stopping_worker_leaves_no_note":                  releaseLeavesNoNote,
		"R06_what_was_spoilt_goes_back_and_comes_to_an_end": sentBack,
		"results_are_merged":                                resultsMerged,
		"SaveResult_sets_once":                              saveResultOnce,
		"results_have_bounds":                               resultBounds,
		"what_happened_is_written":                          settleEvents,
		"a_worker_cannot_lose_an_item_itself":               onlyRegistryLoses,
	}
}

func jobHappyPath(f *fixture) {
	batch, jobs := f.Batch(1)
	id := jobs[0]
	f.State(id, registry.StatePending)
	for _, tt := range []struct {
		stage registry.Stage
		state registry.State
	}{
		{registry.Estimate, registry.StateEstimating},
		{registry.Provision, registry.StateProvisioning},
		{registry.Download, registry.StateDownloading},
		{registry.Process, registry.StateProcessing},
		{registry.Record, registry.StateRecording},
		{registry.Notify, registry.StateNotify},
	} {
		c := f.Take(tt.stage, id)
		if c.Item.State != tt.state {
			f.Errorf("at %s: state=%s, want %s", tt.stage, c.Item.State, tt.state)
		}
		f.Done(c.Lease)
	}
	f.State(id, registry.StateCompleted)
	if it := f.Item(id); it.Attempt != 6 || it.Retry || it.FinishedAt == nil || len(it.AllowedActs) != 0 {
		f.Errorf("completed item: %+v", it)
	}
	p, err := f.Store.BatchProgress(f.Context(), batch)
	f.Must(err)
	if p.Jobs != 1 || p.Completed != 1 || p.Open != 0 || p.Failed != 0 {
		f.Errorf("progress %+v", p)
	}
}

func settleOutcomes(f *fixture) {
	for _, tt := range []struct {
		name string
		s    registry.Settlement
		want registry.Verdict
		item registry.WorkItem // the fields looked at
	}{
		{
			"done",
			registry.Settlement{Outcome: registry.OutcomeDone},
			registry.Verdict{Stage: registry.Process, Status: registry.Pending},
			registry.WorkItem{State: registry.StateProcessing, Retry: true},
		},
		{
			"retry",
			registry.Settlement{Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "timeout"},
			registry.Verdict{Stage: registry.Download, Status: registry.Pending, Tries: 1},
			registry.WorkItem{State: registry.StateDownloading, Tries: 1, ErrorClass: registry.SystemFault, Note: "timeout", Retry: true},
		},
		{
			"snooze",
			registry.Settlement{Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "full", Delay: time.Minute},
			registry.Verdict{Stage: registry.Download, Status: registry.Pending},
			registry.WorkItem{State: registry.StateDownloading, Note: "full", Retry: true},
		},
		{
			"released",
			registry.Settlement{Outcome: registry.OutcomeReleased},
			registry.Verdict{Stage: registry.Download, Status: registry.Pending},
			registry.WorkItem{State: registry.StateDownloading, Retry: true},
		},
		{
			"content",
			registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "404"},
			registry.Verdict{Stage: registry.Download, Status: registry.Failed},
			registry.WorkItem{State: registry.StateFailed, ErrorClass: registry.ContentFault, Note: "404", NeedsAdminReview: true},
		},
		{
			"system",
			registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no config"},
			registry.Verdict{Stage: registry.Download, Status: registry.Failed},
			registry.WorkItem{State: registry.StateFailed, ErrorClass: registry.SystemFault, Note: "no config", NeedsAdminReview: true},
		},
	} {
		id := f.Job(registry.Download)
		tt.s.Lease = f.TakeItem(id).Lease
		if got := f.Settle(tt.s); got != tt.want {
			f.Errorf("%s: verdict %+v, want %+v", tt.name, got, tt.want)
		}
		it := f.Item(id)
		got := registry.WorkItem{
			State: it.State, Tries: it.Tries, ErrorClass: it.ErrorClass, Note: it.Note, Retry: it.Retry, NeedsAdminReview: it.NeedsAdminReview,
		}
		if diff := cmp.Diff(tt.item, got); diff != "" {
			f.Errorf("%s: item (-want +got):\n%s", tt.name, diff)
		}
		a := f.AttemptsOf(id)
		if last := a[len(a)-1]; last.Outcome != tt.s.Outcome || last.Error != tt.s.Error || last.FinishedAt == nil {
			f.Errorf("%s: attempt %+v", tt.name, last)
		}
		if !it.Status.Settled() {
			f.Command(id, registry.ActCancel, "") // out of the next case's way
		}
	}
}

func repeatedSettle(f *fixture) {
	for _, s := range []registry.Settlement{
		{Outcome: registry.OutcomeDone},
		{Outcome: registry.OutcomeRetry, Error: "no", Delay: time.Hour},
		{Outcome: registry.OutcomeReleased},
		{Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"},
	} {
		id := f.Submit()
		s.Lease = f.TakeItem(id).Lease
		s.PriorityAdd = 10
		want := f.Settle(s)
		before := f.Item(id)
		f.Clock.Pass(time.Second)
		if got := f.Settle(s); got != want {
			f.Errorf("%s: repeat %+v, want %+v", s.Outcome, got, want)
		}
		if diff := cmp.Diff(before, f.Item(id)); diff != "" {
			f.Errorf("%s: the repeat changed the item:\n%s", s.Outcome, diff)
		}
		if !before.Status.Settled() && before.Stage == registry.Expand {
			f.Clock.Pass(time.Hour)
			f.FailItem(id, registry.ContentFault)
		}
	}
}

func otherOutcome(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	f.Done(l)
	_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Error: "late"})
	f.Is(err, registry.ErrClaimLost)
	if got := f.Item(id); got.Status != registry.Pending || got.Stage != registry.Report {
		f.Errorf("%s at %s", got.Status, got.Stage)
	}
}

func lostCannotSettle(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	f.Sweep(2 * registrytest.Lease)
	_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
	f.Is(err, registry.ErrClaimLost)
	if got := f.Item(id); got.Status != registry.Pending || got.Stage != registry.Expand {
		f.Errorf("%s at %s", got.Status, got.Stage)
	}
}

func maxAttempts(f *fixture) {
	id := f.Job(registry.Download)
	for n := 1; n <= registrytest.Attempts; n++ {
		want := registry.Verdict{Stage: registry.Download, Status: registry.Pending, Tries: n}
		if n == registrytest.Attempts {
			want.Status = registry.Failed
		}
		if got := f.Retry(id, registrytest.Attempts); got != want {
			f.Errorf("try %d: %+v, want %+v", n, got, want)
		}
	}
	if it := f.Item(id); !it.NeedsAdminReview || it.ErrorClass != registry.SystemFault || it.Note != "again" {
		f.Errorf("used up: %+v", it)
	}
	other := f.Job(registry.Download)
	f.Retry(other, registrytest.Attempts)
	f.Done(f.TakeItem(other).Lease)
	if got := f.Item(other).Tries; got != 0 {
		f.Errorf("tries=%d in a new stage, want 0", got)
	}
}

func unsetBound(f *fixture) {
	id := f.Job(registry.Download)
	for range 4 {
		if got := f.Retry(id, 0); got.Status != registry.Pending {
			f.Fatalf("verdict %+v before the default is used up", got)
		}
	}
	if got := f.Retry(id, 0); got.Status != registry.Failed {
		f.Errorf("verdict %+v, want failed", got)
	}
}

func estimateNeverFails(f *fixture) {
	id := f.Job(registry.Estimate)
	for range registrytest.Attempts - 1 {
		f.Retry(id, registrytest.Attempts)
	}
	if got, want := f.Retry(id, registrytest.Attempts), (registry.Verdict{Stage: registry.Provision, Status: registry.Pending}); got != want {
		f.Errorf("verdict %+v, want %+v", got, want)
	}
	if it := f.Item(id); it.SizeBytes != -1 || it.ErrorClass != "" || it.Note != "" || it.Tries != 0 {
		f.Errorf("went on as %+v", it)
	}
	lost := f.Job(registry.Estimate)
	for range registrytest.Attempts {
		f.Clock.Pass(time.Hour)
		f.TakeItem(lost)
		f.Sweep(registrytest.Lease + time.Second)
	}
	if it := f.Item(lost); it.Stage != registry.Provision || it.Status != registry.Pending {
		f.Errorf("after lost attempts it is %s at %s", it.Status, it.Stage)
	}
}

func retryWaits(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeRetry, Delay: 90 * time.Second, Error: "no"})
	if got, want := f.Item(id).RunAt, f.Clock.Now().Add(90*time.Second); !got.Equal(want) {
		f.Errorf("run at %v, want %v", got, want)
	}
	f.Clock.Pass(89 * time.Second)
	f.Refused(registry.Expand, id)
	f.Clock.Pass(time.Second)
	f.Take(registry.Expand, id)
}

func snoozesShareRow(f *fixture) {
	id := f.Job(registry.Provision)
	before := len(f.AttemptsOf(id))
	for range 20 {
		l := f.TakeItem(id).Lease
		f.Settle(registry.Settlement{
			Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: time.Minute,
		})
		f.Clock.Pass(time.Minute)
	}
	if got := len(f.AttemptsOf(id)) - before; got != 1 {
		f.Errorf("%d attempt rows for 20 snoozes, want 1", got)
	}
	if it := f.Item(id); it.Tries != 0 || it.Attempt != 21 {
		f.Errorf("tries=%d attempt=%d, want 0 and 21", it.Tries, it.Attempt)
	}
	if got := len(f.Events(id)); got > 6 {
		f.Errorf("%d events: a wait without news is told again and again", got)
	}
	f.Done(f.TakeItem(id).Lease)
	f.Done(f.TakeItem(id).Lease)
	if got := len(f.AttemptsOf(id)) - before; got != 2 {
		f.Errorf("%d attempt rows after the next stage, want 2", got)
	}
}

// releaseLeavesNoNote: the note that a worker stopped is on its attempt, not on the item, which
// another worker may have by then. A counted failure stays on the item.
func releaseLeavesNoNote(f *fixture) {
	id := f.Job(registry.Download)
	const stopping = "worker is stopping"
	f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeReleased, Error: stopping})
	if got := f.Item(id); got.Note != "" || got.ErrorClass != "" {
		f.Errorf("released: note %q (%s), want none", got.Note, got.ErrorClass)
	}
	f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "timeout"})
	f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeReleased, Error: stopping})
	c := f.TakeItem(id)
	if got := f.Item(id); got.Note != "timeout" || got.ErrorClass != registry.SystemFault {
		f.Errorf("running again: note %q (%s), want that of the failure that counts", got.Note, got.ErrorClass)
	}
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased, Error: stopping})
	attempts, err := f.Store.Attempts(f.Context(), id)
	f.Must(err)
	if last := attempts[len(attempts)-1]; last.Outcome != registry.OutcomeReleased || last.Error != stopping {
		f.Errorf("last attempt: %s, %q; want it to tell why it ended", last.Outcome, last.Error)
	}
}

func releaseIsNotCounted(f *fixture) {
	id := f.Submit()
	for range 3 * registrytest.Attempts {
		f.Settle(registry.Settlement{Lease: f.Take(registry.Expand, id).Lease, Outcome: registry.OutcomeReleased})
	}
	if it := f.Item(id); it.Tries != 0 || it.Status != registry.Pending || it.Attempt != 3*registrytest.Attempts {
		f.Errorf("tries=%d status=%s attempt=%d", it.Tries, it.Status, it.Attempt)
	}
}

// sentBack: an item with a damaged download is sent back to it at most three times. A requeue by an
// admin resets the count.
func sentBack(f *fixture) {
	const most = 3
	id := f.Job(registry.Download)
	back := func() registry.Verdict {
		f.Bring(id, registry.Process)
		return f.Settle(registry.Settlement{
			Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeSentBack, Back: registry.Download, Class: registry.SystemFault,
			Error: "a bit flipped", MaxAttempts: most,
		})
	}
	for _, begun := range []string{"at first", "after a requeue"} {
		for n := 1; n < most; n++ {
			if got, want := back(), (registry.Verdict{Stage: registry.Download, Status: registry.Pending}); got != want {
				f.Fatalf("%s, %d: %+v, want %+v", begun, n, got, want)
			}
			if it := f.Item(id); it.State != registry.StateDownloading || it.ErrorClass != registry.SystemFault || it.Note != "a bit flipped" {
				f.Errorf("%s, %d: %s, %s: %s", begun, n, it.State, it.ErrorClass, it.Note)
			}
		}
		if got, want := back(), (registry.Verdict{Stage: registry.Process, Status: registry.Failed}); got != want {
			f.Fatalf("%s: %+v, want %+v", begun, got, want)
		}
		if it := f.Item(id); it.ErrorClass != registry.SystemFault || it.Note != "sent back to download 2 times: a bit flipped" {
			f.Errorf("%s: %s: %s", begun, it.ErrorClass, it.Note)
		}
		f.Command(id, registry.ActRequeue, registry.Download)
	}
	f.Bring(id, registry.Process)
	l := f.TakeItem(id).Lease
	for _, to := range []registry.Stage{registry.Process, registry.Record, registry.Expand, ""} {
		_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeSentBack, Back: to})
		f.Is(err, registry.ErrInvalid)
	}
	f.Done(l)
	f.Finish(id)
}

func resultsMerged(f *fixture) {
	id := f.Submit()
	size, files := int64(100), int64(7)
	f.Settle(registry.Settlement{
		Lease: f.Take(registry.Expand, id).Lease, Outcome: registry.OutcomeRetry, Error: "half-way", SizeBytes: &size, PriorityAdd: 10,
		Results: map[string]json.RawMessage{"a": registrytest.RawJSON(`1`), "b": registrytest.RawJSON(`2`)},
	})
	f.Settle(registry.Settlement{
		Lease: f.Take(registry.Expand, id).Lease, Outcome: registry.OutcomeDone, Files: &files,
		Results: map[string]json.RawMessage{"b": registrytest.RawJSON(`3`), "c": registrytest.RawJSON(`{"d":4}`)},
	})
	it := f.Item(id)
	if got := fmt.Sprintf("%s", it.Results); got != `map[a:1 b:3 c:{"d":4}]` {
		f.Errorf("results=%s", got)
	}
	if it.SizeBytes != 100 || it.Files != 7 || it.Priority != 15 {
		f.Errorf("size=%d files=%d priority=%d", it.SizeBytes, it.Files, it.Priority)
	}
}

func saveResultOnce(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	for _, value := range []string{`"first"`, `"second"`} {
		holds, err := f.Store.SaveResult(f.Context(), l, "name", registrytest.RawJSON(value))
		f.Must(err)
		if string(holds) != `"first"` {
			f.Errorf("SaveResult(%s) holds %s, want the first", value, holds)
		}
	}
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	holds, err := f.Store.SaveResult(f.Context(), f.Take(registry.Expand, id).Lease, "name", registrytest.RawJSON(`"third"`))
	f.Must(err)
	if string(holds) != `"first"` {
		f.Errorf("the next attempt reads %s", holds)
	}
}

// resultBounds: one result and all results of an item have a limit, since the Registry reads them
// each time.
func resultBounds(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	large := func(n int) json.RawMessage { return registrytest.RawJSON(`"` + strings.Repeat("x", n-2) + `"`) }
	_, err := f.Store.SaveResult(f.Context(), l, "a", large(registry.MostResult))
	f.Is(err, registry.ErrInvalid)
	for _, name := range []string{"b", "c"} {
		_, err = f.Store.SaveResult(f.Context(), l, name, large(registry.MostResults/3))
		f.Must(err)
	}
	_, err = f.Store.SaveResult(f.Context(), l, "d", large(registry.MostResults/3))
	f.Is(err, registry.ErrInvalid)
	_, err = f.Store.Settle(f.Context(), registry.Settlement{
		Lease: l, Outcome: registry.OutcomeReleased, Results: map[string]json.RawMessage{"e": large(registry.MostResults / 3)},
	})
	f.Is(err, registry.ErrInvalid)
	_, err = f.Store.SaveResult(f.Context(), l, "d", large(100)) // what fits goes on
	f.Must(err)
	if got := slices.Sorted(maps.Keys(f.Item(id).Results)); !slices.Equal(got, []string{"b", "c", "d"}) {
		f.Errorf("results %v, want b, c and d", got)
	}
}

func settleEvents(f *fixture) {
	id := f.Submit()
	f.Settle(registry.Settlement{
		Lease: f.Take(registry.Expand, id).Lease, Outcome: registry.OutcomeDone,
		Events: []registry.NewEvent{{Type: "rows-repeated", Data: registrytest.RawJSON(`{"count":1}`)}, {Type: "manifest-warnings"}},
	})
	if diff := cmp.Diff([]string{"submit", "claim", "rows-repeated", "manifest-warnings", "advance"}, f.Events(id)); diff != "" {
		f.Errorf("events (-want +got):\n%s", diff)
	}
	es, err := f.Store.Events(f.Context(), id, 0, 10)
	f.Must(err)
	if e := es[2]; string(e.Data) != `{"count":1}` || e.Attempt != 1 || e.ItemID != id || !e.At.Equal(f.Clock.Now()) {
		f.Errorf("event %+v", e)
	}
}

func onlyRegistryLoses(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	for _, o := range []registry.Outcome{registry.OutcomeLost, registry.OutcomeWithdrawn, "nonsense"} {
		if _, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: o}); err == nil {
			f.Errorf("a worker settled with %s", o)
		}
	}
	if got := f.Item(id).Status; got != registry.Running {
		f.Errorf("status=%s, want running", got)
	}
}
