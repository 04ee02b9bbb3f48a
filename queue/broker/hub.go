package broker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

var errNotInFlight = errors.New("message is not in flight for this client")

// hub holds the topics, channels and messages, and decides which client gets which message. It does
// no I/O: it appends a delivery to the client's outbox. One mutex guards everything, since every
// step is short.
type hub struct {
	maxMsgTimeout time.Duration
	wake          chan struct{} // has a token if the clock must check before nextCheck

	mu        sync.Mutex
	maxBytes  int64 // limit of usedBytes
	usedBytes int64 // bytes of all topics, channels and messages, by the costs in options.go
	topics    map[string]*topic
	agenda    agenda
	nextCheck time.Time // when the clock checks next
	lastID    uint64
}

func newHub(opts Options) *hub {
	return &hub{
		maxMsgTimeout: opts.MaxMsgTimeout,
		maxBytes:      opts.MaxMemory,
		wake:          make(chan struct{}, 1),
		topics:        make(map[string]*topic),
		// The ids of two runs differ, so that a late FIN cannot finish a new message.
		lastID: uint64(time.Now().UnixNano()),
	}
}

// cost returns the memory of one copy of a message, in a channel or a backlog. It rather
// overestimates: copies share their body. Go allocates at most an eighth more than requested.
func cost(body []byte) int64 { return messageCost + int64(len(body)) + int64(len(body))/8 }

// reserve adds n to the used bytes. It returns false, and adds nothing, if publishers may not use
// that much.
func (h *hub) reserve(n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reserveBelow(n, h.publishLimit())
}

// publishLimit returns how many bytes publishers may fill. The rest is for subscribers: without
// them a full broker could not be emptied.
func (h *hub) publishLimit() int64 { return h.maxBytes - h.maxBytes/8 }

// unreserve subtracts bytes that reserve added.
func (h *hub) unreserve(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.usedBytes -= n
}

// reserveBelow is reserve with another limit. The caller holds the mutex.
func (h *hub) reserveBelow(n, most int64) bool {
	if n > most-h.usedBytes {
		return false
	}
	h.usedBytes += n
	return true
}

// publish adds the bodies to the topic as messages, to be delivered after delay. It returns false
// and adds none if there is no memory for all of them.
func (h *hub) publish(name string, bodies [][]byte, delay time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	t, known := h.topics[name]
	var need int64
	for _, body := range bodies {
		need += cost(body)
	}
	if known {
		need *= max(1, int64(len(t.channels)))
	} else {
		need += topicCost
	}
	if !h.reserveBelow(need, h.publishLimit()) {
		return false
	}
	if !known {
		t = h.newTopic(name)
	}
	t.messages += uint64(len(bodies))
	for _, body := range bodies {
		m := h.newMessage(body, now)
		if len(t.channels) == 0 {
			if delay > 0 {
				m.due = now.Add(delay)
			}
			t.backlog = append(t.backlog, m)
			continue
		}
		for _, ch := range t.channels {
			h.admit(ch, m, now, delay)
		}
	}
	for _, ch := range t.channels {
		h.dispatch(ch, now)
	}
	return true
}

func (h *hub) newMessage(body []byte, now time.Time) *message {
	h.lastID++
	m := &message{timestamp: now.UnixNano(), body: body, dueIndex: -1}
	copy(m.id[:], fmt.Sprintf("%016x", h.lastID))
	return m
}

// admit puts a copy of m into the channel.
func (h *hub) admit(ch *channel, m *message, now time.Time, delay time.Duration) {
	ch.messages++
	h.enqueue(&message{id: m.id, timestamp: m.timestamp, body: m.body, channel: ch, dueIndex: -1}, now, delay)
}

// subscribe adds the client to the channel. A topic's first channel takes over its backlog. It
// returns false if there is no memory for a new topic or channel.
func (h *hub) subscribe(cl *client, topicName, channelName string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, known := h.topics[topicName]
	var ch *channel
	var need int64
	if known {
		ch = t.channels[channelName]
	} else {
		need = topicCost
	}
	if ch == nil {
		need += channelCost
	}
	if !h.reserveBelow(need, h.maxBytes) {
		return false
	}
	if !known {
		t = h.newTopic(topicName)
	}
	if ch == nil {
		ch = &channel{name: channelName, topic: t, inFlight: make(map[messageID]*message)}
		t.channels[channelName] = ch
		now := time.Now()
		for _, m := range t.backlog {
			var delay time.Duration
			if !m.due.IsZero() {
				delay = m.due.Sub(now)
			}
			h.admit(ch, m, now, delay)
		}
		t.backlog = nil
	}
	cl.channel = ch
	ch.clients = append(ch.clients, cl)
	return true
}

// leave removes the client from its channel and gives its messages to other clients at once.
func (h *hub) leave(cl *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := cl.channel
	if ch == nil {
		return
	}
	cl.channel = nil
	ch.remove(cl)
	now := time.Now()
	for _, m := range ch.inFlight {
		if m.holder == cl {
			ch.requeues++
			h.release(m)
			h.enqueue(m, now, 0)
		}
	}
	if len(ch.clients) == 0 && strings.HasSuffix(ch.name, ephemeralSuffix) {
		h.dropChannel(ch)
		return
	}
	h.dispatch(ch, now)
}

// dropChannel drops an ephemeral channel with its messages. It also drops the channel's topic if
// that is ephemeral and has no other channel.
func (h *hub) dropChannel(ch *channel) {
	for _, m := range h.agenda { // only deferred messages: no client holds any
		if m.channel == ch {
			h.usedBytes -= cost(m.body)
		}
	}
	h.agenda = h.agenda.without(ch)
	for ch.queue.len() > 0 {
		h.usedBytes -= cost(ch.queue.pop().body)
	}
	delete(ch.topic.channels, ch.name)
	h.usedBytes -= channelCost
	if len(ch.topic.channels) == 0 && strings.HasSuffix(ch.topic.name, ephemeralSuffix) {
		delete(h.topics, ch.topic.name)
		h.usedBytes -= topicCost
	}
}

// setReady sets how many messages the client may hold; 0 pauses it.
func (h *hub) setReady(cl *client, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cl.ready = n
	if cl.channel != nil {
		h.dispatch(cl.channel, time.Now())
	}
}

// startClose sends the client no more messages; it may still answer those that it holds.
func (h *hub) startClose(cl *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cl.closing = true
}

// drained is called when a full outbox has been written out.
func (h *hub) drained(cl *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cl.channel != nil {
		h.dispatch(cl.channel, time.Now())
	}
}

// finish ends a message that the client holds.
func (h *hub) finish(cl *client, id messageID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, err := cl.held(id)
	if err != nil {
		return err
	}
	cl.finishes++
	h.release(m)
	h.usedBytes -= cost(m.body)
	h.dispatch(m.channel, time.Now())
	return nil
}

// requeue puts a message that the client holds back into its channel, to be delivered after delay.
func (h *hub) requeue(cl *client, id messageID, delay time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, err := cl.held(id)
	if err != nil {
		return err
	}
	now := time.Now()
	cl.requeues++
	m.channel.requeues++
	h.release(m)
	h.enqueue(m, now, delay)
	h.dispatch(m.channel, now)
	return nil
}

// touch restarts the timeout of a message that the client holds, within the limit on its whole time
// in flight.
func (h *hub) touch(cl *client, id messageID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, err := cl.held(id)
	if err != nil {
		return err
	}
	due := time.Now().Add(m.timeout)
	if last := m.deliveredAt.Add(h.maxMsgTimeout); due.After(last) {
		due = last
	}
	h.schedule(m, due)
	return nil
}

// held returns the message with that id, if this client holds it.
func (cl *client) held(id messageID) (*message, error) {
	if cl.channel != nil {
		if m := cl.channel.inFlight[id]; m != nil && m.holder == cl {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", id[:], errNotInFlight)
}

// newTopic makes a topic that does not exist yet.
func (h *hub) newTopic(name string) *topic {
	t := &topic{name: name, channels: make(map[string]*channel)}
	h.topics[name] = t
	return t
}
