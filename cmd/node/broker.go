package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/web/webserver"
)

// BrokerOptions says what an NSQ broker's process does. Common.Listen is its HTTP side.
type BrokerOptions struct {
	Common
	TCP           string        // host:port for NSQ clients; port 0 takes a free one
	Broadcast     string        // the host that lookups answer; "" the one that is listened on
	MaxMsgTimeout time.Duration // 0: the broker's default
	MaxMemory     int64         // bytes that what it holds may take; 0: the broker's default
	AuthSecret    string        // what clients must say; "": nothing
	Remote        bool          // others than this machine may be served
}

// Broker is a running [broker.Broker].
type Broker struct {
	*Node
	tcp string
}

// NewBroker runs the in-memory broker as a process of its own, with its HTTP side: /ping, /stats,
// the lookup of itself, and health.
func NewBroker(ctx context.Context, o BrokerOptions) (*Broker, error) {
	out := &Broker{}
	n, err := start(ctx, o.Common, func(n *Node) error {
		if n.Faults != nil {
			return n.Faults
		}
		b, err := broker.New(broker.Options{Log: n.Log, BroadcastAddress: o.Broadcast, MaxMsgTimeout: o.MaxMsgTimeout, MaxMemory: o.MaxMemory, AuthSecret: o.AuthSecret, Remote: o.Remote})
		if err != nil {
			return err
		}
		n.onClose(b.Close)
		err = b.Listen(o.TCP)
		if errors.Is(err, broker.ErrRemote) {
			return remoteBroker("--tcp-address", o.TCP, err)
		} else if err != nil {
			return fmt.Errorf("listen on %s: %w", o.TCP, err)
		}
		out.tcp = b.Addr()
		l, err := n.listen(ctx)
		if err != nil {
			return err
		}
		if webserver.Reachable(l.Addr()) && !o.Remote {
			return errors.Join(remoteBroker("--http-address", n.Listen, broker.ErrRemote), l.Close())
		}
		if o.Remote {
			n.Log.WarnContext(ctx, "the broker serves others than this machine, in plain text: keep it in a network of its own",
				"nsqd", b.Addr(), "http", l.Addr().String(), "asks_for_secret", o.AuthSecret != "")
		}
		mux := n.health(nil)
		mux.Handle("GET /", b.Handler())
		n.serve(l, mux)
		return nil
	})
	out.Node = n
	return out, err
}

// remoteBroker is why a broker does not listen where others can reach it.
func remoteBroker(flag, address string, err error) error {
	return &NeedError{
		Setting: flag, What: "the broker's address " + address, Err: err,
		Fix: "listen on loopback (127.0.0.1), or say that it is meant by --remote, in a network of its own and with HOLDFAST_NSQ_AUTH_SECRET (docs/security.md, The broker)",
	}
}

// TCP is the address for NSQ clients.
func (b *Broker) TCP() string { return b.tcp }
