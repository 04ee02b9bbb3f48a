package worktest

import (
	"errors"
	"fmt"
	"maps"
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
		"log_lines":                         logLines,
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

// logLines: a repeated renewal adds nothing; the newest lines of the newest attempts stay; a purge
// removes them.
func logLines(f *fixture) {
	lines := func(from, to int64) (all []registry.LogLine) {
		for seq := from; seq <= to; seq++ {
			all = append(all, registry.LogLine{Seq: seq, At: f.Clock.Now(), Level: "WARN", Text: fmt.Sprint("line\x00\n", seq)})
		}
		return all
	}
	read := func(q registry.LogQuery) registry.Page[registry.LogLine] {
		f.Helper()
		p, err := f.Store.Log(f.Context(), q)
		f.Must(err)
		return p
	}
	c := f.Take(registry.Expand, f.Submit())
	id := c.Item.ID
	b := registrytest.Beat(c.Lease)
	for _, upTo := range []int64{3, 5} { // the first renewal was not answered
		b.Log = lines(1, upTo)
		f.Renew(b)
	}
	first := read(registry.LogQuery{ItemID: id, Limit: 3})
	rest := read(registry.LogQuery{ItemID: id, Limit: 3, After: first.Next})
	if len(first.Rows) != 3 || len(rest.Rows) != 2 || rest.Next != "" || rest.Rows[0].Seq != 4 || rest.Rows[0].Dropped != 0 {
		f.Errorf("log %+v, then %+v", first, rest)
	}
	want := registry.LogLine{N: 1, Seq: 1, At: f.Clock.Now(), Level: "WARN", Text: "line\uFFFD 1"}
	if diff := cmp.Diff(want, first.Rows[0]); diff != "" {
		f.Errorf("line (-want +got):\n%s", diff)
	}
	b.Log = lines(registry.MostLogLines+2, registry.MostLogLines+3)
	f.Renew(b)
	if got := read(registry.LogQuery{ItemID: id, Limit: 1}).Rows[0]; got.Seq != 4 || got.Dropped != 3 {
		f.Errorf("oldest line %+v, want the fourth, after three that were dropped", got)
	}
	newest := read(registry.LogQuery{ItemID: id, Limit: 2, Newest: true})
	if older := read(registry.LogQuery{ItemID: id, Limit: 1, Newest: true, After: newest.Next}).Rows; newest.Rows[1].Dropped != registry.MostLogLines+1-5 || older[0].Seq != 5 {
		f.Errorf("newest %+v, then %+v", newest, older)
	}
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased, Log: lines(registry.MostLogLines+4, registry.MostLogLines+4)})
	f.Renew(b) // too late
	if got := read(registry.LogQuery{ItemID: id, Limit: 1, Newest: true}).Rows[0]; got.Seq != registry.MostLogLines+4 {
		f.Errorf("last line %+v, want that of the settlement", got)
	}
	for range registry.MostLogs {
		f.Settle(registry.Settlement{Lease: f.Take(registry.Expand, id).Lease, Outcome: registry.OutcomeReleased, Log: lines(1, 1)})
	}
	if got := read(registry.LogQuery{ItemID: id, Limit: 100}).Rows; len(got) != registry.MostLogs || got[0].N != 2 {
		f.Errorf("%d lines, the first %+v", len(got), got[0])
	}
	_, err := f.Store.Log(f.Context(), registry.LogQuery{ItemID: id, Limit: 1, After: "x"})
	f.Is(err, registry.ErrNotFound)
	f.Command(id, registry.ActCancel, "")
	f.Confirm(id, registry.ActDelete)
	f.Confirm(id, registry.ActPurge)
	if got := read(registry.LogQuery{ItemID: id, Limit: 1}).Rows; len(got) > 0 {
		f.Errorf("after the purge: %+v", got)
	}
}

func renewWorkers(f *fixture) {
	info := registry.WorkerInfo{
		ID: "w", Version: "v2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 1},
		Clock: f.Clock.Now().Add(-time.Hour),
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
	info.Since, info.LeaseSeconds = f.Clock.Now(), int64(registrytest.Lease.Seconds())
	info.Draining = true
	f.Clock.Pass(10 * time.Second)
	send()
	info.SeenAt = f.Clock.Now()
	if diff := cmp.Diff([]registry.WorkerInfo{info}, workers()); diff != "" {
		f.Errorf("workers (-want +got):\n%s", diff)
	}
	// What it runs is counted, whatever it announced before.
	id := f.Job(registry.Download)
	r := f.Request(registry.Download, id)
	r.Worker = "w"
	c, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	if got := workers(); len(got) != 1 || !maps.Equal(got[0].Running, map[registry.Stage]int{registry.Download: 1}) {
		f.Errorf("workers %+v", got)
	}
	f.Done(c.Lease)
	if got := workers(); len(got) != 1 || len(got[0].Running) != 0 {
		f.Errorf("workers %+v", got)
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
