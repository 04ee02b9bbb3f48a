package base

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// hearEvery bounds one call that waits for news of withdrawn attempts.
const hearEvery = 20 * time.Second

// keepHearing ends the steps whose items an admin takes away, as soon as the Registry knows of it:
// a renewal would tell only after a part of the lease. It ends with ctx.
func (s *session) keepHearing(ctx context.Context) {
	after := int64(0)
	for wait := againFirst; ctx.Err() == nil; {
		taken, next, err := s.heard(ctx, after)
		if err == nil {
			after, wait = next, againFirst
			s.withdraw(ctx, taken)
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			s.stores.registryTrouble.fail(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(2*wait, againCap)
		}
	}
}

func (s *session) heard(ctx context.Context, after int64) ([]registry.Lease, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, hearEvery)
	defer cancel()
	return s.stores.registry.Withdrawn(ctx, registry.WithdrawnQuery{Worker: s.worker, After: after})
}

// withdraw ends attempts as lost. One whose claim is still on its way here is remembered: begin
// asks for it.
func (s *session) withdraw(ctx context.Context, taken []registry.Lease) {
	for _, l := range taken {
		s.mu.Lock()
		a := s.attempts[l]
		if a == nil {
			s.withdrawn[l] = true
		}
		s.mu.Unlock()
		s.log.InfoContext(ctx, "item was taken away", "item", l.ItemID, "attempt", l.N)
		if a != nil {
			a.lost()
		}
	}
}
