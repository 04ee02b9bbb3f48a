package broker

import (
	"container/heap"
	"time"
)

const messageIDLength = 16

// messageID is 16 hexadecimal digits. The copies of a message in several channels share it.
type messageID [messageIDLength]byte

// message is one channel's copy of a published message. The hub's mutex guards all fields except
// the first three.
type message struct {
	id        messageID
	timestamp int64 // time of publication, in nanoseconds since 1970
	body      []byte

	channel  *channel
	attempts uint16

	// holder is the client that holds the message; nil while it is queued or deferred.
	holder      *client
	timeout     time.Duration // the holder's message timeout when it was delivered
	deliveredAt time.Time

	due      time.Time // when it times out (held) or becomes deliverable (deferred)
	dueIndex int       // its index in the hub's agenda, -1 if it is not there
}

// agenda is a heap of messages by due time, the earliest first.
type agenda []*message

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].dueIndex, a[j].dueIndex = i, j
}

// Push implements heap.Interface.
func (a *agenda) Push(x any) {
	m := x.(*message)
	m.dueIndex = len(*a)
	*a = append(*a, m)
}

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	old := *a
	last := len(old) - 1
	m := old[last]
	old[last] = nil
	m.dueIndex = -1
	*a = old[:last]
	return m
}

// schedule puts m on the agenda, or moves it there, with the time due.
func (a *agenda) schedule(m *message, due time.Time) {
	m.due = due
	if m.dueIndex < 0 {
		heap.Push(a, m)
	} else {
		heap.Fix(a, m.dueIndex)
	}
}

// cancel removes m from the agenda, if it is there.
func (a *agenda) cancel(m *message) {
	if m.dueIndex >= 0 {
		heap.Remove(a, m.dueIndex)
	}
}

// without returns the agenda without the messages of a channel.
func (a agenda) without(ch *channel) agenda {
	kept := make(agenda, 0, len(a))
	for _, m := range a {
		if m.channel == ch {
			m.dueIndex = -1
			continue
		}
		m.dueIndex = len(kept)
		kept = append(kept, m)
	}
	heap.Init(&kept)
	return kept
}

// fifo is a queue of messages whose memory shrinks as it empties.
type fifo struct {
	items []*message
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) push(m *message) { f.items = append(f.items, m) }

// pop removes and returns the oldest message; the queue must not be empty.
func (f *fifo) pop() *message {
	m := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	switch {
	case f.head == len(f.items) && cap(f.items) > 1024:
		f.items, f.head = nil, 0
	case f.head == len(f.items):
		f.items, f.head = f.items[:0], 0
	case f.head >= 1024 && f.head >= len(f.items)/2:
		f.items, f.head = append([]*message(nil), f.items[f.head:]...), 0
	}
	return m
}
