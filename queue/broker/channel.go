package broker

import (
	"strings"
	"time"
)

// ephemeralSuffix ends the name of a topic or channel that goes away with its last client.
const ephemeralSuffix = "#ephemeral"

// topic is a name that is published to. Its fields are guarded by the hub's mutex.
type topic struct {
	name     string
	channels map[string]*channel
	backlog  []*message // what was published before the first channel existed
	messages uint64     // published since it was made
}

// channel is one independent stream of a topic's messages, shared by the clients that subscribe to
// it. Its fields are guarded by the hub's mutex.
type channel struct {
	name    string
	topic   *topic
	queue   fifo
	clients []*client
	next    int // the index in clients whose turn it is

	inFlight map[messageID]*message
	deferred int // messages on the agenda that nobody holds

	messages uint64
	requeues uint64
	timeouts uint64
}

// client is what the hub knows of a subscriber. All fields but out and msgTimeout are guarded by
// the hub's mutex.
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

// turn is the next client in order that wants a message, or nil. Going round gives every ready
// client its share.
func (ch *channel) turn() *client {
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

// validName reports whether name may be a topic's or a channel's: 1 to 64 of [.a-zA-Z0-9_-], the
// ephemeral suffix included in the length.
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
