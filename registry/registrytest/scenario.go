package registrytest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// scenarios are mrt-zk's own tests (../shared/reference/merritt.md, section 2), each with the test of this suite that
// stands for it, as TOPIC/NAME, or with the reason why there is none.
var scenarios = map[string]string{
	"create_batch":                           "submit/create_batch",
	"create_and_load_batch":                  "scenario/create_and_load_batch",
	"load_non_existent_batch":                "scenario/load_non_existent_batch",
	"batch_with_lock_unlock":                 "scenario/batch_with_lock_unlock",
	"batch_with_ephemeral_released_lock":     "scenario/batch_with_ephemeral_released_lock",
	"batch_with_unreleased_lock":             "scenario/batch_with_unreleased_lock",
	"modify_batch_state":                     "scenario/modify_batch_state",
	"batch_acquire":                          "claim/batch_acquire",
	"create_job":                             "scenario/create_job",
	"create_job_state_change":                "scenario/create_job_state_change",
	"load_job_state_change":                  "scenario/load_job_state_change",
	"acquire_pending_job":                    "scenario/acquire_pending_job",
	"acquire_lowest_priority_job":            "claim/acquire_lowest_priority_job",
	"job_happy_path":                         "settle/job_happy_path",
	"batch_happy_path":                       "batch/batch_happy_path",
	"batch_failure":                          "batch/batch_failure",
	"batch_recovery":                         "batch/batch_recovery",
	"job_happy_path_with_delete":             "scenario/job_happy_path_with_delete",
	"batch_happy_path_with_delete":           "scenario/batch_happy_path_with_delete",
	"batch_happy_path_with_delete_completed": "scenario/batch_happy_path_with_delete_completed",
	"job_create_config":                      "scenario/job_create_config",
	"job_create_config_ident":                "scenario/job_create_config_ident",
	"job_create_config_ident_metadata":       "scenario/job_create_config_ident_metadata",
	"lock_ingest":                            "hold/lock_ingest",
	"lock_collection":                        "hold/lock_collection",
	"lock_store":                             "lock/lock_store",
	"lock_inventory":                         "scenario/lock_inventory",
	"find_batch_by_uuid":                     "scenario/find_batch_by_uuid",

	"StateTest enums equal states.yml":           "n/a: there is one table and no second copy of it; docs/states.md is generated from it",
	"StateTest initial states":                   "scenario/StateTest_initial_states",
	"StateTest batch pending cannot report":      "scenario/StateTest_batch_Pending_cannot_go_to_Reporting",
	"StateTest batch held and released":          "scenario/StateTest_batch_Pending_Held_Pending_Processing",
	"StateTest job pending cannot process":       "scenario/StateTest_job_Pending_cannot_go_to_Processing",
	"StateTest job held and released":            "scenario/StateTest_job_Pending_Held_Pending_Estimating",
	"StateTest batch happy path":                 "batch/batch_happy_path",
	"StateTest job happy path":                   "settle/job_happy_path",
	"StateTest batch fail path":                  "scenario/StateTest_batch_fail_path",
	"StateTest job can fail in every work state": "scenario/StateTest_job_fails_in_every_stage",
	"StateTest batch Failed, UpdateReporting":    "batch/batch_recovery",
	"StateTest job Failed, Notify, Completed":    "scenario/StateTest_job_Failed_Notify_Completed",

	"test_plan requeue after a forced failure in each phase": "scenario/test_plan_requeue_after_a_failure_in_each_phase",
	"test_plan failed job releases all locks":                "scenario/test_plan_a_failed_job_releases_all_locks",
	"gap deleted batch in the report scan":                   "scenario/gap_a_deleted_batch_is_never_reported",
	"gap expired lease with a living worker":                 "scenario/gap_an_expired_lease_with_a_living_worker",
	"gap concurrent acquire":                                 "claim/I3_racing_claims_get_each_item_once",

	"test_read_write_from_zk":      "n/a: raw ZooKeeper nodes; there are none here",
	"test_sequential_node_mapping": "n/a: sequential nodes; ids are UUIDv7",
	"ephemeral_node_remaining":     "n/a: raw ephemeral nodes; leases are tested as batch_with_unreleased_lock",
	"ephemeral_node_destroyed":     "n/a: raw ephemeral nodes; leases are tested as batch_with_ephemeral_released_lock",
	"lock_access":                  "n/a: the access queue assembles downloads, which is no part of ingest",
	"access_happy_path":            "n/a: the access queue",
	"access_happy_path_del":        "n/a: the access queue",
	"access_fail_path":             "n/a: the access queue",
}

func scenarioTests() []test {
	return []test{
		{"create_and_load_batch", createAndLoadBatch},
		{"load_non_existent_batch", loadNoBatch},
		{"batch_with_lock_unlock", batchLockUnlock},
		{"batch_with_ephemeral_released_lock", batchLockOfDeadWorker},
		{"batch_with_unreleased_lock", batchLockOfLivingWorker},
		{"modify_batch_state", modifyBatchState},
		{"create_job", createJob},
		{"create_job_state_change", createJobStateChange},
		{"load_job_state_change", createJobStateChange},
		{"acquire_pending_job", acquirePendingJob},
		{"job_happy_path_with_delete", jobHappyPathWithDelete},
		{"batch_happy_path_with_delete", batchHappyPathWithDelete},
		{"batch_happy_path_with_delete_completed", batchHappyPathWithCleanup},
		{"job_create_config", jobCreateConfig},
		{"job_create_config_ident", jobCreateConfig},
		{"job_create_config_ident_metadata", jobCreateConfig},
		{"lock_inventory", lockInventory},
		{"find_batch_by_uuid", createAndLoadBatch},
		{"StateTest_initial_states", createJob},
		{"StateTest_batch_Pending_cannot_go_to_Reporting", batchCannotSkip},
		{"StateTest_batch_Pending_Held_Pending_Processing", batchHeldAndReleased},
		{"StateTest_job_Pending_cannot_go_to_Processing", jobCannotSkip},
		{"StateTest_job_Pending_Held_Pending_Estimating", jobHeldAndReleased},
		{"StateTest_batch_fail_path", batchFailPath},
		{"StateTest_job_fails_in_every_stage", jobFailsEverywhere},
		{"StateTest_job_Failed_Notify_Completed", jobFailsAtNotify},
		{"test_plan_requeue_after_a_failure_in_each_phase", jobFailsEverywhere},
		{"test_plan_a_failed_job_releases_all_locks", failedJobUnlocks},
		{"gap_a_deleted_batch_is_never_reported", deletedBatchIsNotReported},
		{"gap_an_expired_lease_with_a_living_worker", expiredButLiving},
	}
}

// checkScenarios fails for a scenario whose test is not there.
func checkScenarios(t *testing.T, known map[string]bool) {
	t.Helper()
	for scenario, name := range scenarios {
		if !known[name] && !strings.HasPrefix(name, "n/a: ") {
			t.Errorf("scenario %q stands for test %s, which there is not", scenario, name)
		}
	}
}

func createAndLoadBatch(f *fixture) {
	id := f.submit(func(s *registry.Submission) { s.Name = "a name" })
	f.submit()
	it := f.item(id)
	if it.ID != id || it.Name != "a name" || it.State != registry.StatePending || it.Note != "" || it.Action != registry.Batch {
		f.Errorf("loaded %+v", it)
	}
	_, err := f.Item(f.Context(), "01890000-0000-7000-8000-000000000000")
	f.is(err, registry.ErrNotFound)
}

func loadNoBatch(f *fixture) {
	for _, id := range []string{"", "bid0000000001", "not an id\x00"} {
		_, err := f.Item(f.Context(), id)
		f.is(err, registry.ErrNotFound)
		_, err = f.BatchProgress(f.Context(), id)
		f.is(err, registry.ErrNotFound)
	}
}

// A lock on a batch or job is its live attempt here.
func batchLockUnlock(f *fixture) {
	id := f.submit()
	l := f.take(registry.Expand, id).Lease
	if got := f.refused(registry.Expand, id).Reason; got != registry.ReasonRunningElsewhere {
		f.Errorf("a second lock: %s", got)
	}
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	if again := f.take(registry.Expand, id).Lease; again.N != l.N+1 {
		f.Errorf("attempt %d after %d", again.N, l.N)
	}
}

func batchLockOfDeadWorker(f *fixture) {
	id := f.submit()
	dead := f.take(registry.Expand, id).Lease
	f.sweep(2 * lease)
	if next := f.take(registry.Expand, id); next.Item.ID != id {
		f.Errorf("took %s", next.Item.ID)
	}
	_, err := f.Settle(f.Context(), registry.Settlement{Lease: dead, Outcome: registry.OutcomeDone})
	f.is(err, registry.ErrClaimLost)
}

func batchLockOfLivingWorker(f *fixture) {
	id := f.submit()
	c := f.take(registry.Expand, id)
	for range 10 {
		f.sweep(lease / 4)
		if lost := f.renew(beat(c.Lease)); len(lost) != 0 {
			f.Fatalf("lost %v", lost)
		}
	}
	if got := f.refused(registry.Expand, id).Reason; got != registry.ReasonRunningElsewhere {
		f.Errorf("the lock of a living worker: %s", got)
	}
}

func modifyBatchState(f *fixture) {
	id := f.submit()
	f.state(id, registry.StatePending)
	f.take(registry.Expand, id)
	f.state(id, registry.StateProcessing)
}

func createJob(f *fixture) {
	batch, jobs := f.batch(1)
	it := f.item(jobs[0])
	if it.State != registry.StatePending || it.ParentID != batch || it.Stage != registry.Estimate || it.Priority != 5 || it.RetryCount != 0 {
		f.Errorf("job %+v", it)
	}
	f.state(f.submit(), registry.StatePending)
	if p := f.progress(batch); p.Jobs != 1 || p.Open != 1 {
		f.Errorf("the batch knows %+v of its job", p)
	}
}

func createJobStateChange(f *fixture) {
	batch, jobs := f.batch(1)
	f.done(f.takeItem(jobs[0]).Lease)
	if it := f.item(jobs[0]); it.State != registry.StateProvisioning || it.Stage != registry.Provision {
		f.Errorf("job %+v", it)
	}
	if p := f.progress(batch); p.States[registry.StateProvisioning] != 1 || p.States[registry.StatePending] != 0 {
		f.Errorf("the batch shows %+v", p.States)
	}
}

func acquirePendingJob(f *fixture) {
	_, jobs := f.batch(1)
	if c := f.take(registry.Estimate, jobs[0]); c.Item.ID != jobs[0] {
		f.Errorf("took %s", c.Item.ID)
	}
	if got := f.refused(registry.Estimate, jobs[0]).Reason; got != registry.ReasonRunningElsewhere {
		f.Errorf("a second acquire: %s", got)
	}
}

// purged says that an item's row is gone and its events are not (R28).
func (f *fixture) purged(id string) {
	f.Helper()
	_, err := f.Item(f.Context(), id)
	f.is(err, registry.ErrNotFound)
	if len(f.events(id)) == 0 {
		f.Errorf("the events of %s went with it", id)
	}
}

// applyAll lets the bulk acts that an act brought with it run to their end.
func (f *fixture) applyAll() {
	f.Helper()
	for {
		c, err := f.Claim(f.Context(), f.request(registry.Apply, ""))
		var none *registry.NotClaimable
		if errors.As(err, &none) {
			return
		}
		f.must(err)
		for done := false; !done; {
			p, err := f.ApplyNext(f.Context(), c.Lease)
			f.must(err)
			done = p.Done
		}
		f.done(c.Lease)
	}
}

func specOf(f *fixture, it registry.WorkItem) registry.Spec {
	f.Helper()
	var spec registry.Spec
	f.must(json.Unmarshal(it.Spec, &spec))
	return spec
}

func (f *fixture) confirmed(id string, act registry.Act) {
	f.Helper()
	_, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: act, Reason: "because", Actor: "admin", Confirmed: true})
	f.must(err)
	f.applyAll()
}

func (f *fixture) notAllowed(id string, act registry.Act) {
	f.Helper()
	before := f.item(id)
	_, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: act, Reason: "because", Actor: "admin", Confirmed: true})
	var refused *registry.TransitionError
	if !errors.As(err, &refused) {
		f.Errorf("%s of a %s item: %v, want it refused", act, before.State, err)
	}
	if after := f.item(id); after.State != before.State || after.Attempt != before.Attempt {
		f.Errorf("a refused %s left it %s", act, after.State)
	}
}

func jobHappyPathWithDelete(f *fixture) {
	batch, jobs := f.batch(1)
	f.bring(jobs[0], registry.Notify)
	f.notAllowed(jobs[0], registry.ActDelete)
	f.notAllowed(jobs[0], registry.ActPurge)
	f.finish(jobs[0])
	f.done(f.take(registry.Report, batch).Lease)
	f.confirmed(batch, registry.ActPurge)
	f.purged(jobs[0])
	f.purged(batch)
}

func batchHappyPathWithDelete(f *fixture) {
	batch, jobs := f.batch(2)
	f.notAllowed(batch, registry.ActPurge)
	f.finish(jobs[0])
	f.fail(jobs[1], registry.SystemFault)
	f.done(f.take(registry.Report, batch).Lease)
	f.state(batch, registry.StateFailed)
	f.notAllowed(batch, registry.ActPurge)
	f.confirmed(batch, registry.ActDelete)
	f.state(batch, registry.StateDeleted)
	f.state(jobs[0], registry.StateCompleted) // what is preserved stays
	f.state(jobs[1], registry.StateDeleted)
	f.confirmed(batch, registry.ActPurge)
	f.purged(batch)
	f.purged(jobs[1])
}

func batchHappyPathWithCleanup(f *fixture) {
	done, doneJobs := f.batch(2)
	for _, job := range doneJobs {
		f.finish(job)
	}
	f.done(f.take(registry.Report, done).Lease)
	open, _ := f.batch(1)
	f.confirmed(done, registry.ActPurge)
	f.purged(done)
	if all := f.all(registry.ItemQuery{Action: registry.Batch}); len(all) != 1 || all[0].ID != open {
		f.Errorf("left are %d batches, want only %s", len(all), open)
	}
	if all := f.all(registry.ItemQuery{Action: registry.Ingest}); len(all) != 1 {
		f.Errorf("left are %d jobs, want 1", len(all))
	}
}

func jobCreateConfig(f *fixture) {
	id := f.submit()
	c := f.take(registry.Expand, id)
	job := newJobs(1)
	job[0].Priority = 7
	job[0].Spec.PrimaryID, job[0].Spec.LocalIDs = "ark:/99999/fk4x", []string{"g", "h"}
	job[0].Spec.Title, job[0].Spec.Creator, job[0].Spec.Date = "what", "who", "when"
	_, err := f.AddJobs(f.Context(), c.Lease, job)
	f.must(err)
	f.done(c.Lease)
	it := f.item(f.children(id)[0])
	r, err := registry.JobResultOf(it)
	f.must(err)
	if it.Priority != 7 || len(r.LocalIDs) != 2 || r.LocalIDs[0] != "g" || r.LocalIDs[1] != "h" {
		f.Errorf("job %+v, %+v", it, r)
	}
	spec := specOf(f, it)
	if spec.PrimaryID != "ark:/99999/fk4x" || spec.Title != "what" || spec.Creator != "who" || spec.Date != "when" {
		f.Errorf("spec %+v", spec)
	}
}

// An inventory lock is an object's ARK: recording happens under the lock that Identify took.
func lockInventory(f *fixture) {
	_, jobs := f.batch(2)
	f.bring(jobs[0], registry.Process)
	f.bring(jobs[1], registry.Process)
	first := f.takeItem(jobs[0]).Lease
	request := registry.IdentifyRequest{Owner: owner, Supplied: "ark:/99999/fk4inv", Proposed: "ark:/99999/fk4other"}
	_, err := f.Identify(f.Context(), first, request)
	f.must(err)
	second := f.takeItem(jobs[1]).Lease
	_, err = f.Identify(f.Context(), second, request)
	var locked *registry.LockedError
	if !errors.As(err, &locked) || locked.ItemID != jobs[0] {
		f.Errorf("a second lock on the ARK: %v", err)
	}
	f.settle(registry.Settlement{Lease: second, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonLocked, Delay: time.Hour, Error: "locked"})
	f.done(first)
	f.bring(jobs[0], registry.Notify)
	f.finish(jobs[0])
	_, err = f.Identify(f.Context(), f.takeItem(jobs[1]).Lease, request)
	f.must(err)
}

func batchCannotSkip(f *fixture) {
	id := f.submit()
	if got := f.refused(registry.Report, id).Reason; got != registry.ReasonWrongStage {
		f.Errorf("a pending batch at its report: %s", got)
	}
	f.notAllowed(id, registry.ActUpdateReport)
	f.state(id, registry.StatePending)
}

func jobCannotSkip(f *fixture) {
	_, jobs := f.batch(1)
	if got := f.refused(registry.Process, jobs[0]).Reason; got != registry.ReasonWrongStage {
		f.Errorf("a pending job at process: %s", got)
	}
	f.notAllowed(jobs[0], registry.ActRequeue)
	f.state(jobs[0], registry.StatePending)
}

func batchHeldAndReleased(f *fixture) {
	id := f.submit()
	f.hold(registry.HoldBatch, id)
	f.state(id, registry.StateHeld)
	f.release(registry.HoldBatch, id)
	f.state(id, registry.StatePending)
	f.take(registry.Expand, id)
	f.state(id, registry.StateProcessing)
}

func jobHeldAndReleased(f *fixture) {
	_, jobs := f.batch(1)
	f.hold(registry.HoldItem, jobs[0])
	f.state(jobs[0], registry.StateHeld)
	f.release(registry.HoldItem, jobs[0])
	f.state(jobs[0], registry.StatePending)
	f.take(registry.Estimate, jobs[0])
	f.state(jobs[0], registry.StateEstimating)
}

func batchFailPath(f *fixture) {
	id := f.submit()
	f.fail(id, registry.ContentFault)
	f.state(id, registry.StateFailed)
	f.confirmed(id, registry.ActDelete)
	f.state(id, registry.StateDeleted)
	f.confirmed(id, registry.ActPurge)
	f.purged(id)
}

// jobFailsEverywhere fails a job once in each stage, sends it back there, and completes it.
func jobFailsEverywhere(f *fixture) {
	route, _ := registry.RouteOf(registry.Ingest)
	for _, step := range route.Steps {
		id := f.job(step.Stage)
		f.fail(id, registry.SystemFault)
		if it := f.item(id); it.State != registry.StateFailed || it.Stage != step.Stage || it.Note == "" {
			f.Errorf("failed at %s: %+v", step.Stage, it)
		}
		f.command(id, registry.ActRequeue, "")
		if it := f.item(id); it.Stage != step.Stage || it.RetryCount != 1 {
			f.Errorf("requeued at %s: %+v", step.Stage, it)
		}
		f.finish(id)
	}
}

func jobFailsAtNotify(f *fixture) {
	id := f.job(registry.Notify)
	f.fail(id, registry.SystemFault)
	f.command(id, registry.ActRequeue, registry.Notify)
	f.state(id, registry.StateNotify)
	f.done(f.takeItem(id).Lease)
	f.state(id, registry.StateCompleted)
}

func failedJobUnlocks(f *fixture) {
	_, jobs := f.batch(2)
	f.bring(jobs[0], registry.Process)
	f.bring(jobs[1], registry.Process)
	request := registry.IdentifyRequest{Owner: owner, LocalIDs: []string{"loc"}, Proposed: "ark:/99999/fk4one"}
	l := f.takeItem(jobs[0]).Lease
	_, err := f.Identify(f.Context(), l, request)
	f.must(err)
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	_, err = f.Identify(f.Context(), f.takeItem(jobs[1]).Lease, request)
	f.must(err)
}

// In mrt-zk a deleted batch passes the filter of the report's scan, and throws while it is locked, for ever.
func deletedBatchIsNotReported(f *fixture) {
	batch, jobs := f.batch(1)
	f.fail(jobs[0], registry.SystemFault)
	f.done(f.take(registry.Report, batch).Lease)
	f.confirmed(batch, registry.ActDelete)
	for range 3 {
		if got := f.offered(10); has(got, batch) {
			f.Errorf("a deleted batch is offered: %v", got)
		}
		if got := f.refused(registry.Report, batch).Reason; got != registry.ReasonSettled {
			f.Errorf("claim of a deleted batch: %s", got)
		}
		f.clock.pass(time.Hour)
	}
	f.notAllowed(batch, registry.ActUpdateReport)
}

// The lease is over and the worker does not know: what it does after somebody else has the item changes nothing.
func expiredButLiving(f *fixture) {
	id := f.job(registry.Process)
	old := f.takeItem(id).Lease
	f.sweep(2 * lease)
	next := f.takeItem(id).Lease
	request := registry.IdentifyRequest{Owner: owner, Proposed: "ark:/99999/fk4late"}
	_, err := f.Identify(f.Context(), old, request)
	f.is(err, registry.ErrClaimLost)
	if lost := f.renew(beat(old), beat(next)); len(lost) != 1 || lost[0] != old {
		f.Errorf("lost %v, want %v", lost, old)
	}
	_, err = f.Identify(f.Context(), next, request)
	f.must(err)
	f.done(next)
	f.finish(id)
}
