package registrytest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func reserveTests() []test {
	return []test{
		{"R24_two_jobs_are_never_promised_the_same_space", neverTwice},
		{"R24_racing_reservations_never_exceed_the_threshold", reserveRace},
		{"R24_what_is_staged_counts_once", stagedCountsOnce},
		{"R24_a_reservation_is_replaced", reservationReplaced},
		{"R24_it_lives_as_long_as_its_staging", reservationLives},
		{"R24_freed_space_wakes_who_waits", freedWakes},
		{"R24_volumes_are_apart", volumesApart},
		{"R24_the_earliest_that_grows_goes_first", growersInOrder},
		{"R24_who_waits_for_room_hears_how_long", roomWait},
	}
}

// room asks for bytes of a volume of 1000 bytes that is filled to 80 %.
func room(bytes, used int64) registry.Reservation {
	return registry.Reservation{Volume: "v", Bytes: bytes, Used: used, Total: 1000, Threshold: 0.8}
}

func (f *fixture) full(l registry.Lease, r registry.Reservation) *registry.NoSpaceError {
	f.Helper()
	err := f.Reserve(f.Context(), l, r)
	var full *registry.NoSpaceError
	if !errors.As(err, &full) {
		f.Fatalf("reserve %d: %v, want that there is no room", r.Bytes, err)
	}
	return full
}

func (f *fixture) provisioning(n int) []registry.Claim {
	f.Helper()
	_, jobs := f.batch(n)
	var claims []registry.Claim
	for _, job := range jobs {
		f.bring(job, registry.Provision)
	}
	for _, job := range jobs {
		claims = append(claims, f.takeItem(job))
	}
	return claims
}

func neverTwice(f *fixture) {
	c := f.provisioning(3)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(300, 100)))
	f.must(f.Reserve(f.Context(), c[1].Lease, room(300, 100)))
	got := f.full(c[2].Lease, room(101, 100))
	want := registry.NoSpaceError{Volume: "v", Need: 101, Used: 100, Total: 1000, Reserved: 600, ThresholdFactor: 0.8}
	if *got != want {
		f.Errorf("%+v, want %+v", *got, want)
	}
	f.must(f.Reserve(f.Context(), c[2].Lease, room(100, 100))) // a small one passes
}

func reserveRace(f *fixture) {
	c := f.provisioning(10)
	var mu sync.Mutex
	granted := 0
	var all sync.WaitGroup
	for _, claim := range c {
		all.Go(func() {
			err := f.Reserve(f.Context(), claim.Lease, room(200, 0))
			var full *registry.NoSpaceError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				granted++
			case !errors.As(err, &full):
				f.Error(err)
			}
		})
	}
	all.Wait()
	if granted != 4 {
		f.Errorf("%d times 200 bytes were promised of 800", granted)
	}
}

func stagedCountsOnce(f *fixture) {
	c := f.provisioning(2)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(500, 0)))
	// 400 of the 500 are on the volume now, which counts them as used.
	f.renew(registry.Beat{Lease: c[0].Lease, DoneBytes: 400, DoneFiles: -1})
	if got := f.full(c[1].Lease, room(301, 400)); got.Reserved != 100 {
		f.Errorf("reserved=%d, want what is still to come", got.Reserved)
	}
	f.must(f.Reserve(f.Context(), c[1].Lease, room(300, 400)))
	f.renew(registry.Beat{Lease: c[0].Lease, DoneBytes: 600, DoneFiles: -1}) // more than it asked for
	f.must(f.Reserve(f.Context(), c[1].Lease, room(200, 600)))
}

func reservationReplaced(f *fixture) {
	c := f.provisioning(2)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(700, 0)))
	f.must(f.Reserve(f.Context(), c[0].Lease, room(750, 0))) // its own does not count against it
	f.full(c[0].Lease, room(801, 0))
	f.full(c[1].Lease, room(51, 0)) // the refusal kept the 750
	f.must(f.Reserve(f.Context(), c[0].Lease, room(100, 0)))
	f.must(f.Reserve(f.Context(), c[1].Lease, room(700, 0)))
}

func reservationLives(f *fixture) {
	c := f.provisioning(2)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(800, 0)))
	f.done(c[0].Lease)
	f.full(c[1].Lease, room(1, 0))
	f.fail(c[0].Item.ID, registry.SystemFault) // its staging is kept for a requeue
	f.full(c[1].Lease, room(1, 0))
	f.command(c[0].Item.ID, registry.ActRequeue, "")
	f.finish(c[0].Item.ID)
	f.must(f.Reserve(f.Context(), c[1].Lease, room(800, 0)))
}

func freedWakes(f *fixture) {
	c := f.provisioning(2)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(800, 0)))
	f.full(c[1].Lease, room(1, 0))
	f.settle(registry.Settlement{
		Lease: c[1].Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: time.Hour,
	})
	f.done(c[0].Lease)
	f.finish(c[0].Item.ID)
	if got := f.offered(5); !has(got, c[1].Item.ID) {
		f.Errorf("due %v: who waits for room is not rung for", got)
	}
	f.take(registry.Provision, c[1].Item.ID)
}

func volumesApart(f *fixture) {
	c := f.provisioning(2)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(800, 0)))
	other := room(800, 0)
	other.Volume = "w"
	f.must(f.Reserve(f.Context(), c[1].Lease, other))
}

// growing brings n jobs to download and claims them, in the order of their ids.
func (f *fixture) growing(n int) (claims []registry.Claim) {
	f.Helper()
	_, jobs := f.batch(n)
	slices.Sort(jobs)
	for _, job := range jobs {
		f.bring(job, registry.Download)
		claims = append(claims, f.takeItem(job))
	}
	return claims
}

// waitsForRoom ends an attempt because there is no room, and claims the item again after that time.
func (f *fixture) waitsForRoom(c registry.Claim, d time.Duration) registry.Claim {
	f.Helper()
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: d})
	if d == 0 {
		return c
	}
	f.clock.pass(d)
	return f.takeItem(c.Item.ID)
}

// growersInOrder: of jobs that grow at once the first keeps what it has, and gets the room that the others must give back.
func growersInOrder(f *fixture) {
	c := f.growing(3)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(300, 0)))
	f.must(f.Reserve(f.Context(), c[1].Lease, room(300, 0)))
	if full := f.full(c[1].Lease, room(600, 0)); full.Yield {
		f.Error("it must give back although nobody before it waits")
	}
	if full := f.full(c[0].Lease, room(600, 0)); full.Yield {
		f.Error("the first must give back")
	}
	f.waitsForRoom(c[0], 0)
	if full := f.full(c[1].Lease, room(301, 0)); !full.Yield {
		f.Error("a later one grows, and keeps what it has, while the first waits")
	}
	f.must(f.Reserve(f.Context(), c[1].Lease, room(0, 0)))
	if got := f.offered(5); !has(got, c[0].Item.ID) {
		f.Errorf("due %v: the first is not rung for when room is given back", got)
	}
	c[0] = f.takeItem(c[0].Item.ID)
	f.must(f.Reserve(f.Context(), c[0].Lease, room(700, 0)))
	if full := f.full(c[0].Lease, room(900, 0)); !full.Yield {
		f.Error("one that alone fills the volume keeps it")
	}
}

// roomWait: a claim says how long its item has waited for room; for an item that has none yet only since another one got some.
func roomWait(f *fixture) {
	p := f.provisioning(2)
	f.must(f.Reserve(f.Context(), p[0].Lease, room(800, 0)))
	f.full(p[1].Lease, room(10, 0))
	again := f.waitsForRoom(p[1], time.Hour)
	if again.RoomWait != time.Hour {
		f.Errorf("waited %s, want an hour", again.RoomWait)
	}
	again = f.waitsForRoom(again, time.Hour)
	if again.RoomWait != 2*time.Hour {
		f.Errorf("waited %s, want two hours", again.RoomWait)
	}
	f.must(f.Reserve(f.Context(), again.Lease, registry.Reservation{Volume: "w", Bytes: 1, Total: 1000, Threshold: 1}))
	again = f.waitsForRoom(again, time.Minute)
	if again.RoomWait != time.Minute {
		f.Errorf("waited %s, want the minute since an item got room", again.RoomWait)
	}
	g := f.growing(1)
	f.must(f.Reserve(f.Context(), g[0].Lease, registry.Reservation{Volume: "v2", Bytes: 1, Total: 1000, Threshold: 1}))
	held := f.waitsForRoom(f.waitsForRoom(g[0], time.Hour), time.Hour)
	if held.RoomWait != 2*time.Hour {
		f.Errorf("one that holds room waited %s, want two hours", held.RoomWait)
	}
}
