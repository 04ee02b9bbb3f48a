package worktest

import (
	"slices"

	"github.com/holdfast/holdfast/registry"
)

func purgeTests() tests {
	return tests{
		"mrt-zk_batch_happy_path_with_delete_completed": purgeCompleted,
		"of_a_deleted_batch":                            purgeDeleted,
		"refused_while_jobs_are_left":                   purgeRefused,
		"refused_while_a_worker_holds_a_job":            purgeHeld,
		"R28_what_outlives_it":                          purgeLeaves,
		"of_many_jobs_in_portions":                      purgeMany,
	}
}

// completedBatch makes a batch of n jobs that has completed.
func (f *fixture) completedBatch(n int) (id string, jobs []string) {
	f.Helper()
	id, jobs = f.Batch(n)
	for _, job := range jobs {
		f.Finish(job)
	}
	l := f.Take(registry.Report, id).Lease
	f.CloseReport(l)
	f.Done(l)
	return id, jobs
}

func purgeCompleted(f *fixture) {
	id, jobs := f.completedBatch(2)
	f.RefusedCommand(jobs[0], registry.ActPurge, "", registry.StateCompleted, "gone")
	if it := f.Command(id, registry.ActPurge, ""); it.ID != id || it.State != registry.StateCompleted {
		f.Errorf("%+v", it)
	}
	f.Gone(append(jobs, id)...)
	if left := f.All(registry.ItemQuery{}); len(left) > 0 {
		f.Errorf("left: %+v", left)
	}
	_, err := f.Store.ReportOf(f.Context(), id, 0)
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPurge, Actor: "admin"})
	f.Is(err, registry.ErrNotFound)
}

func purgeDeleted(f *fixture) {
	id, jobs := f.reported(4)
	f.Confirm(id, registry.ActDelete)
	f.CarriedOut()
	f.Confirm(id, registry.ActPurge)
	f.Gone(append(jobs, id)...)
}

func purgeRefused(f *fixture) {
	id, jobs := f.reported(3)
	f.RefusedCommand(id, registry.ActPurge, "", registry.StateFailed, "gone")
	f.Confirm(id, registry.ActDelete) // its jobs are not deleted yet
	f.RefusedCommand(id, registry.ActPurge, "", registry.StateDeleted, "gone")
	f.CarriedOut()
	f.Command(id, registry.ActPurge, "")
	f.Gone(jobs...)
}

func purgeHeld(f *fixture) {
	id, jobs := f.reported(3)
	f.Command(jobs[1], registry.ActRequeue, "")
	f.Bring(jobs[1], registry.Process)
	l := f.TakeItem(jobs[1]).Lease
	ark := f.Named(l, "x").ARK
	f.Intend(l, ark, 1, `{}`)
	f.Confirm(id, registry.ActDelete)
	f.CarriedOut()
	f.RefusedCommand(id, registry.ActPurge, "", registry.StateDeleted, "gone")
	f.Record(l, ark, 1)
	f.Done(l)
	f.Finish(jobs[1])
	f.Command(id, registry.ActPurge, "")
	f.Gone(append(jobs, id)...)
	if o, err := f.Store.Object(f.Context(), ark); err != nil || o.Head != 1 {
		f.Errorf("the object went, too: %+v, %v", o, err)
	}
}

func purgeLeaves(f *fixture) {
	id, jobs := f.completedBatch(1)
	before, attempts := f.Events(jobs[0]), f.AttemptsOf(jobs[0])
	c := registry.Command{ItemID: id, Act: registry.ActPurge, Reason: "old", Actor: "admin", IdempotencyKey: "k"}
	_, err := f.Store.Command(f.Context(), c)
	f.Must(err)
	for _, one := range []string{id, jobs[0]} {
		if es := f.Events(one); es[len(es)-1] != string(registry.ActPurge) {
			f.Errorf("events %v", es)
		}
	}
	if got := f.Events(jobs[0]); !slices.Equal(got[:len(got)-1], before) || len(f.AttemptsOf(jobs[0])) != len(attempts) {
		f.Errorf("events %v, %d attempts; before %v, %d", got, len(f.AttemptsOf(jobs[0])), before, len(attempts))
	}
	c.Reason = "another"
	_, err = f.Store.Command(f.Context(), c)
	f.Is(err, registry.ErrIdempotencyConflict)
}

func purgeMany(f *fixture) {
	failed := f.failed(250)
	id := f.Item(failed[0]).ParentID
	f.Done(f.Take(registry.Report, id).Lease)
	f.Confirm(id, registry.ActDelete)
	f.CarriedOut()
	if it := f.Command(id, registry.ActPurge, ""); it.State != registry.StateDeleted {
		f.Errorf("%+v", it)
	}
	p := f.CarriedOut()
	if len(p) != 1 || p[0].Applied != 250 || p[0].Refused != 0 || len(p[0].Refusals) != 0 {
		f.Errorf("%+v", p)
	}
	f.Gone(append(failed, id)...)
}
