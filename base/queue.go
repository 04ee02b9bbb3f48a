package base

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
)

// Message is one wake-up from the queue while it is in a worker's hands. Its methods return at once
// and never fail: a message is a hint, and a lost answer only makes the queue deliver it again.
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
	// SetFree says how many messages may be in hand at once; 0 ends deliveries for the time being.
	SetFree(n int)
	// Stop ends deliveries and waits until every message in hand is answered, or ctx ends.
	Stop(ctx context.Context) error
}

// ConnectFunc subscribes to the wake-ups of a stage. It calls handle for each message on a
// goroutine of its own, with the id of the item that is said to be ready and at most free of them
// at once; handle has answered the message when it returns. When ctx ends, no more messages come.
type ConnectFunc func(ctx context.Context, action registry.Action, stage registry.Stage, free int, handle HandleFunc) (Consumer, error)

// HandleFunc takes one message. It may be called concurrently.
type HandleFunc func(ctx context.Context, hint string, m Message)

// Queue connects workers to NSQ. cfg says where; its Topic and Free are filled in for each stage.
// prefix stands before each topic's name and keeps clusters apart that share an nsqd; "" for none.
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

// noMessage stands in for a message where nobody waits for an answer.
type noMessage struct{}

func (noMessage) Touch()                {}
func (noMessage) Finish()               {}
func (noMessage) Requeue(time.Duration) {}
