package broker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

var errNotInFlight = errors.New("message is not in flight for this client")

// hub holds the topics, channels and messages, and decides who gets what. It does no I/O: a delivery is appended to
// the client's outbox. One mutex guards it all, since every step under it is short.
type hub struct {
	maxMsgTimeout time.Duration
	earlier       chan struct{} // has a token when the clock must look before its alarm

	mu     sync.Mutex
	topics map[string]*topic
	agenda agenda
	alarm  time.Time // when the clock looks next
	lastID uint64
}

func newHub(opts Options) *hub {
	return &hub{
		maxMsgTimeout: opts.MaxMsgTimeout,
		earlier:       make(chan struct{}, 1),
		topics:        make(map[string]*topic),
		// Ids of one run differ from those of the run before, so that a late FIN cannot hit a new message.
		lastID: uint64(time.Now().UnixNano()),
	}
}

// publish adds the bodies to the topic as messages, all or none, to be delivered after delay.
func (h *hub) publish(name string, bodies [][]byte, delay time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	t := h.topic(name)
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

// subscribe joins the client to the channel. A topic's first channel takes over what was published before it.
func (h *hub) subscribe(cl *client, topicName, channelName string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topic(topicName)
	ch, ok := t.channels[channelName]
	if !ok {
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
}

// leave takes the client out of its channel and gives the messages it held to others, at once.
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
		h.forget(ch)
		return
	}
	h.dispatch(ch, now)
}

// forget drops an ephemeral channel with its messages, and its topic when that is ephemeral and now has no channel.
func (h *hub) forget(ch *channel) {
	h.agenda = h.agenda.without(ch)
	delete(ch.topic.channels, ch.name)
	if len(ch.topic.channels) == 0 && strings.HasSuffix(ch.topic.name, ephemeralSuffix) {
		delete(h.topics, ch.topic.name)
	}
}

// setReady sets how many messages the client may hold; 0 gives it no more.
func (h *hub) setReady(cl *client, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cl.ready = n
	if cl.channel != nil {
		h.dispatch(cl.channel, time.Now())
	}
}

// startClose gives the client no more messages; it may still answer those it holds.
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

// touch starts the timeout of a message that the client holds anew, within the limit on the whole time it is held.
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

// held is the message with that id, if this client holds it.
func (cl *client) held(id messageID) (*message, error) {
	if cl.channel != nil {
		if m := cl.channel.inFlight[id]; m != nil && m.holder == cl {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", id[:], errNotInFlight)
}

// topic finds a topic, or makes it.
func (h *hub) topic(name string) *topic {
	t, ok := h.topics[name]
	if !ok {
		t = &topic{name: name, channels: make(map[string]*channel)}
		h.topics[name] = t
	}
	return t
}
