package base

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// The default policy (docs/invariants.md, I11).
const (
	defaultAttempts = 5
	defaultLease    = 30 * time.Second
	defaultStuck    = 10 * time.Minute

	backoffFirst = time.Minute
	backoffCap   = time.Hour
	backoffDev   = 0.2 // jitter, of the wait
)

// defaultSlots is how many items a stage works on at once. Its steps wait for the network, disks and
// the Registry rather than for processors. Those that run side by side share syncs and transactions,
// so few slots cost more for each item (docs/performance.md). What needs much memory has limits of
// its own for the whole process.
func defaultSlots() int {
	return min(max(registry.DefaultSlots, 4*runtime.GOMAXPROCS(0)), 2*registry.DefaultSlots)
}

// Worker is the policy that every worker embeds, by value. The configuration sets the fields; zero
// means the default. A kind of worker that needs another policy redeclares the method.
type Worker struct {
	Attempts int           // counted failures after which an item needs an admin's review; default 5
	Slots    int           // items worked on at once; default 32 to 64, by the number of processors
	Extra    int           // further slots, which a single collection cannot take
	LeaseFor time.Duration // how long a claim lasts after the last renewal; default 30 s
	StuckFor time.Duration // how long a step may go without progress; default 10 min
	RoomFor  time.Duration // how long an item may wait for room on a volume before it fails; 0: no limit
}

// MaxAttempts returns how many counted failures an item may have in a stage before it needs an
// admin's review.
func (w *Worker) MaxAttempts() int { return orElse(w.Attempts, defaultAttempts) }

// Concurrency returns how many items a process works on at once in this stage.
func (w *Worker) Concurrency() int { return orElse(w.Slots, defaultSlots()) }

// Spare returns how many more items a process works on at once if they are not all of one
// collection ([registry.WorkerInfo.Spare]).
func (w *Worker) Spare() int { return max(w.Extra, 0) }

// Lease returns how long a claim lasts after the last renewal.
func (w *Worker) Lease() time.Duration { return orElse(w.LeaseFor, defaultLease) }

// StuckAfter returns how long a step may go without progress before it is cancelled (R29).
func (w *Worker) StuckAfter() time.Duration { return orElse(w.StuckFor, defaultStuck) }

// Backoff returns how long an item waits after its tries-th counted failure: one minute, doubled
// with each, at most an hour. It varies by a fifth, so that items that failed together do not
// return together.
func (w *Worker) Backoff(tries int) time.Duration {
	wait := backoffCap
	if doubled := tries - 1; doubled < 6 { // 2^6 minutes are beyond the cap
		wait = backoffFirst << max(doubled, 0)
	}
	low := time.Duration(float64(wait) * (1 - backoffDev))
	high := min(time.Duration(float64(wait)*(1+backoffDev)), backoffCap)
	return low + rand.N(high-low+1)
}

func (w *Worker) base() *Worker { return w }

func orElse[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// embedsWorker proves that a type embeds Worker: no other type can have the unexported method.
type embedsWorker interface{ base() *Worker }

// Handler is a worker: a type that embeds [Worker] and does the work of one stage.
type Handler interface {
	embedsWorker

	// Stage returns the stage that the worker serves.
	Stage() registry.Stage
	// Work does the step for one item, and continues where an earlier attempt stopped. Its error is
	// the verdict. It is called from Concurrency goroutines at once. It must return soon after ctx
	// ends; context.Cause says why that ended. All goroutines that it starts must have ended when
	// it returns.
	Work(ctx context.Context, item *Item) error

	MaxAttempts() int
	Concurrency() int
	Spare() int
	Lease() time.Duration
	StuckAfter() time.Duration
	Backoff(tries int) time.Duration
}
