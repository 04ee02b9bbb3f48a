package node

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/queue/broker"
)

// BrokerOptions says what an NSQ broker's process does. Common.Listen is its HTTP side.
type BrokerOptions struct {
	Common
	TCP           string        // host:port for NSQ clients; port 0 takes a free one
	Broadcast     string        // the host that lookups answer; "" the one that is listened on
	MaxMsgTimeout time.Duration // 0: the broker's default
}

// Broker is a running [broker.Broker].
type Broker struct {
	*Node
	tcp string
}

// NewBroker runs the in-memory broker as a process of its own, with its HTTP side: /ping, /stats, the lookup of itself, and
// health.
func NewBroker(ctx context.Context, o BrokerOptions) (*Broker, error) {
	out := &Broker{}
	n, err := start(ctx, o.Common, func(n *Node) error {
		if n.Faults != nil {
			return n.Faults
		}
		b, err := broker.New(broker.Options{Log: n.Log, BroadcastAddress: o.Broadcast, MaxMsgTimeout: o.MaxMsgTimeout})
		if err != nil {
			return err
		}
		n.onClose(b.Close)
		if err := b.Listen(o.TCP); err != nil {
			return fmt.Errorf("listen on %s: %w", o.TCP, err)
		}
		out.tcp = b.Addr()
		l, err := n.listen(ctx)
		if err != nil {
			return err
		}
		mux := n.health(nil)
		mux.Handle("GET /", b.Handler())
		n.serve(l, mux)
		return nil
	})
	out.Node = n
	return out, err
}

// TCP is the address for NSQ clients.
func (b *Broker) TCP() string { return b.tcp }
