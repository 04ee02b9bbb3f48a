// Package sweep takes items back from lost workers, so that an item goes on within one lease
// whatever happened to its worker (I4).
package sweep

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// Sweeper collects lapsed leases. It may run in several processes at once.
type Sweeper struct {
	Registry registry.Sweeping
	Log      *slog.Logger
	Lease    time.Duration // the longest lease workers are given
	Every    time.Duration // between two looks; well under half a lease, or every look comes after a gap (R14)
}

// New returns a sweeper that looks eight times a lease.
func New(r registry.Sweeping, lease time.Duration, log *slog.Logger) *Sweeper {
	return &Sweeper{Registry: r, Log: log, Lease: lease, Every: lease / 8}
}

// Run sweeps until ctx ends. Trouble is logged once until it is over.
func (s *Sweeper) Run(ctx context.Context) {
	periodic.Job{Do: s.sweep, Every: s.Every, Log: s.Log, Fails: "leases cannot be swept", Works: "leases are swept again"}.Run(ctx)
}

func (s *Sweeper) sweep(ctx context.Context) error {
	lost, err := s.Registry.Sweep(ctx, s.Lease)
	for _, l := range lost {
		s.Log.WarnContext(ctx, "took an item back from a lost worker", "item", l.ItemID, "attempt", l.N)
	}
	return err
}
