package base

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
)

// Message is one wake-up from the queue that a worker has received. Its methods return at once and
// never fail: a message is a hint, and after a lost answer the queue delivers it again.
type Message interface {
	// Touch tells the queue that the message is still being worked on.
	Touch()
	// Finish takes the message off the queue.
	Finish()
	// Requeue gives the message back, to be delivered again after delay.
	Requeue(delay time.Duration)
}

// Consumer is a subscription to one topic.
type Consumer interface {
	// SetFree sets how many messages may be in flight at once; 0 pauses deliveries.
	SetFree(n int)
	// Stop ends deliveries and waits until every message in flight is answered, or ctx ends.
	Stop(ctx context.Context) error
}

// ConnectFunc subscribes to the messages of a stage. It calls handle for each message on a
// goroutine of its own, at most free at once. hint is the id of the item that is said to be ready.
// handle has answered the message when it returns. When ctx ends, no more messages come.
type ConnectFunc func(ctx context.Context, action registry.Action, stage registry.Stage, free int, handle HandleFunc) (Consumer, error)

// HandleFunc processes one message. It may be called concurrently.
type HandleFunc func(ctx context.Context, hint string, m Message)

// Queue returns a ConnectFunc for NSQ. cfg has the addresses; Topic and Free are set for each
// stage. prefix is put before each topic's name, to separate clusters that share an nsqd; it may be
// empty.
func Queue(cfg queue.ConsumerConfig, prefix string) ConnectFunc {
	return func(ctx context.Context, action registry.Action, stage registry.Stage, free int, handle HandleFunc) (Consumer, error) {
		topic, err := queue.Topic(prefix, string(action), string(stage))
		if err != nil {
			return nil, err
		}
		cfg := cfg
		cfg.Topic, cfg.Free = topic, free
		return queue.Consume(ctx, cfg, func(ctx context.Context, d *queue.Delivery) { handle(ctx, d.ItemID, d) })
	}
}

// noMessage is the Message of an item that is run without the queue.
type noMessage struct{}

func (noMessage) Touch()                {}
func (noMessage) Finish()               {}
func (noMessage) Requeue(time.Duration) {}
