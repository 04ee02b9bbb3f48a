package worktest

import (
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func crowdTests() tests {
	return tests{
		"one_collection_leaves_a_slot_to_others":          crowdLeavesASlot,
		"uploads_wait_for_no_source":                      crowdPassedByUploads,
		"uploaded_object_manifests_name_what_is_outside":  crowdOfObjectManifests,
		"a_held_upload_lets_the_next_one_by":              crowdPastAHeldUpload,
		"what_a_held_worker_runs_takes_no_slot_of_others": crowdWithoutHeldWorker,
		"a_killed_worker_counts_as_long_as_its_leases":    crowdWithoutKilledWorker,
		"a_freed_slot_is_had_at_once":                     crowdFreed,
		"a_message_whose_item_went_to_another_is_kept":    crowdKeepsMessages,
		"where_payloads_name_sources_uploads_count":       crowdOfBags,
		"without_spare_slots_there_is_no_rule":            crowdWithoutRule,
	}
}

// crowded checks that a claim is refused because of its collection's share, and when to repeat it.
func (f *fixture) crowded(stage registry.Stage, hint string) {
	f.Helper()
	refused := f.Refused(stage, hint)
	if refused.Reason != registry.ReasonCrowded || refused.Again <= 0 || refused.Again > 10*time.Second {
		f.Fatalf("refused for %q, to come again after %s; want crowded, and a time of seconds", refused.Reason, refused.Again)
	}
}

func crowdLeavesASlot(f *fixture) {
	for _, stage := range []registry.Stage{registry.Estimate, registry.Download} {
		a, b, c := f.Unique("a"), f.Unique("b"), f.Unique("c")
		f.Collections(a, b, c)
		many := f.WaitingAt(stage, a, 5, false)
		f.Announce(stage, 4, 2)
		running := []registry.Claim{f.Take(stage, many[0]), f.Take(stage, many[1])}
		f.Offered(10)
		f.crowded(stage, many[2])
		if again := f.Offered(10); len(again) > 0 { // it would go round between queue and worker without end
			f.Errorf("%v are offered again at once", again)
		}
		few := f.WaitingAt(stage, b, 1, false)
		if got := f.Take(stage, many[2]); got.Item.ID != few[0] {
			f.Fatalf("the third slot went to %s, want the other collection's", got.Item.Collection)
		} else {
			running = append(running, got)
		}
		third := f.WaitingAt(stage, c, 1, false)
		f.crowded(stage, third[0]) // the last slot is for uploads
		f.Done(running[0].Lease)
		if got := f.Take(stage, third[0]); got.Item.ID != third[0] {
			f.Fatalf("the freed slot went to %s", got.Item.Collection)
		}
		f.crowded(stage, many[2])
		f.prioritise(many[4], -1)
		if got := f.Take(stage, many[2]); got.Item.ID != many[4] {
			f.Errorf("an operator's express item did not go before the rule")
		}
		f.Announce(stage, 0, 0)
	}
}

func crowdPassedByUploads(f *fixture) {
	for _, stage := range []registry.Stage{registry.Estimate, registry.Download} {
		a, b := f.Unique("a"), f.Unique("b")
		f.Collections(a, b)
		slow, other := f.WaitingAt(stage, a, 4, false), f.WaitingAt(stage, b, 2, false)
		f.Announce(stage, 4, 2)
		for range 2 {
			f.Take(stage, slow[0])
		}
		f.Take(stage, other[0])
		f.crowded(stage, slow[3])
		own := f.WaitingAt(stage, a, 2, true) // of the very collection that has all that it may have
		if got := f.Take(stage, slow[3]); got.Item.ID != own[0] {
			f.Fatalf("got %s, want the first upload", got.Item.Name)
		}
		if got := f.Take(stage, own[1]); got.Item.ID != own[1] {
			f.Fatalf("got %s, want the second upload", got.Item.Name)
		}
		f.crowded(stage, slow[3])
		f.Announce(stage, 0, 0)
	}
}

// crowdOfObjectManifests: the files of an uploaded object manifest come from other addresses, so
// they count. Reading a batch manifest only reads the upload.
func crowdOfObjectManifests(f *fixture) {
	for _, stage := range []registry.Stage{registry.Estimate, registry.Download} {
		collection := f.Unique("a")
		f.Collections(collection)
		slow := f.WaitingOf(stage, collection, 4, true, registry.ObjectManifest)
		f.Announce(stage, 4, 2)
		f.Take(stage, slow[0])
		f.Take(stage, slow[1])
		f.crowded(stage, slow[2])
		for _, own := range f.WaitingOf(stage, collection, 2, true, registry.BagType) {
			if got := f.Take(stage, slow[2]); got.Item.ID != own {
				f.Fatalf("got %s, want an uploaded bag", got.Item.Name)
			}
		}
		f.Announce(stage, 0, 0)
	}
	var batches []string
	for range 4 {
		id := f.Unique("upload")
		f.Upload(id, id)
		batches = append(batches, f.Submit(func(s *registry.Submission) { s.Spec.URL = registry.UploadURL(id) }))
	}
	f.Announce(registry.Expand, 4, 2)
	for _, batch := range batches {
		f.Take(registry.Expand, batch)
	}
}

func crowdPastAHeldUpload(f *fixture) {
	slow := f.WaitingAt(registry.Download, registrytest.Mnemonic, 3, false)
	f.Announce(registry.Download, 4, 2)
	f.Take(registry.Download, slow[0])
	f.Take(registry.Download, slow[1])
	own := f.WaitingAt(registry.Download, registrytest.Mnemonic, 2, true)
	f.Hold(registry.HoldItem, own[0])
	if got := f.Take(registry.Download, slow[2]); got.Item.ID != own[1] {
		f.Fatalf("got %s, want the upload behind the held one", got.Item.Name)
	}
	f.crowded(registry.Download, slow[2])
	f.Release(registry.HoldItem, own[0])
	if got := f.Take(registry.Download, slow[2]); got.Item.ID != own[0] {
		f.Fatalf("got %s, want the upload that is held no more", got.Item.Name)
	}
}

func crowdWithoutHeldWorker(f *fixture) {
	jobs := f.WaitingAt(registry.Download, registrytest.Mnemonic, 5, false)
	f.Announce(registry.Download, 4, 2)
	f.Take(registry.Download, jobs[0])
	f.Take(registry.Download, jobs[1])
	f.crowded(registry.Download, jobs[2])
	_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Lease: registrytest.Lease, Worker: registry.WorkerInfo{
		ID: "worker-2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 4},
		Spare: map[registry.Stage]int{registry.Download: 2},
	}})
	f.Must(err)
	f.Hold(registry.HoldWorker, "worker-1")
	for _, job := range jobs[2:4] {
		if got, why := f.asksAt(registry.Download, "worker-2", job); why != "" || got.Item.ID != job {
			f.Fatalf("the other worker got %q, refused for %q; it has four slots, and runs nothing", got.Item.ID, why)
		}
	}
	if _, why := f.asksAt(registry.Download, "worker-2", jobs[4]); why != registry.ReasonCrowded {
		f.Errorf("a third item: %q, want crowded", why)
	}
}

// crowdWithoutKilledWorker: a process that replaces a killed one gives a collection no more than
// its own share once the old leases have expired.
func crowdWithoutKilledWorker(f *fixture) {
	jobs := f.WaitingAt(registry.Download, registrytest.Mnemonic, 4, false)
	f.Announce(registry.Download, 4, 2)
	f.Clock.Pass(registrytest.Lease + time.Second)
	_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Lease: registrytest.Lease, Worker: registry.WorkerInfo{
		ID: "worker-2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 4},
		Spare: map[registry.Stage]int{registry.Download: 2},
	}})
	f.Must(err)
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
	jobs := f.WaitingAt(registry.Download, registrytest.Mnemonic, 3, false)
	f.Announce(registry.Download, 3, 2)
	first := f.Take(registry.Download, jobs[0])
	f.crowded(registry.Download, jobs[1])
	f.Settle(registry.Settlement{Lease: first.Lease, Outcome: registry.OutcomeRetry, MaxAttempts: 5, Delay: time.Hour})
	second := f.Take(registry.Download, jobs[1])
	f.crowded(registry.Download, jobs[2])
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: second.Item.ID, Act: registry.ActCancel, Reason: "stop", Actor: "admin"})
	f.Must(err)
	f.Take(registry.Download, jobs[2])
}

// crowdKeepsMessages: a message may fetch an item whose own message waits for a slot. That message
// then fetches the other item.
func crowdKeepsMessages(f *fixture) {
	jobs := f.WaitingAt(registry.Download, registrytest.Mnemonic, 4, false)
	f.Announce(registry.Download, 3, 2)
	first := f.Take(registry.Download, jobs[0])
	f.crowded(registry.Download, jobs[1])
	f.Done(first.Lease)
	second, err := f.Store.Claim(f.Context(), f.Request(registry.Download, jobs[2]))
	f.Must(err)
	if second.Item.ID != jobs[1] {
		f.Fatalf("the message of %s got %s, want %s, which comes first", jobs[2], second.Item.ID, jobs[1])
	}
	keeps := func(why registry.Reason) {
		f.Helper()
		if refused := f.Refused(registry.Download, jobs[1]); refused.Reason != why || refused.Again <= 0 {
			f.Errorf("the message of an item that another one got: %+v; want %s, and to be kept", refused, why)
		}
	}
	keeps(registry.ReasonRunningElsewhere)
	f.Settle(registry.Settlement{Lease: second.Lease, Outcome: registry.OutcomeRetry, MaxAttempts: 5, Delay: time.Hour})
	third := f.Take(registry.Download, jobs[2])
	keeps(registry.ReasonNotDue)
	f.Done(third.Lease)
	if left, err := f.Store.Claim(f.Context(), f.Request(registry.Download, jobs[1])); err != nil || left.Item.ID != jobs[3] {
		f.Errorf("got %s (%v), want %s", left.Item.ID, err, jobs[3])
	}
	if refused := f.Refused(registry.Download, jobs[2]); refused.Again != 0 {
		f.Errorf("a message is kept although nothing waits: %+v", refused)
	}
}

// crowdOfBags: the files of a bag's fetch.txt may be slow, however the bag arrived.
func crowdOfBags(f *fixture) {
	jobs := f.WaitingAt(registry.Process, registrytest.Mnemonic, 3, true)
	f.Announce(registry.Process, 3, 1)
	f.Take(registry.Process, jobs[0])
	f.Take(registry.Process, jobs[1])
	f.crowded(registry.Process, jobs[2])
}

func crowdWithoutRule(f *fixture) {
	jobs := f.WaitingAt(registry.Download, registrytest.Mnemonic, 6, false)
	f.Announce(registry.Download, 2, 0)
	for range jobs {
		f.Take(registry.Download, "")
	}
	route, _ := registry.RouteOf(registry.Ingest)
	for _, step := range route.Steps {
		if step.Fetches != registry.NoSource {
			continue
		}
		f.Announce(step.Stage, 2, 1) // which says nothing where no source is waited for
	}
	jobs = f.WaitingAt(registry.Record, registrytest.Mnemonic, 3, false)
	for range jobs {
		f.Take(registry.Record, "")
	}
}
