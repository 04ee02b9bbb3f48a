package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// TestSwarm runs workers, zombies, a sweep, a relay and readers on the same batches at once. In the
// end every item is settled, and nothing was done twice.
func TestSwarm(t *testing.T) {
	c := newClock()
	s := open(t, filepath.Join(t.TempDir(), "registry.db"), c.now)
	sw := &swarm{T: t, s: s, clock: c, won: map[string]int{}}
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	const batches = 4
	for range batches {
		r, err := s.Submit(t.Context(), registry.Submission{Collection: "c"})
		if err != nil {
			t.Fatal(err)
		}
		sw.batches = append(sw.batches, r.BatchID)
	}
	ctx, stop := context.WithCancel(t.Context())
	var around, workers sync.WaitGroup
	around.Go(func() { sw.keepHouse(ctx) })
	around.Go(func() { sw.read(ctx) })
	for i := range 6 {
		workers.Go(func() { sw.work(ctx, i) })
	}
	workers.Wait()
	stop()
	around.Wait()
	registrytest.CheckInvariants(t, s)
	for _, id := range sw.batches {
		it, err := s.Item(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.BatchProgress(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !it.Status.Settled() || p.Open != 0 || p.Jobs != jobsOfSwarm || it.Closing != 1 {
			t.Errorf("batch %s: %s, closing %d, %+v", id, it.Status, it.Closing, p)
		}
	}
	for step, n := range sw.won {
		if n != 1 {
			t.Errorf("%s was done %d times", step, n)
		}
	}
}

const jobsOfSwarm = 8

type swarm struct {
	*testing.T
	s       *sqlstore.Store
	clock   *clock
	batches []string

	mu  sync.Mutex
	won map[string]int // how often a step of an item was done
}

// work claims and settles until all batches are settled.
func (sw *swarm) work(ctx context.Context, n int) {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for turn := 0; !sw.over(ctx); turn++ {
		for _, stage := range registry.Stages() {
			c, err := sw.s.Claim(ctx, registry.ClaimRequest{
				RequestID: fmt.Sprintf("%d-%d-%s", n, turn, stage), Stage: stage, Worker: fmt.Sprint(n), Lease: time.Minute, MaxAttempts: 5,
			})
			var refused *registry.NotClaimable
			switch {
			case errors.As(err, &refused):
				continue
			case err != nil:
				sw.Error(err)
				return
			}
			for got := &c; got != nil; {
				got = sw.step(ctx, *got, random.IntN(10))
			}
		}
	}
}

// step does a claimed step, or fails at it, or forgets it. It returns the item's next claim if it
// got one with the settlement.
func (sw *swarm) step(ctx context.Context, c registry.Claim, luck int) (went *registry.Claim) {
	se := registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, MaxAttempts: 5, Class: registry.SystemFault}
	switch luck {
	case 0:
		se.Outcome = registry.OutcomeRetry
	case 1:
		se.Outcome = registry.OutcomeReleased
	case 2:
		return nil // killed
	}
	if c.Item.Stage == registry.Expand {
		jobs := make([]registry.NewJob, jobsOfSwarm)
		for i := range jobs {
			jobs[i].Line = int64(i + 1)
		}
		if _, err := sw.s.AddJobs(ctx, c.Lease, jobs); err != nil && !errors.Is(err, registry.ErrClaimLost) {
			sw.Error(err)
		}
	}
	action, _ := registry.ActionOf(c.Item.Stage)
	route, _ := registry.RouteOf(action)
	next, _ := route.With(nil).Next(c.Item.Stage)
	r := registry.ClaimRequest{RequestID: uuid.NewString(), Stage: next, Worker: "continuing", Lease: time.Minute, MaxAttempts: 5}
	for range 2 { // the second one is a repeat whose answer was lost
		v, got, err := sw.s.SettleAndClaim(ctx, se, r)
		if errors.Is(err, registry.ErrClaimLost) {
			return nil
		} else if err != nil {
			sw.Error(err)
			return nil
		}
		if v.Stage == c.Item.Stage && !v.Status.Settled() {
			return nil
		}
		went = got
	}
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.won[c.Item.ID+" "+string(c.Item.Stage)]++
	return went
}

func (sw *swarm) over(ctx context.Context) bool {
	for _, id := range sw.batches {
		it, err := sw.s.Item(ctx, id)
		if err != nil {
			sw.Error(err)
			return true
		}
		if !it.Status.Settled() {
			return false
		}
	}
	return true
}

// keepHouse lets time pass, sweeps and offers.
func (sw *swarm) keepHouse(ctx context.Context) {
	for ctx.Err() == nil {
		sw.clock.pass(20 * time.Second)
		if _, err := sw.s.Sweep(ctx, time.Minute); err != nil && ctx.Err() == nil {
			sw.Error(err)
		}
		wakes, err := sw.s.Due(ctx, registry.DueRequest{Window: 2, Renudge: time.Minute, RenudgeMax: time.Hour})
		if err != nil && ctx.Err() == nil {
			sw.Error(err)
		}
		if err := sw.s.Undo(ctx, wakes); err != nil && ctx.Err() == nil {
			sw.Error(err)
		}
	}
}

// read asks what pages ask, and checks each answer for itself.
func (sw *swarm) read(ctx context.Context) {
	for ctx.Err() == nil {
		for _, id := range sw.batches {
			p, err := sw.s.BatchProgress(ctx, id)
			if err != nil {
				if ctx.Err() == nil {
					sw.Error(err)
				}
				return
			}
			if p.Jobs != p.Open+p.Completed+p.Failed || p.Jobs > jobsOfSwarm {
				sw.Errorf("progress does not add up: %+v", p)
			}
			if _, err := sw.s.Why(ctx, id); err != nil && ctx.Err() == nil {
				sw.Error(err)
			}
		}
	}
}
