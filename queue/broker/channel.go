package broker

import (
	"strings"
	"time"
)

// ephemeralSuffix ends the name of a topic or channel that is dropped with its last client.
const ephemeralSuffix = "#ephemeral"

// topic is a named stream of messages. The hub's mutex guards its fields.
type topic struct {
	name     string
	channels map[string]*channel
	backlog  []*message // messages published before the first channel existed
	messages uint64     // published since the topic was made
}

// channel is one independent stream of a topic's messages, shared by the clients that subscribe to
// it. The hub's mutex guards its fields.
type channel struct {
	name    string
	topic   *topic
	queue   fifo
	clients []*client
	next    int // index in clients where the next search begins

	inFlight map[messageID]*message
	deferred int // messages on the agenda that no client holds

	messages uint64
	requeues uint64
	timeouts uint64
}

// client is a subscriber, as the hub sees it. The hub's mutex guards all fields except out and
// msgTimeout.
type client struct {
	out        *outbox
	msgTimeout time.Duration
	remote     string
	identity   identity

	channel  *channel
	ready    int64 // RDY
	inFlight int64
	closing  bool // CLS was received
	finishes uint64
	requeues uint64
}

func (cl *client) wantsMore() bool {
	return !cl.closing && cl.inFlight < cl.ready && !cl.out.full()
}

// nextClient returns the next client that wants a message, or nil. Round-robin gives every ready
// client its share.
func (ch *channel) nextClient() *client {
	for i := range ch.clients {
		at := (ch.next + i) % len(ch.clients)
		if cl := ch.clients[at]; cl.wantsMore() {
			ch.next = at + 1
			return cl
		}
	}
	return nil
}

func (ch *channel) remove(cl *client) {
	for i, other := range ch.clients {
		if other == cl {
			ch.clients = append(ch.clients[:i:i], ch.clients[i+1:]...)
			return
		}
	}
}

// validName reports whether name is valid for a topic or channel: 1 to 64 of [.a-zA-Z0-9_-],
// including the ephemeral suffix.
func validName(name string) bool {
	if len(name) < 1 || len(name) > 64 {
		return false
	}
	name = strings.TrimSuffix(name, ephemeralSuffix)
	for _, r := range []byte(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		default:
			return false
		}
	}
	return name != ""
}
