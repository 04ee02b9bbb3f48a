package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/web/webserver"
)

// BrokerOptions has the options of NewBroker. Common.Listen is its HTTP side.
type BrokerOptions struct {
	Common
	TCP           string        // host:port for NSQ clients; port 0 takes a free one
	Broadcast     string        // the host in answers to lookups; "": that of TCP
	MaxMsgTimeout time.Duration // 0: the broker's default
	MaxMemory     int64         // bytes of messages in memory; 0: the broker's default
	AuthSecret    string        // required from clients; "": none
	Remote        bool          // serve other machines, too
}

// Broker is a running [broker.Broker].
type Broker struct {
	*Node
	tcp string
}

// NewBroker runs the in-memory broker alone, with its HTTP side: /ping, /stats, lookups of itself,
// and health.
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
			n.Log.WarnContext(ctx, "the broker serves other machines, in plain text: keep it in a private network",
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

// remoteBroker returns the error of a broker that would listen where other machines can reach it.
func remoteBroker(flag, address string, err error) error {
	return &NeedError{
		Setting: flag, What: "the broker's address " + address, Err: err,
		Fix: "listen on loopback (127.0.0.1), or add --remote, in a private network and with HOLDFAST_NSQ_AUTH_SECRET (docs/security.md, The broker)",
	}
}

// TCP returns the address for NSQ clients.
func (b *Broker) TCP() string { return b.tcp }
