package queue

import (
	"cmp"
	"slices"
)

// balance tells every server how many messages it may have in our hands: RDY follows the free slots
// (R21). The sum of what they may send never exceeds the slots, however many servers there are.
func (c *Consumer) balance() {
	c.rdyMu.Lock()
	defer c.rdyMu.Unlock()
	changes := c.allot()
	// Lower first: between two servers a slot must not be promised twice.
	slices.SortFunc(changes, func(a, b rdyChange) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
	for _, change := range changes {
		change.session.setReady(change.to)
	}
}

// rdyChange is a RDY count that is to be sent.
type rdyChange struct {
	session  *session
	from, to int
}

// allot computes the counts: what is in hand from a server stays, and the free slots are dealt out
// one by one to the server with the least, beginning with the one whose turn it is.
func (c *Consumer) allot() []rdyChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sessions) == 0 {
		return nil
	}
	sessions := make([]*session, 0, len(c.sessions))
	for s := range c.sessions {
		sessions = append(sessions, s)
	}
	slices.SortFunc(sessions, func(a, b *session) int { return cmp.Compare(a.number, b.number) })
	counts := make([]int, len(sessions))
	for i, s := range sessions {
		counts[i] = s.inHand
	}
	for range c.free - len(c.held) {
		least := c.turn % len(counts)
		for i := range counts {
			if at := (c.turn + i) % len(counts); counts[at] < counts[least] {
				least = at
			}
		}
		counts[least]++
	}
	var changes []rdyChange
	for i, s := range sessions {
		if n := min(counts[i], s.maxReady); n != s.ready {
			changes = append(changes, rdyChange{session: s, from: s.ready, to: n})
			s.ready = n
		}
	}
	return changes
}
