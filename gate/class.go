package gate

import "slices"

// ticket is work that waits or runs.
type ticket struct {
	work     Work
	admitted chan struct{} // closed when it runs
	running  bool
}

// class is the work of one class. Its rings hold only those for whom something waits. Whoever is
// served goes to the end of its ring, and so does whoever joins it, so that everybody in a ring is
// served after at most all the others were served once.
type class struct {
	slots, perToken int
	memory          int64 // the budget

	running int
	taken   int64          // of the memory
	held    map[string]int // slots, by token
	ring    []*lane        // of collections
}

// lane is the waiting work of a collection, by token.
type lane struct {
	collection string
	ring       []*queue
}

// queue is the waiting work of a token in a collection, the oldest first.
type queue struct {
	token   string
	tickets []*ticket
}

func newClass(slots, perToken int, memory int64) class {
	return class{slots: slots, perToken: perToken, memory: memory, held: map[string]int{}}
}

func (c *class) lane(collection string) int {
	return slices.IndexFunc(c.ring, func(l *lane) bool { return l.collection == collection })
}

func (l *lane) queue(token string) int {
	return slices.IndexFunc(l.ring, func(q *queue) bool { return q.token == token })
}

func (c *class) join(t *ticket) {
	at := c.lane(t.work.Collection)
	if at < 0 {
		at = len(c.ring)
		c.ring = append(c.ring, &lane{collection: t.work.Collection})
	}
	l := c.ring[at]
	at = l.queue(t.work.Token)
	if at < 0 {
		at = len(l.ring)
		l.ring = append(l.ring, &queue{token: t.work.Token})
	}
	q := l.ring[at]
	q.tickets = append(q.tickets, t)
}

// remove takes off a ticket that waits.
func (c *class) remove(t *ticket) {
	at := c.lane(t.work.Collection)
	l := c.ring[at]
	in := l.queue(t.work.Token)
	q := l.ring[in]
	q.tickets = slices.DeleteFunc(q.tickets, func(other *ticket) bool { return other == t })
	if len(q.tickets) == 0 {
		l.ring = slices.Delete(l.ring, in, in+1)
	}
	if len(l.ring) == 0 {
		c.ring = slices.Delete(c.ring, at, at+1)
	}
}

// next takes the ticket off its queue that may run now, or returns nil. Tokens that hold their
// share keep their place and are passed over. Work that lacks only memory is waited for, with all
// that comes after it: otherwise work that takes less would keep it out for ever.
func (c *class) next() *ticket {
	if c.running == c.slots {
		return nil
	}
	for at, l := range c.ring {
		for in, q := range l.ring {
			if c.held[q.token] >= c.perToken {
				continue
			}
			t := q.tickets[0]
			if c.taken > 0 && t.work.Memory > c.memory-c.taken {
				return nil
			}
			c.take(t, at, in)
			return t
		}
	}
	return nil
}

// take gives a slot to the first ticket of a queue. The queue and its lane go to the end of their
// rings.
func (c *class) take(t *ticket, at, in int) {
	c.running++
	c.taken += t.work.Memory
	c.held[t.work.Token]++
	l := c.ring[at]
	q := l.ring[in]
	q.tickets = q.tickets[1:]
	l.ring = slices.Delete(l.ring, in, in+1)
	if len(q.tickets) > 0 {
		l.ring = append(l.ring, q)
	}
	c.ring = slices.Delete(c.ring, at, at+1)
	if len(l.ring) > 0 {
		c.ring = append(c.ring, l)
	}
}

func (c *class) leave(t *ticket) {
	c.running--
	c.taken -= t.work.Memory
	if c.held[t.work.Token]--; c.held[t.work.Token] == 0 {
		delete(c.held, t.work.Token)
	}
}
