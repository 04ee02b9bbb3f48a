package suite

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// scenarios are mrt-zk's own tests (../shared/reference/merritt.md, section 2). Each has the test
// of this suite that replaces it, as TOPIC/NAME, or the reason why there is none.
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

func scenarioTests() tests {
	return tests{
		"create_and_load_batch":                           createAndLoadBatch,
		"load_non_existent_batch":                         loadNoBatch,
		"batch_with_lock_unlock":                          batchLockUnlock,
		"batch_with_ephemeral_released_lock":              batchLockOfDeadWorker,
		"batch_with_unreleased_lock":                      batchLockOfLivingWorker,
		"modify_batch_state":                              modifyBatchState,
		"create_job":                                      createJob,
		"create_job_state_change":                         createJobStateChange,
		"load_job_state_change":                           createJobStateChange,
		"acquire_pending_job":                             acquirePendingJob,
		"job_happy_path_with_delete":                      jobHappyPathWithDelete,
		"batch_happy_path_with_delete":                    batchHappyPathWithDelete,
		"batch_happy_path_with_delete_completed":          batchHappyPathWithCleanup,
		"job_create_config":                               jobCreateConfig,
		"job_create_config_ident":                         jobCreateConfig,
		"job_create_config_ident_metadata":                jobCreateConfig,
		"lock_inventory":                                  lockInventory,
		"find_batch_by_uuid":                              createAndLoadBatch,
		"StateTest_initial_states":                        createJob,
		"StateTest_batch_Pending_cannot_go_to_Reporting":  batchCannotSkip,
		"StateTest_batch_Pending_Held_Pending_Processing": batchHeldAndReleased,
		"StateTest_job_Pending_cannot_go_to_Processing":   jobCannotSkip,
		"StateTest_job_Pending_Held_Pending_Estimating":   jobHeldAndReleased,
		"StateTest_batch_fail_path":                       batchFailPath,
		"StateTest_job_fails_in_every_stage":              jobFailsEverywhere,
		"StateTest_job_Failed_Notify_Completed":           jobFailsAtNotify,
		"test_plan_requeue_after_a_failure_in_each_phase": jobFailsEverywhere,
		"test_plan_a_failed_job_releases_all_locks":       failedJobUnlocks,
		"gap_a_deleted_batch_is_never_reported":           deletedBatchIsNotReported,
		"gap_an_expired_lease_with_a_living_worker":       expiredButLiving,
	}
}

// checkScenarios fails for a scenario whose test does not exist.
func checkScenarios(t *testing.T, known map[string]bool) {
	t.Helper()
	for scenario, name := range scenarios {
		if !known[name] && !strings.HasPrefix(name, "n/a: ") {
			t.Errorf("scenario %q stands for test %s, which there is not", scenario, name)
		}
	}
}

func createAndLoadBatch(f *fixture) {
	id := f.Submit(func(s *registry.Submission) { s.Name = "a name" })
	f.Submit()
	it := f.Item(id)
	if it.ID != id || it.Name != "a name" || it.State != registry.StatePending || it.Note != "" || it.Action != registry.Batch {
		f.Errorf("loaded %+v", it)
	}
	_, err := f.Store.Item(f.Context(), "01890000-0000-7000-8000-000000000000")
	f.Is(err, registry.ErrNotFound)
}

func loadNoBatch(f *fixture) {
	for _, id := range []string{"", "bid0000000001", "not an id\x00"} {
		_, err := f.Store.Item(f.Context(), id)
		f.Is(err, registry.ErrNotFound)
		_, err = f.Store.BatchProgress(f.Context(), id)
		f.Is(err, registry.ErrNotFound)
	}
}

// batchLockUnlock: mrt-zk's lock on a batch or job is the live attempt here.
func batchLockUnlock(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	if got := f.Refused(registry.Expand, id).Reason; got != registry.ReasonRunningElsewhere {
		f.Errorf("a second lock: %s", got)
	}
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	if again := f.Take(registry.Expand, id).Lease; again.N != l.N+1 {
		f.Errorf("attempt %d after %d", again.N, l.N)
	}
}

func batchLockOfDeadWorker(f *fixture) {
	id := f.Submit()
	dead := f.Take(registry.Expand, id).Lease
	f.Sweep(2 * registrytest.Lease)
	if next := f.Take(registry.Expand, id); next.Item.ID != id {
		f.Errorf("took %s", next.Item.ID)
	}
	_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: dead, Outcome: registry.OutcomeDone})
	f.Is(err, registry.ErrClaimLost)
}

func batchLockOfLivingWorker(f *fixture) {
	id := f.Submit()
	c := f.Take(registry.Expand, id)
	for range 10 {
		f.Sweep(registrytest.Lease / 4)
		if lost := f.Renew(registrytest.Beat(c.Lease)); len(lost) != 0 {
			f.Fatalf("lost %v", lost)
		}
	}
	if got := f.Refused(registry.Expand, id).Reason; got != registry.ReasonRunningElsewhere {
		f.Errorf("the lock of a living worker: %s", got)
	}
}

func modifyBatchState(f *fixture) {
	id := f.Submit()
	f.State(id, registry.StatePending)
	f.Take(registry.Expand, id)
	f.State(id, registry.StateProcessing)
}

func createJob(f *fixture) {
	batch, jobs := f.Batch(1)
	it := f.Item(jobs[0])
	if it.State != registry.StatePending || it.ParentID != batch || it.Stage != registry.Estimate || it.Priority != 5 || it.RetryCount != 0 {
		f.Errorf("job %+v", it)
	}
	f.State(f.Submit(), registry.StatePending)
	if p := f.Progress(batch); p.Jobs != 1 || p.Open != 1 {
		f.Errorf("the batch knows %+v of its job", p)
	}
}

func createJobStateChange(f *fixture) {
	batch, jobs := f.Batch(1)
	f.Done(f.TakeItem(jobs[0]).Lease)
	if it := f.Item(jobs[0]); it.State != registry.StateProvisioning || it.Stage != registry.Provision {
		f.Errorf("job %+v", it)
	}
	if p := f.Progress(batch); p.States[registry.StateProvisioning] != 1 || p.States[registry.StatePending] != 0 {
		f.Errorf("the batch shows %+v", p.States)
	}
}

func acquirePendingJob(f *fixture) {
	_, jobs := f.Batch(1)
	if c := f.Take(registry.Estimate, jobs[0]); c.Item.ID != jobs[0] {
		f.Errorf("took %s", c.Item.ID)
	}
	if got := f.Refused(registry.Estimate, jobs[0]).Reason; got != registry.ReasonRunningElsewhere {
		f.Errorf("a second acquire: %s", got)
	}
}

func specOf(f *fixture, it registry.WorkItem) registry.Spec {
	f.Helper()
	var spec registry.Spec
	f.Must(json.Unmarshal(it.Spec, &spec))
	return spec
}

func (f *fixture) notAllowed(id string, act registry.Act) {
	f.Helper()
	before := f.Item(id)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: act, Reason: "because", Actor: "admin", Confirmed: true})
	var refused *registry.TransitionError
	if !errors.As(err, &refused) {
		f.Errorf("%s of a %s item: %v, want it refused", act, before.State, err)
	}
	if after := f.Item(id); after.State != before.State || after.Attempt != before.Attempt {
		f.Errorf("a refused %s left it %s", act, after.State)
	}
}

func jobHappyPathWithDelete(f *fixture) {
	batch, jobs := f.Batch(1)
	f.Bring(jobs[0], registry.Notify)
	f.notAllowed(jobs[0], registry.ActDelete)
	f.notAllowed(jobs[0], registry.ActPurge)
	f.Finish(jobs[0])
	f.Done(f.Take(registry.Report, batch).Lease)
	f.ConfirmAndApply(batch, registry.ActPurge)
	f.Purged(jobs[0])
	f.Purged(batch)
}

func batchHappyPathWithDelete(f *fixture) {
	batch, jobs := f.Batch(2)
	f.notAllowed(batch, registry.ActPurge)
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.SystemFault)
	f.Done(f.Take(registry.Report, batch).Lease)
	f.State(batch, registry.StateFailed)
	f.notAllowed(batch, registry.ActPurge)
	f.ConfirmAndApply(batch, registry.ActDelete)
	f.State(batch, registry.StateDeleted)
	f.State(jobs[0], registry.StateCompleted) // what is preserved stays
	f.State(jobs[1], registry.StateDeleted)
	f.ConfirmAndApply(batch, registry.ActPurge)
	f.Purged(batch)
	f.Purged(jobs[1])
}

func batchHappyPathWithCleanup(f *fixture) {
	done, doneJobs := f.Batch(2)
	for _, job := range doneJobs {
		f.Finish(job)
	}
	f.Done(f.Take(registry.Report, done).Lease)
	open, _ := f.Batch(1)
	f.ConfirmAndApply(done, registry.ActPurge)
	f.Purged(done)
	if all := f.All(registry.ItemQuery{Action: registry.Batch}); len(all) != 1 || all[0].ID != open {
		f.Errorf("left are %d batches, want only %s", len(all), open)
	}
	if all := f.All(registry.ItemQuery{Action: registry.Ingest}); len(all) != 1 {
		f.Errorf("left are %d jobs, want 1", len(all))
	}
}

func jobCreateConfig(f *fixture) {
	id := f.Submit()
	c := f.Take(registry.Expand, id)
	job := registrytest.NewJobs(1)
	job[0].Priority = 7
	job[0].Spec.PrimaryID, job[0].Spec.LocalIDs = "ark:/99999/fk4x", []string{"g", "h"}
	job[0].Spec.Title, job[0].Spec.Creator, job[0].Spec.Date = "what", "who", "when"
	_, err := f.Store.AddJobs(f.Context(), c.Lease, job)
	f.Must(err)
	f.Done(c.Lease)
	it := f.Item(f.Children(id)[0])
	r, err := registry.JobResultOf(it)
	f.Must(err)
	if it.Priority != 7 || len(r.LocalIDs) != 2 || r.LocalIDs[0] != "g" || r.LocalIDs[1] != "h" {
		f.Errorf("job %+v, %+v", it, r)
	}
	spec := specOf(f, it)
	if spec.PrimaryID != "ark:/99999/fk4x" || spec.Title != "what" || spec.Creator != "who" || spec.Date != "when" {
		f.Errorf("spec %+v", spec)
	}
}

// lockInventory: mrt-zk's inventory lock is the lock on the object's ARK here, which Identify takes
// and recording needs.
func lockInventory(f *fixture) {
	_, jobs := f.Batch(2)
	f.Bring(jobs[0], registry.Process)
	f.Bring(jobs[1], registry.Process)
	first := f.TakeItem(jobs[0]).Lease
	request := registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: "ark:/99999/fk4inv", Proposed: "ark:/99999/fk4other"}
	_, err := f.Store.Identify(f.Context(), first, request)
	f.Must(err)
	second := f.TakeItem(jobs[1]).Lease
	_, err = f.Store.Identify(f.Context(), second, request)
	var locked *registry.LockedError
	if !errors.As(err, &locked) || locked.ItemID != jobs[0] {
		f.Errorf("a second lock on the ARK: %v", err)
	}
	f.Settle(registry.Settlement{Lease: second, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonLocked, Delay: time.Hour, Error: "locked"})
	f.Done(first)
	f.Bring(jobs[0], registry.Notify)
	f.Finish(jobs[0])
	_, err = f.Store.Identify(f.Context(), f.TakeItem(jobs[1]).Lease, request)
	f.Must(err)
}

func batchCannotSkip(f *fixture) {
	id := f.Submit()
	if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonWrongStage {
		f.Errorf("a pending batch at its report: %s", got)
	}
	f.notAllowed(id, registry.ActUpdateReport)
	f.State(id, registry.StatePending)
}

func jobCannotSkip(f *fixture) {
	_, jobs := f.Batch(1)
	if got := f.Refused(registry.Process, jobs[0]).Reason; got != registry.ReasonWrongStage {
		f.Errorf("a pending job at process: %s", got)
	}
	f.notAllowed(jobs[0], registry.ActRequeue)
	f.State(jobs[0], registry.StatePending)
}

func batchHeldAndReleased(f *fixture) {
	id := f.Submit()
	f.Hold(registry.HoldBatch, id)
	f.State(id, registry.StateHeld)
	f.Release(registry.HoldBatch, id)
	f.State(id, registry.StatePending)
	f.Take(registry.Expand, id)
	f.State(id, registry.StateProcessing)
}

func jobHeldAndReleased(f *fixture) {
	_, jobs := f.Batch(1)
	f.Hold(registry.HoldItem, jobs[0])
	f.State(jobs[0], registry.StateHeld)
	f.Release(registry.HoldItem, jobs[0])
	f.State(jobs[0], registry.StatePending)
	f.Take(registry.Estimate, jobs[0])
	f.State(jobs[0], registry.StateEstimating)
}

func batchFailPath(f *fixture) {
	id := f.Submit()
	f.FailItem(id, registry.ContentFault)
	f.State(id, registry.StateFailed)
	f.ConfirmAndApply(id, registry.ActDelete)
	f.State(id, registry.StateDeleted)
	f.ConfirmAndApply(id, registry.ActPurge)
	f.Purged(id)
}

// jobFailsEverywhere fails a job once in each stage, requeues it there, and completes it.
func jobFailsEverywhere(f *fixture) {
	route, _ := registry.RouteOf(registry.Ingest)
	for _, step := range route.Steps {
		id := f.Job(step.Stage)
		f.FailItem(id, registry.SystemFault)
		if it := f.Item(id); it.State != registry.StateFailed || it.Stage != step.Stage || it.Note == "" {
			f.Errorf("failed at %s: %+v", step.Stage, it)
		}
		f.Command(id, registry.ActRequeue, "")
		if it := f.Item(id); it.Stage != step.Stage || it.RetryCount != 1 {
			f.Errorf("requeued at %s: %+v", step.Stage, it)
		}
		f.Finish(id)
	}
}

func jobFailsAtNotify(f *fixture) {
	id := f.Job(registry.Notify)
	f.FailItem(id, registry.SystemFault)
	f.Command(id, registry.ActRequeue, registry.Notify)
	f.State(id, registry.StateNotify)
	f.Done(f.TakeItem(id).Lease)
	f.State(id, registry.StateCompleted)
}

func failedJobUnlocks(f *fixture) {
	_, jobs := f.Batch(2)
	f.Bring(jobs[0], registry.Process)
	f.Bring(jobs[1], registry.Process)
	request := registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"loc"}, Proposed: "ark:/99999/fk4one"}
	l := f.TakeItem(jobs[0]).Lease
	_, err := f.Store.Identify(f.Context(), l, request)
	f.Must(err)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	_, err = f.Store.Identify(f.Context(), f.TakeItem(jobs[1]).Lease, request)
	f.Must(err)
}

// deletedBatchIsNotReported: mrt-zk's scan selects a deleted batch for its report again and again,
// and fails while locking it.
func deletedBatchIsNotReported(f *fixture) {
	batch, jobs := f.Batch(1)
	f.FailItem(jobs[0], registry.SystemFault)
	f.Done(f.Take(registry.Report, batch).Lease)
	f.ConfirmAndApply(batch, registry.ActDelete)
	for range 3 {
		if got := f.Offered(10); slices.Contains(got, batch) {
			f.Errorf("a deleted batch is offered: %v", got)
		}
		if got := f.Refused(registry.Report, batch).Reason; got != registry.ReasonSettled {
			f.Errorf("claim of a deleted batch: %s", got)
		}
		f.Clock.Pass(time.Hour)
	}
	f.notAllowed(batch, registry.ActUpdateReport)
}

// expiredButLiving: a worker that does not know that its lease expired changes nothing after
// another one has claimed the item.
func expiredButLiving(f *fixture) {
	id := f.Job(registry.Process)
	old := f.TakeItem(id).Lease
	f.Sweep(2 * registrytest.Lease)
	next := f.TakeItem(id).Lease
	request := registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/fk4late"}
	_, err := f.Store.Identify(f.Context(), old, request)
	f.Is(err, registry.ErrClaimLost)
	if lost := f.Renew(registrytest.Beat(old), registrytest.Beat(next)); len(lost) != 1 || lost[0] != old {
		f.Errorf("lost %v, want %v", lost, old)
	}
	_, err = f.Store.Identify(f.Context(), next, request)
	f.Must(err)
	f.Done(next)
	f.Finish(id)
}
