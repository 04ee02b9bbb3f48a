// Package schedulestest is the conformance kit of schedules.
package schedulestest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{registrytest.NewTopic("schedule", scheduleTests())}
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// harvest is the function that the schedules call.
var harvest = registry.Function{Name: "harvest", Title: "Harvest", Args: json.RawMessage(
	`{"type":"object","properties":{"source":{"type":"string"}},"required":["source"],"additionalProperties":false}`)}

// ask returns the request of a schedule that fires at each full hour.
func ask(change ...func(*registry.ScheduleRequest)) registry.ScheduleRequest {
	r := registry.ScheduleRequest{Name: "nightly", Actor: "curator", ScheduleSpec: registry.ScheduleSpec{
		Cron: "0 * * * *", Zone: "UTC", Task: &registry.ScheduledTask{Function: harvest.Name, Args: json.RawMessage(`{"source":"a"}`)},
	}}
	for _, c := range change {
		c(&r)
	}
	return r
}

func with(set func(*registry.ScheduleSpec)) func(*registry.ScheduleRequest) {
	return func(r *registry.ScheduleRequest) { set(&r.ScheduleSpec) }
}

// add announces the function and adds a schedule.
func (f *fixture) add(change ...func(*registry.ScheduleRequest)) registry.Schedule {
	f.Helper()
	f.Must(f.Store.Announce(f.Context(), []registry.Function{harvest}))
	s, err := f.Store.AddSchedule(f.Context(), ask(change...))
	f.Must(err)
	return s
}

// fire fires what is due after some time, and returns what happened.
func (f *fixture) fire(after time.Duration) []registry.Firing {
	f.Helper()
	f.Clock.Pass(after)
	fired, err := f.Store.FireSchedules(f.Context())
	f.Must(err)
	return fired
}

// wants compares firings with "15:04 outcome", oldest first.
func (f *fixture) wants(got []registry.Firing, want ...string) {
	f.Helper()
	var texts []string
	for _, g := range got {
		text := g.Tick.Format("15:04 ") + string(g.Outcome)
		if g.Missed > 0 {
			text += fmt.Sprintf(" %d from %s", g.Missed, g.First.Format("15:04"))
		}
		texts = append(texts, text)
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		f.Fatalf("firings (-want +got):\n%s", diff)
	}
}

// finish completes an item.
func (f *fixture) finish(id string) {
	f.Helper()
	c, err := f.Store.Claim(f.Context(), registry.ClaimRequest{RequestID: f.Unique("r"), Stage: registry.Run.Of(harvest.Name), Hint: id, Worker: f.Unique("w"), Lease: time.Minute, MaxAttempts: 5})
	f.Must(err)
	if c.Item.ID != id {
		f.Fatalf("claimed %s, not %s", c.Item.ID, id)
	}
	_, err = f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	f.Must(err)
}

// events returns the types of the events about the schedule, oldest first.
func (f *fixture) events() (types []string) {
	f.Helper()
	all, err := f.Store.Feed(f.Context(), registry.FeedQuery{ItemID: registry.ScheduleOwner("nightly"), Limit: 500})
	f.Must(err)
	for _, e := range all {
		types = append(types, e.Type)
	}
	return types
}

// dryRun: it returns the schedule as it would be, or the refusal, and leaves no trace. The next times
// of a paused schedule are shown, too.
func dryRun(f *fixture) {
	f.Must(f.Store.Announce(f.Context(), []registry.Function{harvest}))
	try := ask(func(r *registry.ScheduleRequest) { r.DryRun = true })
	would, err := f.Store.AddSchedule(f.Context(), try)
	f.Must(err)
	if len(would.Next) != registry.NextTimes || would.Name != "nightly" {
		f.Errorf("the new schedule would be %+v", would)
	}
	if _, err := f.Store.Schedule(f.Context(), "nightly"); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("the dry run left a schedule: %v", err)
	}
	if _, err := f.Store.EditSchedule(f.Context(), try); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("a dry run of an edit of nothing: %v", err)
	}
	f.add()
	before, err := f.Store.PauseSchedule(f.Context(), "nightly", "why not", "ann")
	f.Must(err)
	events := f.events()
	try.Cron, try.Version = "30 * * * *", before.Version
	would, err = f.Store.EditSchedule(f.Context(), try)
	f.Must(err)
	if len(would.Next) != registry.NextTimes || would.Next[0].Minute() != 30 || would.Paused == nil || would.Version != before.Version+1 {
		f.Errorf("the edited schedule would be %+v", would)
	}
	try.Version = 7
	if _, err := f.Store.EditSchedule(f.Context(), try); !errors.Is(err, registry.ErrScheduleChanged) {
		f.Errorf("a dry run of an edit of another version: %v", err)
	}
	try.Cron = "61 * * * *"
	if _, err := f.Store.EditSchedule(f.Context(), try); !errors.Is(err, registry.ErrInvalid) {
		f.Errorf("a dry run of a wrong expression: %v", err)
	}
	after, err := f.Store.Schedule(f.Context(), "nightly")
	f.Must(err)
	if diff := cmp.Diff(before, after) + cmp.Diff(events, f.events()); diff != "" {
		f.Errorf("dry runs left traces (-before +after):\n%s", diff)
	}
}

func scheduleTests() map[string]func(*fixture) {
	return map[string]func(*fixture){
		"a_dry_run_answers_as_the_change_and_changes_nothing": dryRun,
		// C28: a scheduled task is an item like any other.
		"C28_fires_into_the_same_queue": func(f *fixture) {
			s := f.add()
			if len(s.Next) != registry.NextTimes || !s.Next[0].Equal(time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)) || s.Last != nil || s.Version != 1 || s.Overlap != registry.OverlapSkip {
				f.Fatalf("the new schedule is %+v", s)
			}
			f.wants(f.fire(time.Hour - time.Second))
			fired := f.fire(time.Second)
			f.wants(fired, "13:00 submitted")
			it, err := f.Store.Item(f.Context(), fired[0].ItemID)
			f.Must(err)
			var spec registry.TaskSpec
			f.Must(json.Unmarshal(it.Spec, &spec))
			name, tick, ok := registry.ScheduledBy(spec.Cause)
			if it.Action != registry.Task || it.Status != registry.Pending || !ok || name != "nightly" || !tick.Equal(fired[0].Tick) || string(spec.Args) != `{"source":"a"}` {
				f.Errorf("item %+v, %s", it, it.Spec)
			}
			f.wants(f.fire(0))
			f.finish(it.ID)
			s, err = f.Store.Schedule(f.Context(), "nightly")
			f.Must(err)
			if s.Last == nil || s.Last.ItemID != it.ID || !s.Next[0].Equal(tick.Add(time.Hour)) {
				f.Errorf("after a firing: %+v", s)
			}
			if got := f.events(); !slices.Equal(got, []string{"schedule-set", "schedule-fired"}) {
				f.Errorf("events %v", got)
			}
		},
		"a_repeat_of_an_add_is_harmless_and_another_conflicts": func(f *fixture) {
			first := f.add()
			again := f.add()
			if first.ID != again.ID {
				f.Errorf("the repeat made %s beside %s", again.ID, first.ID)
			}
			_, err := f.Store.AddSchedule(f.Context(), ask(with(func(s *registry.ScheduleSpec) { s.Cron = "5 * * * *" })))
			f.Is(err, registry.ErrScheduleExists)
		},
		"what_cannot_be_is_refused": func(f *fixture) {
			f.add()
			for name, change := range map[string]func(*registry.ScheduleRequest){
				"name": func(r *registry.ScheduleRequest) { r.Name = "a b" }, "cron": func(r *registry.ScheduleRequest) { r.Cron = "x" }, "no such day": func(r *registry.ScheduleRequest) { r.Cron = "0 0 30 2 *" },
				"zone": func(r *registry.ScheduleRequest) { r.Zone = "Mars/Olympus" }, "jitter": func(r *registry.ScheduleRequest) { r.JitterSeconds = -1 },
				"overlap": func(r *registry.ScheduleRequest) { r.Overlap = "x" }, "catch-up": func(r *registry.ScheduleRequest) { r.CatchUp = "x" },
				"task":    func(r *registry.ScheduleRequest) { r.Task = nil },
				"args":    func(r *registry.ScheduleRequest) { r.Task.Args = json.RawMessage(`{}`) },
				"no JSON": func(r *registry.ScheduleRequest) { r.Task.Args = json.RawMessage(`{`) },
				"large args": func(r *registry.ScheduleRequest) {
					r.Task.Args = json.RawMessage(`"` + strings.Repeat("x", registry.MostScheduleArgs) + `"`)
				},
				"many spaces": func(r *registry.ScheduleRequest) { r.Cron = strings.Repeat("1,", 200) + "1 * * * *" },
			} {
				_, err := f.Store.AddSchedule(f.Context(), ask(func(r *registry.ScheduleRequest) { r.Name = "other" }, change))
				if !errors.Is(err, registry.ErrInvalid) {
					f.Errorf("%s: %v", name, err)
				}
			}
			for _, change := range []func(*registry.ScheduleRequest){
				func(r *registry.ScheduleRequest) { r.Task.Function = "nobody-knows" }, func(r *registry.ScheduleRequest) { r.Task.Collection = "nowhere" },
			} {
				_, err := f.Store.AddSchedule(f.Context(), ask(func(r *registry.ScheduleRequest) { r.Name = "other" }, change))
				f.Is(err, registry.ErrNotFound)
			}
		},
		"no_overlap_while_an_item_has_not_ended": func(f *fixture) {
			f.add()
			first := f.fire(time.Hour)
			skipped := f.fire(time.Hour)
			f.wants(skipped, "14:00 skipped")
			if !strings.Contains(skipped[0].Reason, first[0].ItemID) {
				f.Errorf("the reason is %q", skipped[0].Reason)
			}
			f.finish(first[0].ItemID)
			f.wants(f.fire(time.Hour), "15:00 submitted")
			if got := f.events(); !slices.Contains(got, registry.EventScheduleSkipped) {
				f.Errorf("events %v", got)
			}
		},
		"overlap_is_allowed": func(f *fixture) {
			f.add(with(func(s *registry.ScheduleSpec) { s.Overlap = registry.OverlapAllow }))
			f.wants(f.fire(time.Hour), "13:00 submitted")
			f.wants(f.fire(time.Hour), "14:00 submitted")
		},
		"catch_up_once": func(f *fixture) {
			f.add()
			f.wants(f.fire(3*time.Hour+30*time.Minute), "14:00 missed 2 from 13:00", "15:00 submitted")
		},
		"catch_up_skip": func(f *fixture) {
			f.add(with(func(s *registry.ScheduleSpec) { s.CatchUp = registry.CatchUpSkip }))
			f.wants(f.fire(3*time.Hour+30*time.Minute), "15:00 missed 3 from 13:00")
			f.wants(f.fire(30*time.Minute+registry.ScheduleLate), "16:00 submitted")
			if got := f.events(); !slices.Equal(got, []string{"schedule-set", "schedule-missed", "schedule-fired"}) {
				f.Errorf("events %v", got)
			}
		},
		// Each item waits for the one before.
		"catch_up_all_in_order": func(f *fixture) {
			f.add(with(func(s *registry.ScheduleSpec) { s.CatchUp = registry.CatchUpAll }))
			fired := f.fire(3*time.Hour + 30*time.Minute)
			f.wants(fired, "13:00 submitted", "14:00 submitted", "15:00 submitted")
			for i, g := range fired {
				it, err := f.Store.Item(f.Context(), g.ItemID)
				f.Must(err)
				if blocked := it.BlockerCount > 0; blocked != (i > 0) {
					f.Errorf("item %d has %d blockers", i, it.BlockerCount)
				}
			}
			for _, g := range fired {
				f.finish(g.ItemID)
			}
			f.wants(f.fire(30*time.Minute), "16:00 submitted")
		},
		"catch_up_all_is_bounded": func(f *fixture) {
			f.add(with(func(s *registry.ScheduleSpec) { s.CatchUp = registry.CatchUpAll }))
			fired := f.fire((registry.MostCatchUp+7)*time.Hour + 30*time.Minute)
			if len(fired) != registry.MostCatchUp+1 || fired[0].Missed != 7 {
				f.Errorf("%d firings, the first %+v", len(fired), fired[0])
			}
		},
		// Longer than one transaction looks at, so the next rounds look at the rest.
		"a_long_downtime_is_caught_up_in_portions": func(f *fixture) {
			for _, c := range registry.CatchUps() {
				_ = f.add(func(r *registry.ScheduleRequest) { r.Name, r.Cron, r.CatchUp = "nightly-"+string(c), "* * * * *", c })
			}
			const minutes = 25_000
			missed, done := map[string]int64{}, map[string]int64{}
			f.Clock.Pass(minutes * time.Minute)
			for range 4 {
				for _, g := range f.fire(0) {
					missed[g.Schedule] += g.Missed
					if g.Missed == 0 {
						done[g.Schedule]++
					}
				}
			}
			for _, c := range registry.CatchUps() {
				name := "nightly-" + string(c)
				if got := missed[name] + done[name]; got != minutes {
					f.Errorf("%s: %d of %d times have a record", c, got, minutes)
				}
				if want := map[registry.CatchUp]int64{registry.CatchUpSkip: 2, registry.CatchUpOnce: 1, registry.CatchUpAll: registry.MostCatchUp}[c]; done[name] != want {
					f.Errorf("%s: %d firings, want %d", c, done[name], want)
				}
			}
		},
		"jitter_delays_the_item": func(f *fixture) {
			s := f.add(with(func(s *registry.ScheduleSpec) { s.JitterSeconds, s.Overlap = 600, registry.OverlapAllow }))
			delays := map[time.Duration]bool{}
			for range 5 {
				fired := f.fire(time.Hour)
				it, err := f.Store.Item(f.Context(), fired[0].ItemID)
				f.Must(err)
				d := it.RunAt.Sub(fired[0].Tick)
				if delays[d] = true; d < 0 || d >= 10*time.Minute {
					f.Errorf("delayed by %s", d)
				}
			}
			if len(delays) < 2 {
				f.Errorf("all delays are %v (schedule %s)", delays, s.ID)
			}
		},
		// Nothing is lost silently.
		"what_does_not_fit_any_more_is_recorded_as_failed": func(f *fixture) {
			f.add()
			changed := harvest
			changed.Args = json.RawMessage(`{"type":"object","required":["since"]}`)
			f.Must(f.Store.Announce(f.Context(), []registry.Function{changed}))
			fired := f.fire(time.Hour)
			f.wants(fired, "13:00 failed")
			if fired[0].ItemID != "" || !strings.Contains(fired[0].Reason, "since") {
				f.Errorf("the record is %+v", fired[0])
			}
			if got := f.events(); !slices.Contains(got, registry.EventScheduleFailed) {
				f.Errorf("events %v", got)
			}
			_, err := f.Store.RunSchedule(f.Context(), registry.ScheduleRun{Name: "nightly", Actor: "curator"})
			f.Is(err, registry.ErrInvalid)
			f.Must(f.Store.Announce(f.Context(), []registry.Function{harvest}))
			f.wants(f.fire(time.Hour), "14:00 submitted")
		},
		"C16_nothing_is_submitted_while_submissions_are_not_accepted": func(f *fixture) {
			f.add()
			f.Must(f.Store.SetAccepting(f.Context(), registry.Accepting{Reason: "we move", Actor: "admin"}))
			fired := f.fire(time.Hour)
			f.wants(fired, "13:00 skipped")
			if !strings.Contains(fired[0].Reason, "we move") {
				f.Errorf("the reason is %q", fired[0].Reason)
			}
			f.Must(f.Store.SetAccepting(f.Context(), registry.Accepting{On: true, Actor: "admin"}))
			f.wants(f.fire(time.Hour), "14:00 submitted")
		},
		"pause_and_resume": func(f *fixture) {
			f.add()
			s, err := f.Store.PauseSchedule(f.Context(), "nightly", "the source moves", "ann")
			f.Must(err)
			if s.Paused == nil || s.Paused.Reason != "the source moves" || s.Paused.Actor != "ann" || len(s.Next) != 0 {
				f.Errorf("paused: %+v", s)
			}
			f.wants(f.fire(2*time.Hour + time.Minute))
			s, err = f.Store.ResumeSchedule(f.Context(), "nightly", "ben")
			f.Must(err)
			if s.Paused != nil || len(s.Next) == 0 {
				f.Errorf("resumed: %+v", s)
			}
			_, err = f.Store.ResumeSchedule(f.Context(), "nightly", "ben")
			f.Must(err)
			f.wants(f.fire(time.Hour), "15:00 submitted")
			if got := f.events(); !slices.Equal(got, []string{"schedule-set", "schedule-paused", "schedule-resumed", "schedule-fired"}) {
				f.Errorf("events %v", got)
			}
		},
		"edit": func(f *fixture) {
			f.add()
			half := ask(with(func(s *registry.ScheduleSpec) { s.Cron = "30 * * * *" }), func(r *registry.ScheduleRequest) { r.Version = 1 })
			s, err := f.Store.EditSchedule(f.Context(), half)
			f.Must(err)
			if s.Version != 2 || s.Next[0].Minute() != 30 {
				f.Errorf("edited: %+v", s)
			}
			again, err := f.Store.EditSchedule(f.Context(), half) // the answer was lost
			f.Must(err)
			if again.Version != 2 {
				f.Errorf("the repeat made version %d", again.Version)
			}
			_, err = f.Store.EditSchedule(f.Context(), ask(func(r *registry.ScheduleRequest) { r.Version = 1 }))
			f.Is(err, registry.ErrScheduleChanged)
			_, err = f.Store.EditSchedule(f.Context(), ask(func(r *registry.ScheduleRequest) { r.Name = "other" }))
			f.Is(err, registry.ErrNotFound)
			f.wants(f.fire(time.Hour), "12:30 submitted")
		},
		"run_now": func(f *fixture) {
			f.add()
			_, err := f.Store.PauseSchedule(f.Context(), "nightly", "not by itself", "ann")
			f.Must(err)
			run := registry.ScheduleRun{Name: "nightly", Actor: "ann", IdempotencyKey: "k"}
			first, err := f.Store.RunSchedule(f.Context(), run)
			f.Must(err)
			again, err := f.Store.RunSchedule(f.Context(), run)
			f.Must(err)
			if first.ItemID == "" || again.ID != first.ID || first.Actor != "ann" || first.Outcome != registry.FiringSubmitted {
				f.Errorf("ran %+v, then %+v", first, again)
			}
			var busy *registry.ScheduleBusy
			if _, err := f.Store.RunSchedule(f.Context(), registry.ScheduleRun{Name: "nightly", Actor: "ann"}); !errors.As(err, &busy) || busy.ItemID != first.ItemID {
				f.Errorf("while it runs: %v", err)
			}
			f.finish(first.ItemID)
			if _, err := f.Store.RunSchedule(f.Context(), registry.ScheduleRun{Name: "nightly", Actor: "ann"}); err != nil {
				f.Error(err)
			}
			_, err = f.Store.RunSchedule(f.Context(), registry.ScheduleRun{Name: "other", Actor: "ann"})
			f.Is(err, registry.ErrNotFound)
		},
		"remove": func(f *fixture) {
			f.add()
			fired := f.fire(time.Hour)
			f.Must(f.Store.RemoveSchedule(f.Context(), "nightly", "ann"))
			f.Is(f.Store.RemoveSchedule(f.Context(), "nightly", "ann"), registry.ErrNotFound)
			_, err := f.Store.Firings(f.Context(), "nightly", "", 0)
			f.Is(err, registry.ErrNotFound)
			f.wants(f.fire(time.Hour))
			f.finish(fired[0].ItemID)
			second := f.add()
			page, err := f.Store.Firings(f.Context(), "nightly", "", 0)
			f.Must(err)
			if len(page.Rows) != 0 || second.Last != nil {
				f.Errorf("the new schedule has the firings of the old: %+v", page.Rows)
			}
		},
		"firings_by_page": func(f *fixture) {
			f.add()
			for range 5 {
				f.fire(time.Hour)
			}
			var ticks []string
			for after := ""; ; {
				page, err := f.Store.Firings(f.Context(), "nightly", after, 2)
				f.Must(err)
				for _, g := range page.Rows {
					ticks = append(ticks, g.Tick.Format("15"))
				}
				if after = page.Next; after == "" {
					break
				}
			}
			if got := strings.Join(ticks, " "); got != "17 16 15 14 13" {
				f.Errorf("firings %s", got)
			}
			all, err := f.Store.Schedules(f.Context())
			f.Must(err)
			if len(all) != 1 || all[0].Last == nil || all[0].Last.Tick.Hour() != 17 {
				f.Errorf("schedules %+v", all)
			}
		},
		// The record keeps the item that has not ended, so that the schedule still does not overlap.
		"old_firings_go_but_none_that_counts": func(f *fixture) {
			f.add(with(func(s *registry.ScheduleSpec) { s.Cron = "* * * * *" }))
			first := f.fire(time.Minute)
			for range registry.MostFirings + 20 {
				f.Clock.Pass(time.Minute)
				if _, err := f.Store.FireSchedules(f.Context()); err != nil {
					f.Fatal(err)
				}
			}
			n, oldest := 0, ""
			for after := ""; ; {
				page, err := f.Store.Firings(f.Context(), "nightly", after, 500)
				f.Must(err)
				n += len(page.Rows)
				oldest = page.Rows[len(page.Rows)-1].ItemID
				if after = page.Next; after == "" {
					break
				}
			}
			if n != registry.MostFirings+1 || oldest != first[0].ItemID {
				f.Errorf("%d firings are kept, the oldest of item %s", n, oldest)
			}
			f.wants(f.fire(0))
			f.finish(first[0].ItemID)
			if got := f.fire(time.Minute); got[0].Outcome != registry.FiringSubmitted {
				f.Errorf("fired %+v", got)
			}
		},
		"a_clock_that_is_set_back_fires_nothing_twice": func(f *fixture) {
			f.add(with(func(s *registry.ScheduleSpec) { s.Overlap = registry.OverlapAllow }))
			f.wants(f.fire(2*time.Hour), "13:00 missed 1 from 13:00", "14:00 submitted")
			f.wants(f.fire(-90 * time.Minute))
			// Now the next time is computed from the present, 12:30.
			_, err := f.Store.EditSchedule(f.Context(), ask(with(func(s *registry.ScheduleSpec) { s.Overlap, s.CatchUp = registry.OverlapAllow, registry.CatchUpAll })))
			f.Must(err)
			f.wants(f.fire(30 * time.Minute))
			f.wants(f.fire(2*time.Hour), "15:00 submitted")
		},
		"racing_processes_fire_each_time_once": func(f *fixture) {
			f.add(with(func(s *registry.ScheduleSpec) { s.Overlap = registry.OverlapAllow }))
			for range 5 {
				f.Clock.Pass(time.Hour)
				var mu sync.Mutex
				var fired []registry.Firing
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						got, err := f.Store.FireSchedules(f.Context())
						mu.Lock()
						defer mu.Unlock()
						fired = append(fired, got...)
						if err != nil {
							f.Error(err)
						}
					})
				}
				all.Wait()
				if len(fired) != 1 || fired[0].Outcome != registry.FiringSubmitted {
					f.Errorf("fired %+v", fired)
				}
			}
		},
	}
}
