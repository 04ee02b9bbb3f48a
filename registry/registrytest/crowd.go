package registrytest

import (
	"time"

	"github.com/holdfast/holdfast/registry"
)

func crowdTests() []test {
	return []test{
		{"one_collection_leaves_a_slot_to_others", crowdLeavesASlot},
		{"uploads_wait_for_no_source", crowdPassedByUploads},
		{"uploaded_object_manifests_name_what_is_outside", crowdOfObjectManifests},
		{"a_held_upload_lets_the_next_one_by", crowdPastAHeldUpload},
		{"what_a_held_worker_runs_takes_no_slot_of_others", crowdWithoutHeldWorker},
		{"a_killed_worker_counts_as_long_as_its_leases", crowdWithoutKilledWorker},
		{"a_freed_slot_is_had_at_once", crowdFreed},
		{"a_message_whose_item_went_to_another_is_kept", crowdKeepsMessages},
		{"where_payloads_name_sources_uploads_count", crowdOfBags},
		{"without_spare_slots_there_is_no_rule", crowdWithoutRule},
	}
}

// spares announces a worker of a stage.
func (f *fixture) spares(stage registry.Stage, slots, spare int) {
	f.Helper()
	_, err := f.Renew(f.Context(), registry.RenewRequest{Lease: lease, Worker: registry.WorkerInfo{
		ID: "worker-1", Capacity: map[registry.Stage]int{stage: slots}, Free: map[registry.Stage]int{stage: slots}, Spare: map[registry.Stage]int{stage: spare},
	}})
	f.must(err)
}

// waitingAt brings n jobs of a collection to a stage; own says that they are of an upload.
func (f *fixture) waitingAt(stage registry.Stage, collection string, n int, own bool) []string {
	f.Helper()
	return f.waitingOf(stage, collection, n, own, registry.FileType)
}

// waitingOf is waitingAt with jobs of a type.
func (f *fixture) waitingOf(stage registry.Stage, collection string, n int, own bool, as registry.PayloadType) []string {
	f.Helper()
	upload := f.unique("upload")
	if own {
		f.upload(upload, upload)
	}
	id := f.submit(func(s *registry.Submission) {
		if s.Collection = collection; own {
			s.Spec.URL = registry.UploadURL(upload)
		}
	})
	c := f.takeItem(id)
	jobs := newJobs(n)
	for i := range jobs {
		if jobs[i].Spec.Type = as; own {
			jobs[i].Spec.URL = registry.UploadURL(upload)
		}
	}
	_, err := f.AddJobs(f.Context(), c.Lease, jobs)
	f.must(err)
	f.done(c.Lease)
	made := f.children(id)
	for _, job := range made {
		f.bring(job, stage)
	}
	return made
}

// crowded checks that a claim is refused because of what its collection has, and when it is to be repeated.
func (f *fixture) crowded(stage registry.Stage, hint string) {
	f.Helper()
	refused := f.refused(stage, hint)
	if refused.Reason != registry.ReasonCrowded || refused.Again <= 0 || refused.Again > 10*time.Second {
		f.Fatalf("refused for %q, to come again after %s; want crowded, and a time of seconds", refused.Reason, refused.Again)
	}
}

func crowdLeavesASlot(f *fixture) {
	for _, stage := range []registry.Stage{registry.Estimate, registry.Download} {
		a, b, c := f.unique("a"), f.unique("b"), f.unique("c")
		f.others(a, b, c)
		many := f.waitingAt(stage, a, 5, false)
		f.spares(stage, 4, 2)
		running := []registry.Claim{f.take(stage, many[0]), f.take(stage, many[1])}
		f.offered(10)
		f.crowded(stage, many[2])
		if again := f.offered(10); len(again) > 0 { // it would go round between queue and worker without end
			f.Errorf("%v are offered again at once", again)
		}
		few := f.waitingAt(stage, b, 1, false)
		if got := f.take(stage, many[2]); got.Item.ID != few[0] {
			f.Fatalf("the third slot went to %s, want the other collection's", got.Item.Collection)
		} else {
			running = append(running, got)
		}
		third := f.waitingAt(stage, c, 1, false)
		f.crowded(stage, third[0]) // the last slot is for uploads
		f.done(running[0].Lease)
		if got := f.take(stage, third[0]); got.Item.ID != third[0] {
			f.Fatalf("the freed slot went to %s", got.Item.Collection)
		}
		f.crowded(stage, many[2])
		f.prioritise(many[4], -1)
		if got := f.take(stage, many[2]); got.Item.ID != many[4] {
			f.Errorf("an operator's express item did not go before the rule")
		}
		f.spares(stage, 0, 0)
	}
}

func crowdPassedByUploads(f *fixture) {
	for _, stage := range []registry.Stage{registry.Estimate, registry.Download} {
		a, b := f.unique("a"), f.unique("b")
		f.others(a, b)
		slow, other := f.waitingAt(stage, a, 4, false), f.waitingAt(stage, b, 2, false)
		f.spares(stage, 4, 2)
		for range 2 {
			f.take(stage, slow[0])
		}
		f.take(stage, other[0])
		f.crowded(stage, slow[3])
		own := f.waitingAt(stage, a, 2, true) // of the very collection that has all that it may have
		if got := f.take(stage, slow[3]); got.Item.ID != own[0] {
			f.Fatalf("got %s, want the first upload", got.Item.Name)
		}
		if got := f.take(stage, own[1]); got.Item.ID != own[1] {
			f.Fatalf("got %s, want the second upload", got.Item.Name)
		}
		f.crowded(stage, slow[3])
		f.spares(stage, 0, 0)
	}
}

// crowdOfObjectManifests: the files that an uploaded object manifest lists are fetched from wherever it says. To read the manifest of
// a batch is to read the upload.
func crowdOfObjectManifests(f *fixture) {
	for _, stage := range []registry.Stage{registry.Estimate, registry.Download} {
		collection := f.unique("a")
		f.others(collection)
		slow := f.waitingOf(stage, collection, 4, true, registry.ObjectManifest)
		f.spares(stage, 4, 2)
		f.take(stage, slow[0])
		f.take(stage, slow[1])
		f.crowded(stage, slow[2])
		for _, own := range f.waitingOf(stage, collection, 2, true, registry.BagType) {
			if got := f.take(stage, slow[2]); got.Item.ID != own {
				f.Fatalf("got %s, want an uploaded bag", got.Item.Name)
			}
		}
		f.spares(stage, 0, 0)
	}
	var batches []string
	for range 4 {
		id := f.unique("upload")
		f.upload(id, id)
		batches = append(batches, f.submit(func(s *registry.Submission) { s.Spec.URL = registry.UploadURL(id) }))
	}
	f.spares(registry.Expand, 4, 2)
	for _, batch := range batches {
		f.take(registry.Expand, batch)
	}
}

func crowdPastAHeldUpload(f *fixture) {
	slow := f.waitingAt(registry.Download, mnemonic, 3, false)
	f.spares(registry.Download, 4, 2)
	f.take(registry.Download, slow[0])
	f.take(registry.Download, slow[1])
	own := f.waitingAt(registry.Download, mnemonic, 2, true)
	f.hold(registry.HoldItem, own[0])
	if got := f.take(registry.Download, slow[2]); got.Item.ID != own[1] {
		f.Fatalf("got %s, want the upload behind the held one", got.Item.Name)
	}
	f.crowded(registry.Download, slow[2])
	f.release(registry.HoldItem, own[0])
	if got := f.take(registry.Download, slow[2]); got.Item.ID != own[0] {
		f.Fatalf("got %s, want the upload that is held no more", got.Item.Name)
	}
}

func crowdWithoutHeldWorker(f *fixture) {
	jobs := f.waitingAt(registry.Download, mnemonic, 5, false)
	f.spares(registry.Download, 4, 2)
	f.take(registry.Download, jobs[0])
	f.take(registry.Download, jobs[1])
	f.crowded(registry.Download, jobs[2])
	_, err := f.Renew(f.Context(), registry.RenewRequest{Lease: lease, Worker: registry.WorkerInfo{
		ID: "worker-2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 4},
		Spare: map[registry.Stage]int{registry.Download: 2},
	}})
	f.must(err)
	f.hold(registry.HoldWorker, "worker-1")
	for _, job := range jobs[2:4] {
		if got, why := f.asksAt(registry.Download, "worker-2", job); why != "" || got.Item.ID != job {
			f.Fatalf("the other worker got %q, refused for %q; it has four slots, and runs nothing", got.Item.ID, why)
		}
	}
	if _, why := f.asksAt(registry.Download, "worker-2", jobs[4]); why != registry.ReasonCrowded {
		f.Errorf("a third item: %q, want crowded", why)
	}
}

// crowdWithoutKilledWorker: a process that starts in the place of one that was killed gets no more than its own share to a collection as soon
// as the other's leases are over.
func crowdWithoutKilledWorker(f *fixture) {
	jobs := f.waitingAt(registry.Download, mnemonic, 4, false)
	f.spares(registry.Download, 4, 2)
	f.clock.pass(lease + time.Second)
	_, err := f.Renew(f.Context(), registry.RenewRequest{Lease: lease, Worker: registry.WorkerInfo{
		ID: "worker-2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 4},
		Spare: map[registry.Stage]int{registry.Download: 2},
	}})
	f.must(err)
	for _, job := range jobs[:2] {
		if _, why := f.asksAt(registry.Download, "worker-2", job); why != "" {
			f.Fatalf("refused for %q; two slots are the collection's", why)
		}
	}
	if _, why := f.asksAt(registry.Download, "worker-2", jobs[2]); why != registry.ReasonCrowded {
		f.Errorf("a third item: %q, want crowded: the other worker is gone", why)
	}
}

func crowdFreed(f *fixture) {
	jobs := f.waitingAt(registry.Download, mnemonic, 3, false)
	f.spares(registry.Download, 3, 2)
	first := f.take(registry.Download, jobs[0])
	f.crowded(registry.Download, jobs[1])
	f.settle(registry.Settlement{Lease: first.Lease, Outcome: registry.OutcomeRetry, MaxAttempts: 5, Delay: time.Hour})
	second := f.take(registry.Download, jobs[1])
	f.crowded(registry.Download, jobs[2])
	_, err := f.Command(f.Context(), registry.Command{ItemID: second.Item.ID, Act: registry.ActCancel, Reason: "stop", Actor: "admin"})
	f.must(err)
	f.take(registry.Download, jobs[2])
}

// crowdKeepsMessages: a message may be given an item whose own message waits for a slot. Then that one is the other's.
func crowdKeepsMessages(f *fixture) {
	jobs := f.waitingAt(registry.Download, mnemonic, 4, false)
	f.spares(registry.Download, 3, 2)
	first := f.take(registry.Download, jobs[0])
	f.crowded(registry.Download, jobs[1])
	f.done(first.Lease)
	second, err := f.Claim(f.Context(), f.request(registry.Download, jobs[2]))
	f.must(err)
	if second.Item.ID != jobs[1] {
		f.Fatalf("the message of %s got %s, want %s, which comes first", jobs[2], second.Item.ID, jobs[1])
	}
	keeps := func(why registry.Reason) {
		f.Helper()
		if refused := f.refused(registry.Download, jobs[1]); refused.Reason != why || refused.Again <= 0 {
			f.Errorf("the message of an item that another one got: %+v; want %s, and to be kept", refused, why)
		}
	}
	keeps(registry.ReasonRunningElsewhere)
	f.settle(registry.Settlement{Lease: second.Lease, Outcome: registry.OutcomeRetry, MaxAttempts: 5, Delay: time.Hour})
	third := f.take(registry.Download, jobs[2])
	keeps(registry.ReasonNotDue)
	f.done(third.Lease)
	if left, err := f.Claim(f.Context(), f.request(registry.Download, jobs[1])); err != nil || left.Item.ID != jobs[3] {
		f.Errorf("got %s (%v), want %s", left.Item.ID, err, jobs[3])
	}
	if refused := f.refused(registry.Download, jobs[2]); refused.Again != 0 {
		f.Errorf("a message is kept although nothing waits: %+v", refused)
	}
}

// crowdOfBags: what a bag's fetch.txt names may be slow, however the bag came.
func crowdOfBags(f *fixture) {
	jobs := f.waitingAt(registry.Process, mnemonic, 3, true)
	f.spares(registry.Process, 3, 1)
	f.take(registry.Process, jobs[0])
	f.take(registry.Process, jobs[1])
	f.crowded(registry.Process, jobs[2])
}

func crowdWithoutRule(f *fixture) {
	jobs := f.waitingAt(registry.Download, mnemonic, 6, false)
	f.spares(registry.Download, 2, 0)
	for range jobs {
		f.take(registry.Download, "")
	}
	route, _ := registry.RouteOf(registry.Ingest)
	for _, step := range route.Steps {
		if step.Fetches != registry.NoSource {
			continue
		}
		f.spares(step.Stage, 2, 1) // which says nothing where no source is waited for
	}
	jobs = f.waitingAt(registry.Record, mnemonic, 3, false)
	for range jobs {
		f.take(registry.Record, "")
	}
}
