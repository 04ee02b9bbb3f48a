package base

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Intervals of renewals and touches.
const (
	progressEvery = 500 * time.Millisecond // at most: people watch progress
	idleEvery     = 5 * time.Second        // at least: the relay needs the worker's capacity

	touchEvery = 15 * time.Second // well within a message's timeout of a minute
)

// announce sends the Registry the worker's capacity before the first message: the relay needs it.
// It waits until the Registry answers, and returns false if ctx ends first.
func (s *session) announce(ctx context.Context) bool {
	for wait := retryFirst; ; wait = min(2*wait, retryCap) {
		if err := s.renew(ctx); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// keepRenewing is the process's only renewal loop (R9, R15). It ends with ctx.
func (s *session) keepRenewing(ctx context.Context) {
	ticker := time.NewTicker(min(progressEvery, s.lease/6))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.renewNow:
			_ = s.renew(ctx) // logged as an outage; the next tick tries again
		case now := <-ticker.C:
			if s.renewalDue(now) {
				_ = s.renew(ctx) // as above
			}
		}
	}
}

func (s *session) renewalDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freed.Swap(false) || now.Sub(s.renewed) >= min(idleEvery, s.lease/3) {
		return true
	}
	for _, a := range s.attempts {
		if a.renewalDue(now, s.lease/3) {
			return true
		}
	}
	return false
}

// renew extends the claims that this process runs, reports their progress, and ends the steps whose
// claims are gone. It leaves out claims that were renewed a moment ago, and report nothing new.
func (s *session) renew(ctx context.Context) error {
	request := registry.RenewRequest{Worker: s.info(), Lease: s.lease}
	moves := map[registry.Lease]int64{}
	logs := map[registry.Lease][]registry.LogLine{}
	sent := time.Now()
	running := slices.DeleteFunc(s.running(), func(a *attempt) bool { return !a.renewalDue(sent, s.lease/6) })
	for _, a := range running {
		b, m := a.beat()
		request.Beats = append(request.Beats, b)
		moves[b.Lease], logs[b.Lease] = m, b.Log
	}
	call, cancel := context.WithTimeout(ctx, s.stores.timeout)
	defer cancel()
	answer, err := s.stores.registry.Renew(call, request)
	if err != nil {
		if ctx.Err() == nil {
			s.stores.registryTrouble.fail(ctx, err)
		}
		return fmt.Errorf("renew %d claims: %w", len(running), err)
	}
	s.stores.registryTrouble.answered(ctx)
	s.mu.Lock()
	s.renewed = sent
	s.mu.Unlock()
	s.hold(ctx, answer.Held)
	if answer.Drain {
		s.release(ctx)
	}
	gone := make(map[registry.Lease]bool, len(answer.Lost))
	for _, l := range answer.Lost {
		gone[l] = true
	}
	for _, a := range running {
		if gone[a.item.lease] {
			a.lost()
		} else {
			a.noteRenewal(sent, moves[a.item.lease], logs[a.item.lease], s)
		}
	}
	return nil
}

// info returns what the Registry and the relay need to know about this process.
func (s *session) info() registry.WorkerInfo {
	info := registry.WorkerInfo{
		ID: s.worker, Version: s.version, Draining: s.isStopping(), Clock: time.Now(),
		Capacity: map[registry.Stage]int{}, Free: map[registry.Stage]int{}, Spare: map[registry.Stage]int{},
	}
	for _, st := range s.stations {
		if s.exact { // it takes one item, and no messages
			info.Capacity[st.stage], info.Free[st.stage] = 0, 0
			continue
		}
		info.Capacity[st.stage], info.Free[st.stage] = st.room()
		if st.spare > 0 {
			info.Spare[st.stage] = st.spare
		}
	}
	return info
}

// requestRenewal makes the next renewal go out now.
func (s *session) requestRenewal() {
	select {
	case s.renewNow <- struct{}{}:
	default:
	}
}
