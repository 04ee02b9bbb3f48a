package base

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// continuation is a slot that an item's next step has in this process. The Registry may claim the
// item for it in the transaction that settles the present step, which saves a message and a
// transaction.
type continuation struct {
	slot     *slot
	registry registry.Continuing
	request  registry.ClaimRequest
}

// continuation returns the slot for an item's next step; nil if there is none. The step is over, so
// its own slot is free for another item from now on, although its message is not answered yet.
func (s *session) continuation(a *attempt, settlement registry.Settlement) *continuation {
	continues, ok := s.stores.registry.(registry.Continuing)
	if !ok || s.exact {
		return nil
	}
	a.slot.yield()
	if settlement.Outcome != registry.OutcomeDone {
		return nil
	}
	route, _ := a.item.Route()
	next, _ := route.Next(a.station.stage)
	i := slices.IndexFunc(s.stations, func(st *station) bool { return st.stage == next })
	if i < 0 {
		return nil
	}
	if s.isStopping() {
		return nil
	}
	p := s.stations[i].occupyToContinue()
	if p == nil {
		return nil
	}
	return &continuation{slot: p, registry: continues, request: s.claimRequest(p.station, a.item.ID)}
}

// enterWhenFree is enter, and waits a moment if no slot is free. That happens when items continue
// here without messages: the queue does not know of them.
func (s *session) enterWhenFree(st *station) *slot {
	if p := s.enter(st); p != nil {
		return p
	}
	patience := time.NewTimer(noSlotRequeue)
	defer patience.Stop()
	leave, mayCome := st.await()
	defer leave()
	for mayCome {
		freed := st.slotFreed()
		if p := s.enter(st); p != nil {
			return p
		}
		select {
		case <-freed:
		case <-s.stopping:
			return nil
		case <-patience.C:
			return nil
		}
	}
	return nil
}
