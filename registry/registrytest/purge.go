package registrytest

import (
	"slices"

	"github.com/holdfast/holdfast/registry"
)

func purgeTests() []test {
	return []test{
		{"mrt-zk_batch_happy_path_with_delete_completed", purgeCompleted},
		{"of_a_deleted_batch", purgeDeleted},
		{"refused_while_jobs_are_left", purgeRefused},
		{"refused_while_a_worker_holds_a_job", purgeHeld},
		{"R28_what_outlives_it", purgeLeaves},
		{"of_many_jobs_in_portions", purgeMany},
	}
}

// completedBatch makes a batch of n jobs that has completed.
func (f *fixture) completedBatch(n int) (id string, jobs []string) {
	f.Helper()
	id, jobs = f.batch(n)
	for _, job := range jobs {
		f.finish(job)
	}
	l := f.take(registry.Report, id).Lease
	f.closeReport(l)
	f.done(l)
	return id, jobs
}

func (f *fixture) gone(ids ...string) {
	f.Helper()
	for _, id := range ids {
		_, err := f.Item(f.Context(), id)
		f.is(err, registry.ErrNotFound)
	}
}

func purgeCompleted(f *fixture) {
	id, jobs := f.completedBatch(2)
	f.refusedCommand(jobs[0], registry.ActPurge, "", registry.StateCompleted, "gone")
	if it := f.command(id, registry.ActPurge, ""); it.ID != id || it.State != registry.StateCompleted {
		f.Errorf("%+v", it)
	}
	f.gone(append(jobs, id)...)
	if left := f.all(registry.ItemQuery{}); len(left) > 0 {
		f.Errorf("left: %+v", left)
	}
	_, err := f.ReportOf(f.Context(), id, 0)
	f.is(err, registry.ErrNotFound)
	_, err = f.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPurge, Actor: "admin"})
	f.is(err, registry.ErrNotFound)
}

func purgeDeleted(f *fixture) {
	id, jobs := f.reported(4)
	f.sure(id, registry.ActDelete)
	f.carriedOut()
	f.sure(id, registry.ActPurge)
	f.gone(append(jobs, id)...)
}

func purgeRefused(f *fixture) {
	id, jobs := f.reported(3)
	f.refusedCommand(id, registry.ActPurge, "", registry.StateFailed, "gone")
	f.sure(id, registry.ActDelete) // its jobs are not deleted yet
	f.refusedCommand(id, registry.ActPurge, "", registry.StateDeleted, "gone")
	f.carriedOut()
	f.command(id, registry.ActPurge, "")
	f.gone(jobs...)
}

func purgeHeld(f *fixture) {
	id, jobs := f.reported(3)
	f.command(jobs[1], registry.ActRequeue, "")
	f.bring(jobs[1], registry.Process)
	l := f.takeItem(jobs[1]).Lease
	ark := f.locks(l, "x").ARK
	f.intend(l, ark, 1, `{}`)
	f.sure(id, registry.ActDelete)
	f.carriedOut()
	f.refusedCommand(id, registry.ActPurge, "", registry.StateDeleted, "gone")
	f.record(l, ark, 1)
	f.done(l)
	f.finish(jobs[1])
	f.command(id, registry.ActPurge, "")
	f.gone(append(jobs, id)...)
	if o, err := f.Object(f.Context(), ark); err != nil || o.Head != 1 {
		f.Errorf("the object went, too: %+v, %v", o, err)
	}
}

func purgeLeaves(f *fixture) {
	id, jobs := f.completedBatch(1)
	before, attempts := f.events(jobs[0]), f.attemptsOf(jobs[0])
	c := registry.Command{ItemID: id, Act: registry.ActPurge, Reason: "old", Actor: "admin", IdempotencyKey: "k"}
	_, err := f.Command(f.Context(), c)
	f.must(err)
	for _, one := range []string{id, jobs[0]} {
		if es := f.events(one); es[len(es)-1] != string(registry.ActPurge) {
			f.Errorf("events %v", es)
		}
	}
	if got := f.events(jobs[0]); !slices.Equal(got[:len(got)-1], before) || len(f.attemptsOf(jobs[0])) != len(attempts) {
		f.Errorf("events %v, %d attempts; before %v, %d", got, len(f.attemptsOf(jobs[0])), before, len(attempts))
	}
	c.Reason = "another"
	_, err = f.Command(f.Context(), c)
	f.is(err, registry.ErrIdempotencyConflict)
}

func purgeMany(f *fixture) {
	failed := f.failed(250)
	id := f.item(failed[0]).ParentID
	f.done(f.take(registry.Report, id).Lease)
	f.sure(id, registry.ActDelete)
	f.carriedOut()
	if it := f.command(id, registry.ActPurge, ""); it.State != registry.StateDeleted {
		f.Errorf("%+v", it)
	}
	p := f.carriedOut()
	if len(p) != 1 || p[0].Applied != 250 || p[0].Refused != 0 || len(p[0].Refusals) != 0 {
		f.Errorf("%+v", p)
	}
	f.gone(append(failed, id)...)
}
