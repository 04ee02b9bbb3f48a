package worktest

import (
	"errors"
	"math"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func renewTests() tests {
	return tests{
		"a_renewal_extends_the_lease":                  renewExtends,
		"R09_lost_attempts_are_named":                  renewNamesLost,
		"R15_an_expired_lease_lives_until_it_is_taken": expiredLives,
		"progress":                          renewProgress,
		"workers":                           renewWorkers,
		"what_a_worker_asks_for_has_bounds": leaseBounds,
		"slots_have_bounds":                 slotBounds,
	}
}

func renewExtends(f *fixture) {
	c := f.Take(registry.Expand, f.Submit())
	f.Clock.Pass(20 * time.Second)
	if lost := f.Renew(registrytest.Beat(c.Lease)); len(lost) != 0 {
		f.Errorf("lost %v", lost)
	}
	if got, want := f.AttemptsOf(c.Item.ID)[0].LeaseUntil, f.Clock.Now().Add(registrytest.Lease); !got.Equal(want) {
		f.Errorf("lease until %v, want %v", got, want)
	}
}

func renewNamesLost(f *fixture) {
	lives, settled, again := f.Take(registry.Expand, f.Submit()), f.Take(registry.Expand, f.Submit()), f.Take(registry.Expand, f.Submit())
	f.Done(settled.Lease)
	f.Settle(registry.Settlement{Lease: again.Lease, Outcome: registry.OutcomeReleased})
	newer := f.Take(registry.Expand, again.Item.ID)
	unknown := registry.Lease{ItemID: "unknown", N: 1}
	before := f.Item(again.Item.ID)
	bad := registrytest.Beat(again.Lease)
	bad.DoneBytes, bad.Progress = 999, []registry.Progress{{Title: "zombie"}}
	lost := f.Renew(registrytest.Beat(lives.Lease), registrytest.Beat(settled.Lease), bad, registrytest.Beat(unknown), registrytest.Beat(newer.Lease))
	if diff := cmp.Diff([]registry.Lease{settled.Lease, again.Lease, unknown}, lost); diff != "" {
		f.Errorf("lost (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, f.Item(again.Item.ID)); diff != "" {
		f.Errorf("a lost attempt's news were taken:\n%s", diff)
	}
}

func expiredLives(f *fixture) {
	renewed, settled := f.Take(registry.Expand, f.Submit()), f.Take(registry.Expand, f.Submit())
	f.Clock.Pass(3 * registrytest.Lease)
	if lost := f.Renew(registrytest.Beat(renewed.Lease)); len(lost) != 0 {
		f.Errorf("nobody took it, and yet it is lost: %v", lost)
	}
	if got := f.Done(settled.Lease); got.Stage != registry.Report {
		f.Errorf("verdict %+v", got)
	}
}

func renewProgress(f *fixture) {
	c := f.Take(registry.Expand, f.Submit())
	want := []registry.Progress{{Title: "files", Unit: "files", Position: 3, End: 10}, {Title: "bytes", Unit: "bytes", Position: 5, End: -1}}
	b := registry.Beat{Lease: c.Lease, Progress: want, Advanced: true, DoneBytes: 5, DoneFiles: 3}
	f.Renew(b)
	f.Renew(registrytest.Beat(c.Lease)) // says nothing new
	if diff := cmp.Diff(want, f.AttemptsOf(c.Item.ID)[0].Progress); diff != "" {
		f.Errorf("progress (-want +got):\n%s", diff)
	}
	if it := f.Item(c.Item.ID); it.DoneBytes != 5 || it.DoneFiles != 3 {
		f.Errorf("done %d bytes, %d files", it.DoneBytes, it.DoneFiles)
	}
}

func renewWorkers(f *fixture) {
	info := registry.WorkerInfo{
		ID: "w", Version: "v2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 1},
	}
	send := func() {
		f.Helper()
		_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Worker: info, Lease: registrytest.Lease})
		f.Must(err)
	}
	workers := func() []registry.WorkerInfo {
		f.Helper()
		ws, err := f.Store.Workers(f.Context())
		f.Must(err)
		return ws
	}
	send()
	info.Draining = true
	f.Clock.Pass(10 * time.Second)
	send()
	info.SeenAt = f.Clock.Now()
	if diff := cmp.Diff([]registry.WorkerInfo{info}, workers()); diff != "" {
		f.Errorf("workers (-want +got):\n%s", diff)
	}
	f.Clock.Pass(2 * time.Minute)
	if got := workers(); len(got) != 0 {
		f.Errorf("a silent worker is listed: %+v", got)
	}
}

// leaseBounds: no request gets a lease longer than the limit.
func leaseBounds(f *fixture) {
	id := f.Submit()
	for name, change := range map[string]func(*registry.ClaimRequest){
		"lease":          func(r *registry.ClaimRequest) { r.Lease = registry.MostLease + 1 },
		"negative lease": func(r *registry.ClaimRequest) { r.Lease = -1 },
		"stuck":          func(r *registry.ClaimRequest) { r.StuckAfter = 9e18 },
	} {
		r := f.Request(registry.Expand, id)
		change(&r)
		if _, err := f.Store.Claim(f.Context(), r); !errors.Is(err, registry.ErrInvalid) {
			f.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	c := f.Take(registry.Expand, id)
	want := f.AttemptsOf(id)[0].LeaseUntil
	_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "worker-1"}, Lease: 9e18, Beats: []registry.Beat{registrytest.Beat(c.Lease)}})
	f.Is(err, registry.ErrInvalid)
	if got := f.AttemptsOf(id)[0].LeaseUntil; !got.Equal(want) {
		f.Errorf("lease until %v, want %v as before", got, want)
	}
	_, err = f.Store.Renew(f.Context(), registry.RenewRequest{Lease: registry.MostLease, Beats: []registry.Beat{registrytest.Beat(c.Lease)}})
	f.Must(err)
}

// slotBounds: workers of one stage announce more slots than a sum can hold. The other stages still
// get their messages.
func slotBounds(f *fixture) {
	id := f.Submit()
	for _, worker := range []string{"a", "b"} {
		for names, change := range map[string]func(*registry.WorkerInfo){
			"Capacity": func(w *registry.WorkerInfo) { w.Capacity = map[registry.Stage]int{registry.Scan: math.MaxInt64} },
			"Free":     func(w *registry.WorkerInfo) { w.Free = map[registry.Stage]int{registry.Scan: -1} },
			"Spare":    func(w *registry.WorkerInfo) { w.Spare = map[registry.Stage]int{registry.Scan: math.MaxInt64} },
		} {
			w := registry.WorkerInfo{ID: worker}
			change(&w)
			_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Worker: w, Lease: registrytest.Lease})
			f.invalid(err, names)
		}
	}
	if wakes := f.Offer(10); len(wakes) != 1 || wakes[0].ItemID != id {
		f.Errorf("batch %s, which waits at expand, is offered as %+v", id, wakes)
	}
}
