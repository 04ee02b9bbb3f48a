package worktest

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func releaseTests() tests {
	return tests{
		"a_collection_goes_all_at_once":                releaseAllAtOnce,
		"a_collection_goes_one_by_one":                 releaseOneByOne,
		"one_by_one_only_what_this_hold_alone_covered": releaseOneByOneAlone,
		"while_another_hold_covers":                    releaseWhileHeld,
		"the_setting_counts_at_the_release":            releaseSetting,
	}
}

// oneByOne makes a collection whose holds are released item by item, with a batch of two jobs.
func (f *fixture) oneByOne() (name, batch string, jobs []string) {
	f.Helper()
	name = "careful"
	f.Collection(name, registry.Profile{Owner: registrytest.Owner, ReleaseOneByOne: true})
	batch = f.Submit(func(s *registry.Submission) { s.Collection = name })
	c := f.TakeItem(batch)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(2))
	f.Must(err)
	f.Done(c.Lease)
	return name, batch, f.Children(batch)
}

func releaseAllAtOnce(f *fixture) {
	batch, jobs := f.Batch(3)
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	f.Release(registry.HoldCollection, registrytest.Mnemonic)
	for _, id := range append(jobs, batch) {
		f.HeldBy(id, "", "")
	}
	if got := f.Offered(5); len(got) != 3 {
		f.Errorf("due %v, want the three jobs", got)
	}
}

func releaseOneByOne(f *fixture) {
	name, batch, jobs := f.oneByOne()
	apart := f.Submit()
	pending := f.Submit(func(s *registry.Submission) { s.Collection = name })
	running := f.TakeItem(jobs[0])
	f.Hold(registry.HoldCollection, name)
	since := f.Clock.Now()
	f.Clock.Pass(time.Hour)
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldCollection, name, "boss"))

	for _, id := range []string{batch, jobs[1], pending} {
		h := f.Item(id).HeldBy
		if h == nil || h.Scope != registry.HoldItem || h.Key != id || h.Actor != "admin" || !h.CreatedAt.Equal(since) ||
			!strings.Contains(h.Reason, "one by one") || !strings.Contains(h.Reason, "look at it") {
			f.Errorf("%s is held by %+v, want by a hold of its own with actor, reason and time of the collection's", id, h)
		}
	}
	f.HeldBy(apart, "", "")
	f.HeldBy(jobs[0], "", "") // it ran
	f.Done(running.Lease)
	f.State(jobs[0], registry.StateProvisioning)
	if got := f.Offered(5); slices.Contains(got, jobs[1]) || slices.Contains(got, pending) {
		f.Errorf("due %v: what is released one by one was rung for", got)
	}
	later := f.Submit(func(s *registry.Submission) { s.Collection = name })
	f.HeldBy(later, "", "")

	f.Release(registry.HoldItem, jobs[1])
	f.State(jobs[1], registry.StatePending)
	f.State(pending, registry.StateHeld)
	f.TakeItem(jobs[1])
	f.Release(registry.HoldItem, pending)
	f.Command(batch, registry.ActUnhold, "")
	got, err := f.Store.Holds(f.Context())
	f.Must(err)
	if len(got) != 0 {
		f.Errorf("holds %+v are left", got)
	}
}

func releaseOneByOneAlone(f *fixture) {
	name, batch, jobs := f.oneByOne()
	f.Hold(registry.HoldItem, jobs[0])
	f.Hold(registry.HoldCollection, name)
	f.Hold(registry.HoldStage, string(registry.Report)) // where the batch stands
	f.Release(registry.HoldCollection, name)
	got, err := f.Store.Holds(f.Context())
	f.Must(err)
	var keys []string
	for _, h := range got {
		keys = append(keys, string(h.Scope)+" "+h.Key)
	}
	want := []string{"item " + jobs[0], "item " + jobs[1], "stage report"}
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		f.Errorf("holds %v, want %v: only the second job was covered by the collection's alone", keys, want)
	}
	f.HeldBy(jobs[0], registry.HoldItem, jobs[0])
	f.HeldBy(batch, registry.HoldStage, string(registry.Report))
	f.Release(registry.HoldStage, string(registry.Report))
	f.HeldBy(batch, "", "")
}

func releaseWhileHeld(f *fixture) {
	batch, jobs := f.Batch(2)
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	f.Hold(registry.HoldBatch, batch)
	f.Offered(5)
	f.Release(registry.HoldCollection, registrytest.Mnemonic)
	for _, id := range jobs {
		f.State(id, registry.StateHeld)
		if got := f.Refused(registry.Estimate, id).Reason; got != registry.ReasonHeld {
			f.Errorf("claim: %s, want held", got)
		}
	}
	if got := f.Offered(5); len(got) != 0 {
		f.Errorf("due %v although the batch is held", got)
	}
	f.Release(registry.HoldBatch, batch)
	if got := f.Offered(5); !slices.Equal(got, jobs) {
		f.Errorf("due %v, want %v", got, jobs)
	}
}

func releaseSetting(f *fixture) {
	name, _, jobs := f.oneByOne()
	f.Hold(registry.HoldCollection, name)
	f.Collection(name, registry.Profile{Owner: registrytest.Owner})
	f.Release(registry.HoldCollection, name)
	f.HeldBy(jobs[0], "", "")
}
