package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/queue"
)

// NSQ has the addresses of the nsqds: Addrs directly, LookupAddrs those of nsqlookupds. One must be
// set.
type NSQ struct {
	Addrs, LookupAddrs []string
	AuthSecret         string // for nsqds that require a secret; "": they cannot be used
}

// producer returns the configuration of the wake-ups' producer.
func (q NSQ) producer() queue.ProducerConfig {
	return queue.ProducerConfig{Addrs: q.Addrs, LookupAddrs: q.LookupAddrs, AuthSecret: q.AuthSecret}
}

// consumer returns the configuration of the workers' consumers.
func (q NSQ) consumer() queue.ConsumerConfig {
	return queue.ConsumerConfig{Addrs: q.Addrs, LookupAddrs: q.LookupAddrs, AuthSecret: q.AuthSecret}
}

// limits are the least values that nsqds must allow; 0 is any.
type limits struct {
	msgTimeout time.Duration
	ready      int
}

// needs is the need for at least one usable nsqd. Each nsqd that answers must allow enough.
func (q NSQ) needs(n *Node, l limits) []need {
	setting := "HOLDFAST_NSQD_ADDR"
	if len(q.LookupAddrs) > 0 {
		setting = "HOLDFAST_NSQLOOKUPD_ADDRS"
	}
	address := strings.Join(slices.Concat(q.Addrs, q.LookupAddrs), ", ")
	return []need{{
		setting, address, "nsqd at " + address,
		"start nsqd (or holdfast broker) there, or correct the address (of nsqd, its TCP port, usually 4150); if it requires a secret, set HOLDFAST_NSQ_AUTH_SECRET to it",
		func(ctx context.Context) error { return q.check(ctx, n, l) },
	}}
}

// check contacts each nsqlookupd and nsqd. It logs those that do not answer, and returns an error
// if none does.
func (q NSQ) check(ctx context.Context, n *Node, l limits) error {
	addrs := slices.Clone(q.Addrs)
	var down, wrong []error
	for _, lookup := range q.LookupAddrs {
		found, err := queue.Nodes(ctx, lookup)
		if err != nil {
			down = append(down, fmt.Errorf("ask nsqlookupd %s: %w", lookup, err))
		}
		addrs = append(addrs, found...)
	}
	slices.Sort(addrs)
	good := 0
	for _, addr := range slices.Compact(addrs) {
		server, err := queue.Inspect(ctx, addr, q.AuthSecret)
		switch {
		case errors.Is(err, queue.ErrRefused):
			wrong = append(wrong, fmt.Errorf("nsqd %s: %w", addr, err))
		case err != nil:
			down = append(down, fmt.Errorf("nsqd %s: %w", addr, err))
		default:
			good++
			wrong = append(wrong, l.check(addr, server)...)
		}
	}
	switch {
	case len(wrong) > 0:
		return errors.Join(append(wrong, down...)...)
	case good == 0 && len(down) == 0:
		return fmt.Errorf("%w: nsqlookupd knows no nsqd", queue.ErrUnavailable)
	case good == 0:
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, errors.Join(down...))
	case len(down) > 0:
		n.Log.WarnContext(ctx, "some nsqds do not answer; using the others", "err", errors.Join(down...))
	}
	return nil
}

func (l limits) check(addr string, s queue.Server) (wrong []error) {
	if s.MaxMsgTimeout < l.msgTimeout {
		wrong = append(wrong, fmt.Errorf("%w: nsqd %s has --max-msg-timeout=%s; start it with %s at least", queue.ErrRefused, addr, s.MaxMsgTimeout, l.msgTimeout))
	}
	if s.MaxReady < l.ready {
		wrong = append(wrong, fmt.Errorf("%w: nsqd %s has --max-rdy-count=%d; start it with %d at least, the workers' concurrency", queue.ErrRefused, addr, s.MaxReady, l.ready))
	}
	return wrong
}
