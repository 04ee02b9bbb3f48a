package broker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

var errNotInFlight = errors.New("message is not in flight for this client")

// hub holds the topics, channels and messages, and decides who gets what. It does no I/O: a
// delivery is appended to the client's outbox. One mutex guards it all, since every step under it
// is short.
type hub struct {
	maxMsgTimeout time.Duration
	earlier       chan struct{} // has a token when the clock must look before its alarm

	mu     sync.Mutex
	most   int64 // bytes that all of it may take
	used   int64 // bytes that it takes, by the costs that options.go names
	topics map[string]*topic
	agenda agenda
	alarm  time.Time // when the clock looks next
	lastID uint64
}

func newHub(opts Options) *hub {
	return &hub{
		maxMsgTimeout: opts.MaxMsgTimeout,
		most:          opts.MaxMemory,
		earlier:       make(chan struct{}, 1),
		topics:        make(map[string]*topic),
		// Ids of one run differ from those of the run before, so that a late FIN cannot hit a new
		// message.
		lastID: uint64(time.Now().UnixNano()),
	}
}

// cost is the memory that one channel's copy of a message takes, or the one that waits for a
// channel. Copies share their body, so this is rather too much. Go allots an eighth more than is
// asked for at most.
func cost(body []byte) int64 { return messageCost + int64(len(body)) + int64(len(body))/8 }

// take counts bytes in; false says that there is no room for them, and then nothing is counted.
func (h *hub) take(n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fit(n, h.mostPublished())
}

// mostPublished is how much publishers may fill. The rest is for who subscribes: else nobody could
// empty a full broker.
func (h *hub) mostPublished() int64 { return h.most - h.most/8 }

// give counts bytes out that take has counted in.
func (h *hub) give(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used -= n
}

// fit is take for who holds the mutex, up to a bound.
func (h *hub) fit(n, most int64) bool {
	if n > most-h.used {
		return false
	}
	h.used += n
	return true
}

// publish adds the bodies to the topic as messages, all or none, to be delivered after delay; none,
// and false, when there is no memory for all of them.
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
	if !h.fit(need, h.mostPublished()) {
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

// subscribe joins the client to the channel. A topic's first channel takes over what was published
// before it. It returns false when there is no memory for a new topic or channel.
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
	if !h.fit(need, h.most) {
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

// forget drops an ephemeral channel with its messages, and its topic when that is ephemeral and now
// has no channel.
func (h *hub) forget(ch *channel) {
	for _, m := range h.agenda { // what is deferred; nobody holds any
		if m.channel == ch {
			h.used -= cost(m.body)
		}
	}
	h.agenda = h.agenda.without(ch)
	for ch.queue.len() > 0 {
		h.used -= cost(ch.queue.pop().body)
	}
	delete(ch.topic.channels, ch.name)
	h.used -= channelCost
	if len(ch.topic.channels) == 0 && strings.HasSuffix(ch.topic.name, ephemeralSuffix) {
		delete(h.topics, ch.topic.name)
		h.used -= topicCost
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
	h.used -= cost(m.body)
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

// touch starts the timeout of a message that the client holds anew, within the limit on the whole
// time it is held.
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

// newTopic makes a topic that is not there yet.
func (h *hub) newTopic(name string) *topic {
	t := &topic{name: name, channels: make(map[string]*channel)}
	h.topics[name] = t
	return t
}
