package base

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// The default policy (docs/invariants.md, I11).
const (
	defaultAttempts = 5
	defaultSlots    = 4
	defaultLease    = 30 * time.Second
	defaultStuck    = 10 * time.Minute

	backoffFirst = time.Minute
	backoffCap   = time.Hour
	backoffDev   = 0.2 // jitter, of the wait
)

// Worker is what each worker embeds, by value: its policy. Fields are set from the configuration;
// zero means the default. A worker that differs in kind redeclares the method.
type Worker struct {
	Attempts int           // counted failures after which an item needs admin review; default 5
	Slots    int           // items worked on at once; default 4
	Extra    int           // slots beside these that one collection alone does not get
	LeaseFor time.Duration // how long a claim outlives the last news of the process; default 30 s
	StuckFor time.Duration // how long a step may go without progress; default 10 min
	RoomFor  time.Duration // how long an item may wait for room on a volume before it fails; 0: without end
}

// MaxAttempts is how many counted failures in a stage an item may have before it needs admin
// review.
func (w *Worker) MaxAttempts() int { return orElse(w.Attempts, defaultAttempts) }

// Concurrency is how many items a process works on at once in this stage.
func (w *Worker) Concurrency() int { return orElse(w.Slots, defaultSlots) }

// Spare is how many more items a process works on at once when they are not all of one collection
// ([registry.WorkerInfo.Spare]).
func (w *Worker) Spare() int { return max(w.Extra, 0) }

// Lease is how long a claim outlives the last news of the process.
func (w *Worker) Lease() time.Duration { return orElse(w.LeaseFor, defaultLease) }

// StuckAfter is how long a step may go without progress before it is taken away (R29).
func (w *Worker) StuckAfter() time.Duration { return orElse(w.StuckFor, defaultStuck) }

// Backoff is how long an item waits after its tries-th counted failure: one minute, doubled with
// each, varied by a fifth so that items that failed together do not come back together, and never
// more than an hour.
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

// embedsWorker proves that a type embeds Worker: only so can it have the unexported method.
type embedsWorker interface{ base() *Worker }

// Handler is a worker: a type that embeds [Worker] and does the work of one stage.
type Handler interface {
	embedsWorker

	// Stage is the stage that the worker serves.
	Stage() registry.Stage
	// Work does the step for one item, going on where an earlier attempt stopped. Its error is the
	// verdict. It is called from Concurrency goroutines at once, and must return soon after ctx
	// ends; context.Cause tells why it did. Goroutines that it starts must have ended when it
	// returns.
	Work(ctx context.Context, item *Item) error

	MaxAttempts() int
	Concurrency() int
	Spare() int
	Lease() time.Duration
	StuckAfter() time.Duration
	Backoff(tries int) time.Duration
}
