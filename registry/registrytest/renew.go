package registrytest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func renewTests() []test {
	return []test{
		{"a_renewal_extends_the_lease", renewExtends},
		{"R09_lost_attempts_are_named", renewNamesLost},
		{"R15_an_expired_lease_lives_until_it_is_taken", expiredLives},
		{"progress", renewProgress},
		{"workers", renewWorkers},
		{"what_a_worker_asks_for_has_bounds", leaseBounds},
	}
}

// beat is a renewal of one lease without news.
func beat(l registry.Lease) registry.Beat {
	return registry.Beat{Lease: l, DoneBytes: -1, DoneFiles: -1}
}

func (f *fixture) renew(beats ...registry.Beat) (lost []registry.Lease) {
	f.Helper()
	answer, err := f.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "worker-1"}, Lease: lease, Beats: beats})
	f.must(err)
	return answer.Lost
}

func renewExtends(f *fixture) {
	c := f.take(registry.Expand, f.submit())
	f.clock.pass(20 * time.Second)
	if lost := f.renew(beat(c.Lease)); len(lost) != 0 {
		f.Errorf("lost %v", lost)
	}
	if got, want := f.attemptsOf(c.Item.ID)[0].LeaseUntil, f.clock.now().Add(lease); !got.Equal(want) {
		f.Errorf("lease until %v, want %v", got, want)
	}
}

func renewNamesLost(f *fixture) {
	lives, settled, again := f.take(registry.Expand, f.submit()), f.take(registry.Expand, f.submit()), f.take(registry.Expand, f.submit())
	f.done(settled.Lease)
	f.settle(registry.Settlement{Lease: again.Lease, Outcome: registry.OutcomeReleased})
	newer := f.take(registry.Expand, again.Item.ID)
	unknown := registry.Lease{ItemID: "unknown", N: 1}
	before := f.item(again.Item.ID)
	bad := beat(again.Lease)
	bad.DoneBytes, bad.Progress = 999, []registry.Progress{{Title: "zombie"}}
	lost := f.renew(beat(lives.Lease), beat(settled.Lease), bad, beat(unknown), beat(newer.Lease))
	if diff := cmp.Diff([]registry.Lease{settled.Lease, again.Lease, unknown}, lost); diff != "" {
		f.Errorf("lost (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, f.item(again.Item.ID)); diff != "" {
		f.Errorf("a lost attempt's news were taken:\n%s", diff)
	}
}

func expiredLives(f *fixture) {
	renewed, settled := f.take(registry.Expand, f.submit()), f.take(registry.Expand, f.submit())
	f.clock.pass(3 * lease)
	if lost := f.renew(beat(renewed.Lease)); len(lost) != 0 {
		f.Errorf("nobody took it, and yet it is lost: %v", lost)
	}
	if got := f.done(settled.Lease); got.Stage != registry.Report {
		f.Errorf("verdict %+v", got)
	}
}

func renewProgress(f *fixture) {
	c := f.take(registry.Expand, f.submit())
	want := []registry.Progress{{Title: "files", Unit: "files", Position: 3, End: 10}, {Title: "bytes", Unit: "bytes", Position: 5, End: -1}}
	b := registry.Beat{Lease: c.Lease, Progress: want, Advanced: true, DoneBytes: 5, DoneFiles: 3}
	f.renew(b)
	f.renew(beat(c.Lease)) // says nothing new
	if diff := cmp.Diff(want, f.attemptsOf(c.Item.ID)[0].Progress); diff != "" {
		f.Errorf("progress (-want +got):\n%s", diff)
	}
	if it := f.item(c.Item.ID); it.DoneBytes != 5 || it.DoneFiles != 3 {
		f.Errorf("done %d bytes, %d files", it.DoneBytes, it.DoneFiles)
	}
}

func renewWorkers(f *fixture) {
	info := registry.WorkerInfo{
		ID: "w", Version: "v2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 1},
	}
	send := func() {
		f.Helper()
		_, err := f.Renew(f.Context(), registry.RenewRequest{Worker: info, Lease: lease})
		f.must(err)
	}
	workers := func() []registry.WorkerInfo {
		f.Helper()
		ws, err := f.Workers(f.Context())
		f.must(err)
		return ws
	}
	send()
	info.Draining = true
	f.clock.pass(10 * time.Second)
	send()
	info.SeenAt = f.clock.now()
	if diff := cmp.Diff([]registry.WorkerInfo{info}, workers()); diff != "" {
		f.Errorf("workers (-want +got):\n%s", diff)
	}
	f.clock.pass(2 * time.Minute)
	if got := workers(); len(got) != 0 {
		f.Errorf("a silent worker is listed: %+v", got)
	}
}

// leaseBounds: no worker gets an item for longer than it may, however it asks.
func leaseBounds(f *fixture) {
	id := f.submit()
	for name, change := range map[string]func(*registry.ClaimRequest){
		"lease":          func(r *registry.ClaimRequest) { r.Lease = registry.MostLease + 1 },
		"negative lease": func(r *registry.ClaimRequest) { r.Lease = -1 },
		"stuck":          func(r *registry.ClaimRequest) { r.StuckAfter = 9e18 },
	} {
		r := f.request(registry.Expand, id)
		change(&r)
		if _, err := f.Claim(f.Context(), r); !errors.Is(err, registry.ErrInvalid) {
			f.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	c := f.take(registry.Expand, id)
	want := f.attemptsOf(id)[0].LeaseUntil
	_, err := f.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "worker-1"}, Lease: 9e18, Beats: []registry.Beat{beat(c.Lease)}})
	f.is(err, registry.ErrInvalid)
	if got := f.attemptsOf(id)[0].LeaseUntil; !got.Equal(want) {
		f.Errorf("lease until %v, want %v as before", got, want)
	}
	_, err = f.Renew(f.Context(), registry.RenewRequest{Lease: registry.MostLease, Beats: []registry.Beat{beat(c.Lease)}})
	f.must(err)
}
