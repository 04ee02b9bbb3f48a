package worktest

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func reserveTests() tests {
	return tests{
		"R24_two_jobs_are_never_promised_the_same_space":      neverTwice,
		"R24_racing_reservations_never_exceed_the_threshold":  reserveRace,
		"R24_what_is_staged_counts_once":                      stagedCountsOnce,
		"R24_a_reservation_is_replaced":                       reservationReplaced,
		"R24_it_lives_as_long_as_its_staging":                 reservationLives,
		"R24_freed_space_wakes_who_waits":                     freedWakes,
		"R24_volumes_are_apart":                               volumesApart,
		"R24_the_earliest_that_grows_goes_first":              growersInOrder,
		"R24_who_waits_for_room_hears_how_long":               roomWait,
		"a_volume_without_a_size_promises_nothing":            roomWithoutSize,
		"what_one_reserves_has_bounds":                        roomBounds,
		"reservations_never_overflow":                         roomOverflow,
		"R24_what_failed_keeps_no_room_of_others":             failedKeepsItsOwn,
		"what_waits_for_long_keeps_no_later_one_from_growing": longWait,
	}
}

func neverTwice(f *fixture) {
	c := f.Provisioning(3)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(300, 100)))
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(300, 100)))
	got := f.NoRoom(c[2].Lease, registrytest.Room(101, 100))
	want := registry.NoSpaceError{Volume: "v", Need: 101, Used: 100, Total: 1000, Reserved: 600, ThresholdFactor: 0.8}
	if *got != want {
		f.Errorf("%+v, want %+v", *got, want)
	}
	f.Must(f.Store.Reserve(f.Context(), c[2].Lease, registrytest.Room(100, 100))) // a small one passes
}

func reserveRace(f *fixture) {
	c := f.Provisioning(10)
	var mu sync.Mutex
	granted := 0
	var all sync.WaitGroup
	for _, claim := range c {
		all.Go(func() {
			err := f.Store.Reserve(f.Context(), claim.Lease, registrytest.Room(200, 0))
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
	c := f.Provisioning(2)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(500, 0)))
	// 400 of the 500 are on the volume now, which counts them as used.
	f.Renew(registry.Beat{Lease: c[0].Lease, DoneBytes: 400, DoneFiles: -1})
	if got := f.NoRoom(c[1].Lease, registrytest.Room(301, 400)); got.Reserved != 100 {
		f.Errorf("reserved=%d, want what is still to come", got.Reserved)
	}
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(300, 400)))
	f.Renew(registry.Beat{Lease: c[0].Lease, DoneBytes: 600, DoneFiles: -1}) // more than it asked for
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(200, 600)))
}

func reservationReplaced(f *fixture) {
	c := f.Provisioning(2)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(700, 0)))
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(750, 0))) // its own does not count against it
	f.NoRoom(c[0].Lease, registrytest.Room(801, 0))
	f.NoRoom(c[1].Lease, registrytest.Room(51, 0)) // the refusal kept the 750
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(100, 0)))
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(700, 0)))
}

func reservationLives(f *fixture) {
	c := f.Provisioning(2)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(800, 0)))
	f.Done(c[0].Lease)
	f.NoRoom(c[1].Lease, registrytest.Room(1, 0))
	f.FailItem(c[0].Item.ID, registry.SystemFault) // its staging is kept for a requeue
	f.NoRoom(c[1].Lease, registrytest.Room(1, 0))
	f.Command(c[0].Item.ID, registry.ActRequeue, "")
	f.Finish(c[0].Item.ID)
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(800, 0)))
}

func freedWakes(f *fixture) {
	c := f.Provisioning(2)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(800, 0)))
	f.NoRoom(c[1].Lease, registrytest.Room(1, 0))
	f.Settle(registry.Settlement{
		Lease: c[1].Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: time.Hour,
	})
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	if got := f.Offered(5); !slices.Contains(got, c[1].Item.ID) {
		f.Errorf("due %v: who waits for room is not rung for", got)
	}
	f.Take(registry.Provision, c[1].Item.ID)
}

func volumesApart(f *fixture) {
	c := f.Provisioning(2)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(800, 0)))
	other := registrytest.Room(800, 0)
	other.Volume = "w"
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, other))
}

// growing brings n jobs to download and claims them in the order of their ids.
func (f *fixture) growing(n int) (claims []registry.Claim) {
	f.Helper()
	_, jobs := f.Batch(n)
	slices.Sort(jobs)
	for _, job := range jobs {
		f.Bring(job, registry.Download)
		claims = append(claims, f.TakeItem(job))
	}
	return claims
}

// waitsForRoom snoozes an attempt because there is no room, and claims the item again after that
// time.
func (f *fixture) waitsForRoom(c registry.Claim, d time.Duration) registry.Claim {
	f.Helper()
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: d})
	if d == 0 {
		return c
	}
	f.Clock.Pass(d)
	return f.TakeItem(c.Item.ID)
}

// growersInOrder: of jobs that grow at the same time, the first keeps its room and gets what the
// others must give back.
func growersInOrder(f *fixture) {
	c := f.growing(3)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(300, 0)))
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(300, 0)))
	if full := f.NoRoom(c[1].Lease, registrytest.Room(600, 0)); full.Yield {
		f.Error("it must give back although nobody before it waits")
	}
	if full := f.NoRoom(c[0].Lease, registrytest.Room(600, 0)); full.Yield {
		f.Error("the first must give back")
	}
	f.waitsForRoom(c[0], 0)
	if full := f.NoRoom(c[1].Lease, registrytest.Room(301, 0)); !full.Yield {
		f.Error("a later one grows, and keeps what it has, while the first waits")
	}
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(0, 0)))
	if got := f.Offered(5); !slices.Contains(got, c[0].Item.ID) {
		f.Errorf("due %v: the first is not rung for when room is given back", got)
	}
	c[0] = f.TakeItem(c[0].Item.ID)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(700, 0)))
	if full := f.NoRoom(c[0].Lease, registrytest.Room(900, 0)); !full.Yield {
		f.Error("one that alone fills the volume keeps it")
	}
}

// roomWait: a claim says how long its item has waited for room. For an item without any, the time
// counts since another item got room.
func roomWait(f *fixture) {
	p := f.Provisioning(2)
	f.Must(f.Store.Reserve(f.Context(), p[0].Lease, registrytest.Room(800, 0)))
	f.NoRoom(p[1].Lease, registrytest.Room(10, 0))
	again := f.waitsForRoom(p[1], time.Hour)
	if again.RoomWait != time.Hour {
		f.Errorf("waited %s, want an hour", again.RoomWait)
	}
	again = f.waitsForRoom(again, time.Hour)
	if again.RoomWait != 2*time.Hour {
		f.Errorf("waited %s, want two hours", again.RoomWait)
	}
	f.Must(f.Store.Reserve(f.Context(), again.Lease, registry.Reservation{Volume: "w", Bytes: 1, Total: 1000, Threshold: 1}))
	again = f.waitsForRoom(again, time.Minute)
	if again.RoomWait != time.Minute {
		f.Errorf("waited %s, want the minute since an item got room", again.RoomWait)
	}
	g := f.growing(1)
	f.Must(f.Store.Reserve(f.Context(), g[0].Lease, registry.Reservation{Volume: "v2", Bytes: 1, Total: 1000, Threshold: 1}))
	held := f.waitsForRoom(f.waitsForRoom(g[0], time.Hour), time.Hour)
	if held.RoomWait != 2*time.Hour {
		f.Errorf("one that holds room waited %s, want two hours", held.RoomWait)
	}
}

// roomWithoutSize: a reservation on a volume of unknown size takes no room from others.
func roomWithoutSize(f *fixture) {
	c := f.Provisioning(2)
	r := registrytest.Room(1<<40, 0)
	r.Total = 0
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, r))
	f.Renew(registry.Beat{Lease: c[0].Lease, DoneBytes: 5, DoneFiles: 1})
	f.roomFor(c[1].Lease, 1)
}

// roomFor checks that another job and an upload get room on the empty volume.
func (f *fixture) roomFor(l registry.Lease, bytes int64) {
	f.Helper()
	if err := f.Store.Reserve(f.Context(), l, registrytest.Room(bytes, 0)); err != nil {
		f.Errorf("another job on the empty volume: %v", err)
	}
	_, err := f.Store.BeginUpload(f.Context(), registry.NewUpload{
		ID: f.Unique("upload"), Filename: "f", SizeBytes: 1, CreatedBy: "somebody", Keep: time.Hour,
		Room: registry.UploadRoom{Volume: "v", Total: 1000, Threshold: 0.8},
	})
	if err != nil {
		f.Errorf("an upload to the empty volume: %v", err)
	}
}

func roomBounds(f *fixture) {
	c := f.Provisioning(2)
	for names, change := range map[string]func(*registry.Reservation){
		"Bytes":     func(r *registry.Reservation) { r.Bytes = math.MaxInt64 },
		"Used":      func(r *registry.Reservation) { r.Used = -1 },
		"Total":     func(r *registry.Reservation) { r.Total = -1 },
		"Staged":    func(r *registry.Reservation) { r.Staged = math.MaxInt64 },
		"Threshold": func(r *registry.Reservation) { r.Threshold = 1.5 },
	} {
		r := registrytest.Room(1, 0)
		change(&r)
		f.invalid(f.Store.Reserve(f.Context(), c[0].Lease, r), names)
	}
	// What is said to be staged already needs no room, and counts no more than all that the volume
	// may hold.
	r := registrytest.Room(1<<50, 0)
	r.Staged = 1 << 50
	f.NoRoom(c[0].Lease, r)
	f.Renew(registry.Beat{Lease: c[0].Lease, DoneBytes: 0, DoneFiles: 0})
	f.roomFor(c[1].Lease, 1)
}

// roomOverflow: the claims of one token reserve more than a sum can hold, on a volume that they
// call endless.
func roomOverflow(f *fixture) {
	f.Token("root", registry.RoleAdmin)
	f.Token("leaked", registry.RoleWorker)
	const most = 1 << 56
	c := f.Provisioning(140)
	for i, claim := range c[:139] {
		r := registry.Reservation{Volume: "v", Bytes: most, Total: math.MaxInt64, Threshold: 1}
		if i%2 == 0 { // which takes no room until its news say that nothing is staged any more
			r.Staged = most
		}
		_ = f.Store.Reserve(f.Context(), claim.Lease, r)
		f.Renew(registry.Beat{Lease: claim.Lease, DoneBytes: 0, DoneFiles: 0})
	}
	for _, claim := range c[:139] { // honest workers have them again, and give the room back
		if err := f.Store.Reserve(f.Context(), claim.Lease, registrytest.Room(0, 0)); err != nil {
			f.Fatalf("give room back: %v", err)
		}
	}
	f.roomFor(c[139].Lease, 799)
}

// longWait: an item that holds one byte waits for room for as long as it may.
func longWait(f *fixture) {
	c := f.growing(2)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registrytest.Room(1, 0)))
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(1, 0)))
	off := registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: 200 * 365 * registrytest.Day}
	_, err := f.Store.Settle(f.Context(), off)
	f.invalid(err, "Delay")
	off.Delay = registrytest.Day
	f.Settle(off)
	if err := f.Store.Reserve(f.Context(), c[1].Lease, registrytest.Room(2, 0)); err != nil {
		f.Errorf("another job grows by a byte on the empty volume: %v", err)
	}
}

// failedKeepsItsOwn: failed items keep their staging for a requeue. If those of one collection fill
// half of the usable room, only its own later jobs wait.
func failedKeepsItsOwn(f *fixture) {
	c := f.Provisioning(3)
	for _, failing := range c[:2] {
		f.Must(f.Store.Reserve(f.Context(), failing.Lease, registrytest.Room(210, 0)))
		f.Settle(registry.Settlement{Lease: failing.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "wrong digest"})
	}
	got := f.NoRoom(c[2].Lease, registrytest.Room(10, 0))
	want := registry.NoSpaceError{Volume: "v", Need: 10, Total: 1000, Reserved: 420, ThresholdFactor: 0.8, Yield: true, Kept: 420}
	if *got != want {
		f.Errorf("%+v, want %+v", *got, want)
	}
	f.Says(got.Error(), "420 bytes", "requeue or delete")
	f.Collection("others", registry.Profile{})
	other := f.TakeItem(f.WaitingAt(registry.Provision, "others", 1, false)[0])
	f.Must(f.Store.Reserve(f.Context(), other.Lease, registrytest.Room(300, 0)))
	f.Command(c[0].Item.ID, registry.ActRequeue, "")
	f.Must(f.Store.Reserve(f.Context(), c[2].Lease, registrytest.Room(10, 0)))
	f.Command(c[0].Item.ID, registry.ActCancel, "")
	f.NoRoom(c[2].Lease, registrytest.Room(20, 0))
	f.Command(c[0].Item.ID, registry.ActRequeue, "")
	f.Must(f.Store.Reserve(f.Context(), c[2].Lease, registrytest.Room(20, 0)))
}
