package broker

import (
	"math"
	"time"
)

// enqueue queues m, or schedules it after delay.
func (h *hub) enqueue(m *message, now time.Time, delay time.Duration) {
	if delay <= 0 {
		m.channel.queue.push(m)
		return
	}
	m.channel.deferred++
	h.schedule(m, now.Add(delay))
}

// dispatch hands out the channel's messages while a client wants one.
func (h *hub) dispatch(ch *channel, now time.Time) {
	for ch.queue.len() > 0 {
		cl := ch.nextClient()
		if cl == nil {
			return
		}
		m := ch.queue.pop()
		if m.attempts < math.MaxUint16 {
			m.attempts++
		}
		m.holder, m.timeout, m.deliveredAt = cl, cl.msgTimeout, now
		ch.inFlight[m.id] = m
		cl.inFlight++
		h.schedule(m, now.Add(m.timeout))
		cl.out.message(m)
	}
}

// release takes a message back from its holder.
func (h *hub) release(m *message) {
	h.agenda.cancel(m)
	delete(m.channel.inFlight, m.id)
	m.holder.inFlight--
	m.holder = nil
}

// expire queues every message that is due, and returns the time until the next one.
func (h *hub) expire(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := make(map[*channel]struct{})
	for len(h.agenda) > 0 && !h.agenda[0].due.After(now) {
		m := h.agenda[0]
		if m.holder != nil {
			m.channel.timeouts++
			h.release(m)
		} else {
			m.channel.deferred--
			h.agenda.cancel(m)
		}
		m.channel.queue.push(m)
		changed[m.channel] = struct{}{}
	}
	for ch := range changed {
		h.dispatch(ch, now)
	}
	h.nextCheck = now.Add(time.Hour)
	if len(h.agenda) > 0 && h.agenda[0].due.Before(h.nextCheck) {
		h.nextCheck = h.agenda[0].due
	}
	return h.nextCheck.Sub(now)
}

// schedule puts m on the agenda, and wakes the clock if m is due before its next check.
func (h *hub) schedule(m *message, due time.Time) {
	h.agenda.schedule(m, due)
	if due.Before(h.nextCheck) {
		h.nextCheck = due
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}
