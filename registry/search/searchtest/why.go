package searchtest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/wording"
)

func whyTests() tests {
	all := tests{"unknown": whyUnknown, "each_item_of_a_life": whyLife, "next_try": whyNextTry}
	for _, c := range whyCases() {
		all[c.name] = c.check
	}
	return all
}

// whyCase brings an item to where it waits, and has the expected answer.
type whyCase struct {
	name   string
	bring  func(f *fixture) (id string)
	reason registry.Reason
	says   []string // in the sentence
	actor  string   // who or what; "" is not looked at
	since  time.Duration
	act    string
}

func (c whyCase) check(f *fixture) {
	begun := f.Clock.Now()
	id := c.bring(f)
	w, err := f.Store.Why(f.Context(), id)
	f.Must(err)
	if w.ItemID != id || w.Reason != c.reason {
		f.Errorf("%+v, want %s", w, c.reason)
	}
	f.stated(w)
	for _, s := range c.says {
		if !strings.Contains(w.Sentence, s) {
			f.Errorf("sentence %q does not say %q", w.Sentence, s)
		}
	}
	if c.actor != "" && w.Actor != c.actor {
		f.Errorf("actor %q, want %q", w.Actor, c.actor)
	}
	if want := begun.Add(c.since); !w.Since.Equal(want) {
		f.Errorf("since %v, want %v", w.Since, want)
	}
	if w.Act == "" && c.act != "" || !strings.Contains(w.Act, c.act) {
		f.Errorf("act %q, want %q", w.Act, c.act)
	}
}

// stated checks that an explanation's sentences are made of its statements, after JSON too.
func (f *fixture) stated(w registry.Why) {
	f.Helper()
	raw, err := json.Marshal(w)
	f.Must(err)
	again := registry.Why{}
	f.Must(json.Unmarshal(raw, &again))
	again.Sentence, again.Act = "", ""
	wording.Say(&again)
	if len(w.Because) == 0 || again.Sentence != w.Sentence || again.Act != w.Act {
		f.Errorf("%s; %s: its statements say %s; %s", w.Sentence, w.Act, again.Sentence, again.Act)
	}
}

// later adds a hold one minute after the beginning.
func (f *fixture) later(scope registry.HoldScope, key string) {
	f.Helper()
	f.Clock.Pass(time.Minute)
	f.Hold(scope, key)
}

func whyCases() []whyCase {
	return append(whyHeldCases(), whyWaitingCases()...)
}

func whyHeldCases() []whyCase {
	const by = "held by admin since 12:01:00 UTC (look at it)"
	held := registry.ReasonHeld
	return []whyCase{
		{"held_paused", func(f *fixture) string {
			id := f.Submit()
			f.later(registry.HoldIngest, "")
			return id
		}, held, []string{"queue paused by admin since 12:01:00 UTC (look at it)"}, "admin", time.Minute, "resume the queue"},
		{"held_everything", func(f *fixture) string {
			id := f.Submit()
			f.later(registry.HoldAll, "")
			return id
		}, held, []string{"everything is paused by admin since 12:01:00 UTC (look at it)"}, "admin", time.Minute, "resume the queue"},
		{"held_stage", func(f *fixture) string {
			id := f.Submit()
			f.later(registry.HoldStage, "expand")
			return id
		}, held, []string{"stage expand is " + by}, "admin", time.Minute, "release the hold on stage expand"},
		{"held_collection", func(f *fixture) string {
			id := f.Submit()
			f.later(registry.HoldCollection, registrytest.Mnemonic)
			return id
		}, held, []string{"collection merritt_demo is " + by}, "admin", time.Minute, "release the hold on collection merritt_demo"},
		{"held_volume", func(f *fixture) string {
			id := f.Job(registry.Process)
			f.later(registry.HoldVolume, registry.DefaultStorage)
			return id
		}, held, []string{"volume storage is " + by}, "admin", time.Minute, "release the hold on volume storage"},
		{"held_batch", func(f *fixture) string {
			batch, jobs := f.Batch(1)
			f.later(registry.HoldBatch, batch)
			return jobs[0]
		}, held, []string{"its batch is " + by}, "admin", time.Minute, "release the hold on batch "},
		{"held_item", func(f *fixture) string {
			id := f.Submit()
			f.later(registry.HoldItem, id)
			f.Clock.Pass(time.Hour)
			f.Hold(registry.HoldAll, "") // a younger one
			return id
		}, held, []string{by}, "admin", time.Minute, "release the hold on item "},
		{"every_worker_is_held", func(f *fixture) string {
			id := f.Submit()
			f.Renewal("node-1-abcdef", registry.Expand, 2)
			f.later(registry.HoldWorker, "node")
			f.Renewal("node-1-abcdef", registry.Expand, 2)
			return id
		}, registry.ReasonQueued, []string{"position 1 of 1 for expand", "no worker serves expand", "worker node is " + by}, "admin", 0, "release the hold on worker node"},
		{"one_worker_is_held_and_one_serves", func(f *fixture) string {
			id := f.Submit()
			f.Hold(registry.HoldWorker, "node")
			f.Renewal("node-1-abcdef", registry.Expand, 2)
			f.Renewal("other-1-abcdef", registry.Expand, 2)
			return id
		}, registry.ReasonQueued, []string{"position 1 of 1 for expand"}, "", 0, "nothing"},
	}
}

func whyWaitingCases() []whyCase {
	return []whyCase{
		{"queued_without_a_worker", func(f *fixture) string {
			_, jobs := f.Batch(3)
			return jobs[1]
		}, registry.ReasonQueued, []string{"position 2 of 3 for estimate", "no worker serves estimate"}, "", 0, "start a worker for estimate"},
		{"queued_without_a_program", func(f *fixture) string {
			return f.Task()
		}, registry.ReasonQueued, []string{"position 1 of 1 for run:", "no worker serves run:"}, "", 0, "start the program that serves "},
		{"queued_by_rank_among_what_is_ready", func(f *fixture) string {
			_, jobs := f.Batch(4)
			f.Renewal("worker-1", registry.Estimate, 2)
			f.TakeItem(jobs[0])
			f.Hold(registry.HoldItem, jobs[1])
			return jobs[3]
		}, registry.ReasonQueued, []string{"position 2 of 2 for estimate"}, "", 0, "nothing"},
		{"queued_beside_another_collection", func(f *fixture) string {
			f.Collection("other", registry.Profile{})
			f.Submit(func(s *registry.Submission) { s.Collection = "other" })
			f.Renewal("worker-1", registry.Expand, 2)
			return f.Submit()
		}, registry.ReasonQueued, []string{"position 2 of 2 for expand", "2 collections take turns"}, "", 0, "nothing"},
		{"queued_while_the_last_worker_stops", func(f *fixture) string {
			_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{
				ID: "worker-1", Capacity: map[registry.Stage]int{registry.Expand: 1}, Draining: true,
			}})
			f.Must(err)
			return f.Submit()
		}, registry.ReasonQueued, []string{"the last worker that serves expand is stopping"}, "", 0, "start a worker"},
		{"crowded", func(f *fixture) string {
			jobs := f.WaitingAt(registry.Download, registrytest.Mnemonic, 4, false)
			f.Announce(registry.Download, 4, 2)
			f.Take(registry.Download, jobs[0])
			f.Take(registry.Download, jobs[1])
			return jobs[3]
		}, registry.ReasonCrowded, []string{
			"of the 4 slots at download, collection " + registrytest.Mnemonic + " has the 2 that one collection may have; the others (2) are kept for other collections and uploads",
			"position 2 of 2 for download",
		}, "", 0, "nothing: it starts when a running one ends"},
		{"crowded_by_many_collections", func(f *fixture) string {
			f.Collections("a", "b")
			first := f.WaitingAt(registry.Download, "a", 2, false)
			second := f.WaitingAt(registry.Download, "b", 1, false)
			f.Announce(registry.Download, 4, 2)
			f.Take(registry.Download, first[0])
			f.Take(registry.Download, first[1])
			f.Take(registry.Download, second[0])
			return f.WaitingAt(registry.Download, registrytest.Mnemonic, 1, false)[0]
		}, registry.ReasonCrowded, []string{"of the 4 slots at download, all but those for uploads (1) are taken, 0 of them by collection " + registrytest.Mnemonic}, "", 0, "nothing"},
		{"an_upload_is_not_crowded", func(f *fixture) string {
			jobs := f.WaitingAt(registry.Download, registrytest.Mnemonic, 2, false)
			f.Announce(registry.Download, 4, 2)
			f.Take(registry.Download, jobs[0])
			f.Take(registry.Download, jobs[1])
			return f.WaitingAt(registry.Download, registrytest.Mnemonic, 1, true)[0]
		}, registry.ReasonQueued, []string{"position 1 of 1 for download"}, "", 0, "nothing"},
		{"blocked", func(f *fixture) string {
			batch, _ := f.Batch(5)
			return batch
		}, registry.ReasonBlocked, []string{"waits for 5 items: job-1 ", "(Pending)", " and 2 more"}, "", 0, "nothing"},
		{"blocked_by_what_needs_an_act", func(f *fixture) string {
			batch, jobs := f.Batch(2)
			f.TakeItem(jobs[0])
			f.Hold(registry.HoldItem, jobs[1])
			return batch
		}, registry.ReasonBlocked, []string{"waits for 2 items", "(Estimating)", "(Held)"}, "", 0, "release the hold on item "},
		{"locked", func(f *fixture) string {
			c := f.Processing(2)
			f.Named(c[0].Lease, "x")
			f.Waits(c[1].Lease, c[0].Lease, "x")
			f.Snooze(c[1].Lease)
			return c[1].Item.ID
		}, registry.ReasonLocked, []string{"waits for item job-1 ", "(Processing)", "works on the same object", ":x"}, "", 0, "nothing: it continues when that item has settled"},
		{"locked_by_what_needs_an_act", func(f *fixture) string {
			c := f.Processing(2)
			id := f.Named(c[0].Lease, "x")
			f.Intend(c[0].Lease, id.ARK, 1, `"plan"`)
			f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage is down"})
			f.Waits(c[1].Lease, c[0].Lease, "x")
			f.Snooze(c[1].Lease)
			return c[1].Item.ID
		}, registry.ReasonLocked, []string{"waits for item job-1 ", "(Failed)"}, "", 0, "requeue item "},
		{"retry", func(f *fixture) string {
			id := f.Job(registry.Download)
			for range 2 {
				f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Error: "connection reset"})
			}
			f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Error: "connection reset", Delay: 4 * time.Minute})
			return id
		}, registry.ReasonNotDue, []string{"retry at 12:04:00 UTC (attempt 4 of 5: connection reset)"}, "", 0, "nothing"},
		{"retry_that_somebody_can_help", func(f *fixture) string {
			id := f.Job(registry.Download)
			f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Error: "401", Remedy: "set the credential", Delay: time.Minute})
			return id
		}, registry.ReasonNotDue, []string{"attempt 2 of 5: 401"}, "", 0, "set the credential; it is retried automatically"},
		{"retry_that_nobody_need_help_any_more", func(f *fixture) string {
			id := f.Job(registry.Download)
			f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Error: "401", Remedy: "set the credential"})
			f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Error: "busy", Delay: time.Minute})
			return id
		}, registry.ReasonNotDue, []string{"attempt 3 of 5: busy"}, "", 0, "nothing: it is retried automatically"},
		{"snoozed_for_a_service", func(f *fixture) string {
			id := f.Job(registry.Process)
			for range 2 {
				f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNotDue, Error: "EZID is away", Remedy: "see to EZID", Delay: time.Minute})
				f.Clock.Pass(time.Minute)
			}
			f.Clock.Pass(-time.Minute)
			return id
		}, registry.ReasonNotDue, []string{"EZID is away; next check at 12:02:00 UTC"}, "", 0, "see to EZID; it is checked again automatically"},
		{"failed_and_somebody_can_help", func(f *fixture) string {
			id := f.Job(registry.Download)
			f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "401", Remedy: "set the credential"})
			return id
		}, registry.ReasonSettled, []string{"it failed at download: 401"}, "", 0, "set the credential, then requeue the item"},
		{"retry_on_another_day", func(f *fixture) string {
			id := f.Submit()
			f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Error: "closed", Delay: 24 * time.Hour})
			return id
		}, registry.ReasonNotDue, []string{"retry at 2026-03-02 12:00:00 UTC"}, "", 0, "nothing"},
		{"snoozed_for_room", func(f *fixture) string {
			const mib = 1 << 20
			id := f.Job(registry.Provision)
			for range 3 { // and still no room
				l := f.TakeItem(id).Lease
				full := f.NoRoom(l, registry.Reservation{Volume: "staging", Bytes: 12 * mib, Used: 83 * mib, Total: 100 * mib, Threshold: 0.8})
				f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: full.Error(), Delay: time.Minute})
				f.Clock.Pass(time.Minute)
			}
			f.Clock.Pass(-time.Minute)
			return id
		}, registry.ReasonNoSpace, []string{"needs 12 MiB", "volume staging is 83 % used", "0 bytes reserved", "next check at 12:03:00 UTC"}, "", 0, "free room on the volume"},
		{"running", func(f *fixture) string {
			id := f.Job(registry.Download)
			f.Clock.Pass(time.Minute)
			l := f.TakeItem(id).Lease
			f.Clock.Pass(4 * time.Minute)
			b := registrytest.Beat(l)
			b.Progress = []registry.Progress{{Title: "files", Unit: "files", Position: 48, End: 70}, {Title: "bytes", Unit: "bytes", Position: 3 << 29, End: 3 << 30}, {Title: "rows", Unit: "rows", Position: 2, End: -1}}
			f.Renew(b)
			return id
		}, registry.ReasonRunning, []string{"running download on worker-1 since 12:01:00 UTC, lease until 12:05:30 UTC", "48 of 70 files", "1.5 GiB of 3 GiB", "2 rows"}, "worker-1", time.Minute, ""},
		{"running_before_a_hold", func(f *fixture) string {
			id := f.Job(registry.Download)
			f.TakeItem(id)
			f.Hold(registry.HoldStage, "process")
			return id
		}, registry.ReasonRunning, []string{"before its next step: stage process is held by admin"}, "worker-1", 0, "release the hold on stage process"},
		{"running_past_its_lease", func(f *fixture) string {
			id := f.Submit()
			f.TakeItem(id)
			f.Clock.Pass(time.Minute)
			return id
		}, registry.ReasonRunning, []string{"was running expand on worker-1, whose lease ended at 12:00:30 UTC", "another worker will take over"}, "worker-1", 0, ""},
		{"failed_on_its_content", func(f *fixture) string {
			id := f.Submit()
			f.FailItem(id, registry.ContentFault)
			return id
		}, registry.ReasonSettled, []string{"it failed at expand: it is broken"}, "", 0, "the producer corrects the deposit"},
		{"completed", func(f *fixture) string {
			id := f.Job(registry.Notify)
			f.Finish(id)
			return id
		}, registry.ReasonSettled, []string{"Completed"}, "", 0, ""},
	}
}

func whyUnknown(f *fixture) {
	_, err := f.Store.Why(f.Context(), "unknown")
	f.Is(err, registry.ErrNotFound)
}

// whyLife: at every moment of an item's life there is an answer, with a time.
func whyLife(f *fixture) {
	batch, jobs := f.Batch(1)
	answered := func() {
		f.Helper()
		for _, id := range []string{batch, jobs[0]} {
			w, err := f.Store.Why(f.Context(), id)
			f.Must(err)
			f.stated(w)
			if w.ItemID != id || w.Reason == "" || w.Sentence == "" || w.Since.IsZero() {
				f.Errorf("why: %+v", w)
			}
		}
	}
	for !f.Item(batch).Status.Settled() {
		answered()
		next := jobs[0]
		if f.Item(next).Status.Settled() {
			next = batch
		}
		c := f.TakeItem(next)
		answered()
		f.Done(c.Lease)
	}
	answered()
}
