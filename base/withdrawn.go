package base

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// withdrawnTimeout bounds one call that waits for withdrawn attempts.
const withdrawnTimeout = 20 * time.Second

// watchWithdrawals ends the steps whose items an admin took away, as soon as the Registry knows. A
// renewal would notice only after part of the lease. It ends with ctx.
func (s *session) watchWithdrawals(ctx context.Context) {
	after := int64(0)
	for wait := retryFirst; ctx.Err() == nil; {
		taken, next, err := s.nextWithdrawals(ctx, after)
		if err == nil {
			after, wait = next, retryFirst
			s.withdraw(ctx, taken)
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			s.stores.registryTrouble.fail(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(2*wait, retryCap)
		}
	}
}

func (s *session) nextWithdrawals(ctx context.Context, after int64) ([]registry.Lease, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, withdrawnTimeout)
	defer cancel()
	return s.stores.registry.Withdrawn(ctx, registry.WithdrawnQuery{Worker: s.worker, After: after})
}

// withdraw ends attempts as lost. If the answer to an attempt's claim has not arrived yet, withdraw
// remembers the attempt and begin ends it.
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
