package sqlstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// stepped adds the helpers of outside steps to a fixture.
type stepped struct{ *registrytest.Fixture }

// TestOutsideSteps_KilledAtEachStatement: a process that dies at any statement of a state change
// around an outside step leaves nothing of the change, and a repeat does it once. The changes are the
// end of the job's stage, a failure of the step, its requeue, and its completion.
func TestOutsideSteps_KilledAtEachStatement(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		registrytest.NewTopic(name, map[string]func(*stepped){
			"success": func(f *stepped) { f.story(registry.OutsideStep{After: registry.Record, Blocking: true}) },
			"always": func(f *stepped) {
				f.story(registry.OutsideStep{After: registry.Record, Blocking: true, On: registry.OnAlways})
			},
			"beside": func(f *stepped) { f.story(registry.OutsideStep{After: registry.Record}) },
		}).Run(t, func(t *testing.T, now func() time.Time) registrytest.Store {
			t.Helper()
			return openURL(t, database(t), now)
		}, false)
	}
}

// story is the life of a step from its job's stage on, with a death at each statement.
func (f *stepped) story(step registry.OutsideStep) {
	f.Helper()
	step.Function = "tool"
	f.Must(f.Store.Announce(f.Context(), []registry.Function{{Name: step.Function}}))
	f.Collection("stepped", registry.Profile{Name: "Stepped", Owner: registrytest.Owner, Steps: []registry.OutsideStep{step}})
	_, jobs := f.Batch(1, func(s *registry.Submission) { s.Collection = "stepped" })
	job := jobs[0]
	f.Bring(job, step.After)
	blockers := int64(0)
	if step.Blocking {
		blockers = 1
	}

	lease := f.TakeItem(job).Lease
	f.deaths("the end of the stage", func() error {
		_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: lease, Outcome: registry.OutcomeDone})
		return err
	}, func() bool { return len(f.steps(job)) == 0 && f.Item(job).Status == registry.Running }, func() bool {
		it := f.Item(job)
		return len(f.steps(job)) == 1 && it.Stage == registry.Notify && it.BlockerCount == blockers
	})
	id := f.steps(job)[0].TaskID

	lease = f.TakeItem(id).Lease
	f.deaths("a failure", func() error {
		_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "it is broken"})
		return err
	}, func() bool { return f.Item(id).Status == registry.Running }, func() bool {
		return f.Item(id).Status == registry.Failed && f.Item(job).BlockerCount == blockers
	})
	f.deaths("a requeue", func() error {
		_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, Actor: "ann", Confirmed: true, IdempotencyKey: "again"})
		return err
	}, func() bool { return f.Item(id).Status == registry.Failed }, func() bool {
		return f.Item(id).Status == registry.Pending && f.Item(job).BlockerCount == blockers
	})
	lease = f.TakeItem(id).Lease
	f.deaths("the completion", func() error {
		_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: lease, Outcome: registry.OutcomeDone})
		return err
	}, func() bool { return f.Item(id).Status == registry.Running && f.Item(job).BlockerCount == blockers }, func() bool {
		return f.Item(id).Status == registry.Completed && f.Item(job).BlockerCount == 0
	})
	f.Finish(job)
}

func (f *stepped) steps(job string) []registry.StepRun {
	f.Helper()
	runs, err := f.Store.Steps(f.Context(), job)
	f.Must(err)
	return runs
}

// deaths makes a change with a death at its first, second and each further statement, until it
// survives. before and after say whether nothing, or all of it, has been done. Then it repeats the
// change, as a caller does whose answer was lost.
func (f *stepped) deaths(what string, change func() error, before, after func() bool) {
	f.Helper()
	store, ok := f.Store.(*sqlstore.Store)
	if !ok {
		f.Fatal("no *sqlstore.Store")
	}
	for n, survived := 1, false; !survived; n++ {
		asked := 0
		store.SetFault(func(query string) error {
			if strings.HasPrefix(query, "ROLLBACK") {
				return nil
			}
			if asked++; asked >= n {
				return errFault
			}
			return nil
		})
		err := change()
		store.SetFault(nil)
		survived = err == nil
		switch {
		case !survived && !errors.Is(err, errFault):
			f.Fatalf("%s, dead at statement %d: %v", what, n, err)
		case !survived && !before():
			f.Fatalf("%s, dead at statement %d, left something", what, n)
		case survived && (n < 3 || !after()):
			f.Fatalf("%s was not done; it has %d statements", what, n-1)
		}
	}
	f.Must(change())
	if !after() {
		f.Errorf("a repeat of %s changed something", what)
	}
	f.Invariants()
}
