package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/metrics"
)

// outlet is a Producer's connection to one nsqd, made again whenever it breaks.
type outlet struct {
	addr       string
	timing     Timing
	connecting func(context.Context, *pipe) *nsq.Conn
	report     *errorLog
	onChange   func(addr string)
	cancel     context.CancelFunc // ends keepConnected

	mu      sync.Mutex
	pipe    *pipe         // nil while disconnected
	err     error         // why it is disconnected; nil during the first attempt to connect or reconnect
	changed chan struct{} // closed and replaced whenever pipe or err changes
}

func newOutlet(addr string, cfg ProducerConfig) *outlet {
	config := nsq.NewConfig()
	config.DialTimeout = 2 * time.Second
	config.WriteTimeout = 2 * time.Second
	// A hanging server is given up if neither an answer nor a heartbeat comes for this long.
	config.HeartbeatInterval = 5 * time.Second
	config.ReadTimeout = 12 * time.Second
	config.UserAgent = userAgent
	config.AuthSecret = cfg.AuthSecret
	log := cfg.Log.With("nsqd", addr)
	return &outlet{
		addr: addr, timing: cfg.Timing,
		connecting: func(ctx context.Context, p *pipe) *nsq.Conn { return newConn(ctx, addr, config, p, log) },
		report:     newErrorLog(log, cfg.Timing.LogEvery),
		onChange:   cfg.OnChange,
		changed:    make(chan struct{}),
	}
}

// publish sends the bodies as one MPUB and waits for the answer or ctx. It waits for a connection
// that is being made, and fails at once if none can be made.
func (o *outlet) publish(ctx context.Context, topic string, bodies [][]byte) error {
	command, err := nsq.MultiPublish(topic, bodies)
	if err != nil {
		return fmt.Errorf("encode messages: %w", err)
	}
	p, err := o.connected(ctx)
	if err != nil {
		return fmt.Errorf("nsqd %s: %w", o.addr, err)
	}
	err = p.request(ctx, command)
	if refused := (nsq.ErrProtocol{}); errors.As(err, &refused) && isRefusal(refused) {
		return fmt.Errorf("%w at %s: %w", ErrRefused, o.addr, err)
	}
	if err != nil {
		return fmt.Errorf("nsqd %s: %w", o.addr, err)
	}
	return nil
}

// isRefusal reports whether nsqd's error is about the message, not about the server. The code is
// the first word of an error frame.
func isRefusal(err nsq.ErrProtocol) bool {
	code, _, _ := strings.Cut(err.Reason, " ")
	switch code {
	case "E_BAD_TOPIC", "E_BAD_MESSAGE", "E_BAD_BODY", "E_INVALID":
		return true
	}
	return false
}

// connected returns the connection, or why there is none.
func (o *outlet) connected(ctx context.Context) (*pipe, error) {
	for {
		o.mu.Lock()
		p, err, changed := o.pipe, o.err, o.changed
		o.mu.Unlock()
		if p != nil || err != nil {
			return p, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// health returns nil while connected.
func (o *outlet) health() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.pipe != nil:
		return nil
	case o.err != nil:
		return fmt.Errorf("nsqd %s: %w", o.addr, o.err)
	default:
		return fmt.Errorf("nsqd %s: connecting", o.addr)
	}
}

func (o *outlet) set(p *pipe, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pipe, o.err = p, err
	close(o.changed)
	o.changed = make(chan struct{})
}

// keepConnected connects, and reconnects whenever the connection is lost. When ctx ends, it closes
// the connection.
func (o *outlet) keepConnected(ctx context.Context) {
	defer o.set(nil, ErrClosed)
	pause := o.timing.newBackOff()
	for again := false; ; again = true {
		p, err := openPipe(ctx, o.connecting)
		had, good := err == nil, false
		if had {
			o.report.recovered(ctx)
			o.set(p, nil)
			if again {
				o.notifyChange()
			}
			since := time.Now()
			if err = p.wait(ctx); ctx.Err() != nil {
				return
			}
			good = time.Since(since) > o.timing.MaxRetry
		}
		if good { // retry without a wait; publishers wait for the result
			pause.Reset()
			o.set(nil, nil)
		} else {
			o.set(nil, err)
		}
		metrics.NSQLost.Add(1, "producer")
		o.report.lost(ctx, err)
		if had {
			o.notifyChange()
		}
		if !good && wait(ctx, pause.NextBackOff()) != nil {
			return
		}
	}
}

func (o *outlet) notifyChange() {
	if o.onChange != nil {
		o.onChange(o.addr)
	}
}
