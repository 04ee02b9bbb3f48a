// Package sweep ends attempts whose leases have expired, so that an item goes on within one lease
// of its worker's death (I4).
package sweep

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// Sweeper ends attempts with expired leases. It may run in several processes at once.
type Sweeper struct {
	Registry registry.Sweeping
	Log      *slog.Logger
	Lease    time.Duration // the longest lease that workers get
	Every    time.Duration // between two rounds; well under half a lease, or every round comes after a gap (R14)
}

// New returns a Sweeper that makes eight rounds per lease.
func New(r registry.Sweeping, lease time.Duration, log *slog.Logger) *Sweeper {
	return &Sweeper{Registry: r, Log: log, Lease: lease, Every: lease / 8}
}

// Run sweeps until ctx ends. It logs the first of a series of failures and the end of the series.
func (s *Sweeper) Run(ctx context.Context) {
	periodic.Job{Do: s.sweep, Every: s.Every, Log: s.Log, Fails: "sweeping expired leases failed; will retry", Works: "expired leases are swept again"}.Run(ctx)
}

func (s *Sweeper) sweep(ctx context.Context) error {
	lost, err := s.Registry.Sweep(ctx, s.Lease)
	metrics.Swept.Add(float64(len(lost)))
	for _, l := range lost {
		s.Log.WarnContext(ctx, "ended an attempt whose lease expired", "item", l.ItemID, "attempt", l.N)
	}
	return err
}
