package queue

import (
	"cmp"
	"slices"
)

// balance sends every server its RDY count, which follows the free slots (R21). The counts never
// add up to more than the slots, however many servers there are.
func (c *Consumer) balance() {
	c.rdyMu.Lock()
	defer c.rdyMu.Unlock()
	changes := c.allot()
	// Lower counts first, so that a slot is never promised to two servers.
	slices.SortFunc(changes, func(a, b rdyChange) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
	for _, change := range changes {
		change.session.setReady(change.to)
	}
}

// rdyChange is a RDY count to send.
type rdyChange struct {
	session  *session
	from, to int
}

// allot computes the counts: each server keeps its unanswered deliveries. The free slots go one by
// one to the server with the lowest count, beginning at firstServer.
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
		least := c.firstServer % len(counts)
		for i := range counts {
			if at := (c.firstServer + i) % len(counts); counts[at] < counts[least] {
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
