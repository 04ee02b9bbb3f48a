package gate

import "slices"

// ticket is work that waits or runs.
type ticket struct {
	work     Work
	admitted chan struct{} // closed when the work may run
	running  bool
}

// class is the work of one class. Its rings contain only collections and tokens with waiting work.
// A served one goes to the end of its ring, where new ones join too. Each is therefore served again
// after every other one was served at most once.
type class struct {
	slots, perToken int
	memory          int64 // the budget, in bytes

	running int
	taken   int64          // bytes of memory in use
	held    map[string]int // occupied slots by token
	ring    []*lane        // of collections
}

// lane is a collection's waiting work, by token.
type lane struct {
	collection string
	ring       []*queue
}

// queue is a token's waiting work in a collection, the oldest first.
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

// remove removes a waiting ticket.
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

// next removes and returns the ticket that may run now, or nil. It skips tokens that have their
// share of slots; they keep their place. If the next work lacks only memory, everything behind it
// waits too: otherwise smaller work would block it forever.
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
