package sqlstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// processGroup makes requests about processes that come in one group and share their statements.
type processGroup struct {
	*testing.T
	s       *sqlstore.Store
	claims  int
	settled map[string]bool // items of steps
}

func (g *processGroup) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func named(id string) registry.ProcessKey {
	return registry.ProcessKey{Namespace: "test", ProcessID: id}
}

// begun starts a process, whose first step ends so.
func (g *processGroup) begun(id string, do registry.StepThen) {
	g.Helper()
	_, err := g.s.InitProcess(g.Context(), registry.NewProcess{ProcessKey: named(id)})
	g.must(err)
	g.must(g.end(g.claim(), do))
}

func (g *processGroup) claim() registry.Claim {
	g.Helper()
	c, err := g.next()
	g.must(err)
	return c
}

func (g *processGroup) next() (registry.Claim, error) {
	g.claims++
	return g.s.Claim(g.Context(), registry.ClaimRequest{
		RequestID: fmt.Sprint(g.claims), Stage: "step:test", Worker: "w", Lease: time.Hour, MaxAttempts: 5, StuckAfter: time.Hour,
	})
}

// end settles a step, which makes one event.
func (g *processGroup) end(c registry.Claim, then registry.StepThen) error {
	text, err := json.Marshal(registry.StepResult{
		Events: []registry.NewProcessEvent{{Payload: json.RawMessage(`1`)}}, Response: json.RawMessage(`"yes"`), Then: then,
	})
	if err == nil {
		_, err = g.s.Settle(g.Context(), registry.Settlement{
			Lease: c.Lease, Outcome: registry.OutcomeDone, MaxAttempts: 5, Results: map[string]json.RawMessage{registry.ResultStep: text},
		})
	}
	return err
}

// gathered makes requests that come in one group, and returns their errors.
func (g *processGroup) gathered(fault func(query string) error, all []func() error) []error {
	return gather(g.s, len(all), fault, func(i int) error { return all[i]() })
}

// look returns the answer of a step as it is now.
func (g *processGroup) look(itemID string) registry.Answer {
	g.Helper()
	ctx, cancel := context.WithCancel(g.Context())
	cancel()
	a, err := g.s.AwaitAnswer(ctx, itemID)
	g.must(err)
	return a
}

// steps returns the calls and repairs of a process in their order.
func (g *processGroup) steps(id string) (items []string) {
	g.Helper()
	page, err := g.s.TraceProcess(g.Context(), registry.TraceQuery{ProcessKey: named(id)})
	g.must(err)
	for _, step := range page.Rows {
		if !step.Kind.IsTimer() && step.Kind != registry.StepInit {
			items = append(items, step.ItemID)
		}
	}
	return items
}

// round claims all steps that may run now, at most one of a process and each the first that is not
// settled, and settles them in one group, beside settlements that are refused. then says how a step
// of a process ends.
func (g *processGroup) round(fault func(query string) error, then map[string]registry.StepThen) (ran []string) {
	g.Helper()
	var claims []registry.Claim
	var all []func() error
	for {
		c, err := g.next()
		if errors.As(err, new(*registry.NotClaimable)) {
			break
		}
		g.must(err)
		id := c.Item.Name
		if slices.Contains(ran, id) {
			g.Errorf("two steps of process %s at once", id)
		}
		waiting := slices.DeleteFunc(g.steps(id), func(item string) bool { return g.settled[item] })
		if len(waiting) > 0 && waiting[0] != c.Item.ID {
			g.Errorf("process %s: step %s goes before %v", id, c.Item.ID, waiting)
		}
		ran, claims = append(ran, id), append(claims, c)
		all = append(all, func() error { return g.end(c, then[id]) })
	}
	if len(claims) == 0 {
		return nil
	}
	last := len(claims) - 1
	lost := claims[last]
	lost.Lease.N++
	all[last] = func() error { return g.end(claims[last], registry.StepThen{Do: "dance"}) }
	errs := g.gathered(fault, append(all, func() error { return g.end(lost, registry.StepThen{}) }))
	if !errors.Is(errs[last], registry.ErrInvalid) || !errors.Is(errs[last+1], registry.ErrClaimLost) {
		g.Errorf("settlements that are refused: %v and %v", errs[last], errs[last+1])
	}
	errs[last] = g.end(claims[last], then[ran[last]])
	for i, c := range claims {
		if errs[i] != nil {
			g.Errorf("settle a step of process %s: %v", ran[i], errs[i])
		}
		if a := g.look(c.Item.ID); a.Status != registry.Completed || string(a.Response) != `"yes"` {
			g.Errorf("answer of process %s: %+v", ran[i], a)
		}
		g.settled[c.Item.ID] = true
	}
	return ran
}

// TestProcess_Group makes requests about processes, and later settlements of their steps, that come in
// one group. Each is answered as if it had come alone: neither one that is refused nor one that the
// database cannot store touches its neighbours, and steps run one at a time in the order of their calls.
func TestProcess_Group(t *testing.T) {
	for _, one := range []struct {
		name    string
		url     func(testing.TB) string
		badText bool // the group is undone, and its requests run one by one
	}{
		{"SQLite", sqlstoretest.SQLite, false},
		{"PostgreSQL", sqlstoretest.Postgres, false},
		{"PostgreSQL and bad text", sqlstoretest.Postgres, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			g := &processGroup{T: t, s: openURL(t, one.url(t), newClock().now), settled: map[string]bool{}}
			g.must(g.s.AnnounceNamespaces(t.Context(), []registry.Namespace{{Name: "test"}}))
			far := registry.StepThen{Do: registry.ThenContinue, At: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
			g.begun("timed", far)
			g.begun("keyed", registry.StepThen{})
			g.begun("removes", registry.StepThen{})
			g.begun("removed", registry.StepThen{})
			g.begun("ends", registry.StepThen{})
			g.begun("over", registry.StepThen{Do: registry.ThenDone})
			g.begun("broken", registry.StepThen{Do: registry.ThenContinue})
			_, err := g.s.Settle(t.Context(), registry.Settlement{Lease: g.claim().Lease, Outcome: registry.OutcomeFailed, Error: "no", Class: registry.SystemFault})
			g.must(err)
			g.begun("runs", registry.StepThen{Do: registry.ThenContinue})
			timer := g.claim() // calls go behind it

			var all []func() error
			answers := map[string][]*registry.Answer{}
			at := map[string][]int{} // where the requests of a name are
			add := func(what string, do func(a *registry.Answer) error) {
				a := new(registry.Answer)
				answers[what], at[what] = append(answers[what], a), append(at[what], len(all))
				all = append(all, func() error { return do(a) })
			}
			call := func(what, id, args, key string) {
				add(what, func(a *registry.Answer) (err error) {
					*a, err = g.s.CallProcess(t.Context(), registry.NewCall{ProcessKey: named(id), Args: json.RawMessage(args), IdempotencyKey: key})
					return err
				})
			}
			for i := range 5 {
				for _, id := range []string{"timed", "runs", "ends", "removes"} {
					call("calls", id, fmt.Sprint(i), "")
				}
			}
			for range 2 {
				call("unknown", "nowhere", `1`, "")
				call("over", "over", `1`, "")
				call("same key", "keyed", `1`, "same")
				add("init", func(a *registry.Answer) (err error) {
					*a, err = g.s.InitProcess(t.Context(), registry.NewProcess{ProcessKey: named("new")})
					return err
				})
				add("import", func(*registry.Answer) error {
					_, err := g.s.PutProcess(t.Context(), registry.PutProcess{
						ProcessKey: named("imported"), IdempotencyKey: "put", Timer: &registry.ProcessTimer{Kind: registry.StepTimeout, At: far.At},
					})
					return err
				})
				add("repair", func(a *registry.Answer) (err error) {
					*a, err = g.s.RepairProcess(t.Context(), registry.NewCall{ProcessKey: named("broken")})
					return err
				})
			}
			call("other arguments", "keyed", `2`, "bound")
			call("other arguments", "keyed", `3`, "bound")
			call("of another process", "keyed", `4`, "places")
			call("of another process", "ends", `4`, "places")
			call("removed", "removed", `1`, "")
			add("removal", func(*registry.Answer) error {
				return g.s.RemoveProcess(t.Context(), registry.ProcessAct{ProcessKey: named("removed"), Actor: "admin"})
			})
			if one.badText {
				call("bad text", "keyed", `1`, "\xff")
			}
			undone := false
			errs := g.gathered(func(query string) error {
				undone = undone || query == "SAVEPOINT w"
				return nil
			}, all)
			if undone != one.badText {
				t.Errorf("the requests ran one by one: %v", undone)
			}

			// good counts the requests of a name that succeeded; the others must have an error.
			good := func(what string, want int, is func(error) bool) {
				t.Helper()
				n := 0
				for _, i := range at[what] {
					if errs[i] == nil {
						n++
					} else if !is(errs[i]) {
						t.Errorf("%s: %v", what, errs[i])
					}
				}
				if n != want {
					t.Errorf("%s: %d requests succeeded, want %d", what, n, want)
				}
			}
			is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
			state := func(err error) bool { return errors.As(err, new(*registry.ProcessStateError)) }
			good("calls", 20, is(nil))
			good("unknown", 0, is(registry.ErrNotFound))
			good("over", 0, state)
			good("same key", 2, is(nil))
			good("init", 1, is(registry.ErrProcessExists))
			good("import", 2, is(nil))
			good("repair", 1, state)
			good("other arguments", 1, is(registry.ErrIdempotencyConflict))
			good("of another process", 1, is(registry.ErrIdempotencyConflict))
			good("removal", 1, is(nil))
			good("bad text", 0, is(registry.ErrInvalid))
			if a := answers["same key"]; a[0].ItemID != a[1].ItemID {
				t.Errorf("calls with one key are items %s and %s", a[0].ItemID, a[1].ItemID)
			}
			if i := at["removed"][0]; errs[i] == nil { // it came before the removal
				if a := g.look(answers["removed"][0].ItemID); a.Status != registry.Cancelled {
					t.Errorf("a call of a process that was removed: %+v", a)
				}
			} else if !errors.Is(errs[i], registry.ErrNotFound) {
				t.Error(errs[i])
			}

			before := map[string]int64{}
			for _, id := range []string{"timed", "runs", "keyed"} {
				p, err := g.s.Process(t.Context(), named(id), registry.HistoryRange{})
				g.must(err)
				before[id] = p.LastEventID + int64(len(g.steps(id)))
			}
			none := func(string) error { return nil }
			if ran := g.round(none, map[string]registry.StepThen{"removes": {Do: registry.ThenRemove}, "ends": {Do: registry.ThenDone}}); slices.Contains(ran, "runs") {
				t.Error("a call ran beside its process's timer")
			}
			g.must(g.end(timer, far))
			broken := false
			for len(g.round(func(query string) error {
				if !broken && strings.HasPrefix(query, "INSERT INTO process_event") {
					broken = true // the group is undone, and its settlements run one by one
					return errFault
				}
				return nil
			}, nil)) > 0 {
			}
			if !broken {
				t.Error("no statement was broken")
			}
			before["runs"]++ // the timer
			for id, want := range before {
				p, err := g.s.Process(t.Context(), named(id), registry.HistoryRange{})
				g.must(err)
				if p.LastEventID != want || int64(len(p.History)) != want {
					t.Errorf("process %s has %d events of %d, want %d", id, len(p.History), p.LastEventID, want)
				}
			}
			completed := map[string]int{}
			for i, a := range answers["calls"] {
				want, got := registry.Completed, g.look(a.ItemID)
				if ended := got.ProcessKey == named("ends") || got.ProcessKey == named("removes"); ended && !g.settled[a.ItemID] {
					want = registry.Cancelled // the call before it ended its process
				}
				if got.Status != want {
					t.Errorf("call %d of %s: %+v, want it %s", i, got.ProcessKey, got, want)
				}
				if got.Status == registry.Completed {
					completed[got.ProcessID]++
				}
			}
			if diff := cmp.Diff(map[string]int{"timed": 5, "runs": 5, "ends": 1, "removes": 1}, completed); diff != "" {
				t.Errorf("calls that completed (-want +got):\n%s", diff)
			}
			registrytest.CheckInvariants(t, g.s)
			checkReady(t.Context(), t, g.s)
		})
	}
}
