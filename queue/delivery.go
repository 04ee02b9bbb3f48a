package queue

import (
	"sync/atomic"
	"time"

	"github.com/nsqio/go-nsq"
)

// MaxRequeueDelay is the longest delay that nsqd takes by default.
const MaxRequeueDelay = time.Hour

// Delivery is one wake-up in the hands of a handler. It takes up a slot of its Consumer until it is
// finished or requeued; the first of the two counts, and everything after it is without effect. Its
// methods may be called concurrently, from any goroutine, and after the handler has returned a
// Delivery is given back if it was not answered. None of them waits for the server, and none fails:
// if the connection is gone, or the server has already taken the message back because it timed out,
// then the message is delivered again, here or elsewhere.
type Delivery struct {
	// ItemID is the hint: the item that is probably ready.
	ItemID string
	// Attempts counts how often the server has delivered this message, this time included, up to
	// 65,535. It says nothing about how often the item was tried.
	Attempts int

	consumer *Consumer
	session  *session // guarded by the consumer's mutex; nil when its connection is lost
	message  *nsq.Message
	answered atomic.Bool
}

// Finish tells the server that the message is done with.
func (d *Delivery) Finish() { d.answer(d.message.Finish) }

// Requeue gives the message back, to be delivered again after delay, to this consumer or another.
// The delay is cut to 0 and MaxRequeueDelay. It slows down nothing else (R21).
func (d *Delivery) Requeue(delay time.Duration) {
	d.answer(func() { giveBack(d.message, delay) })
}

// Touch starts the server's timeout for the message anew (ConsumerConfig.MsgTimeout), up to nsqd's
// max-msg-timeout, 15 minutes, after delivery. Past that the message is delivered again whatever is
// done.
func (d *Delivery) Touch() {
	if !d.answered.Load() {
		d.message.Touch()
	}
}

func (d *Delivery) answer(send func()) {
	if d.answered.CompareAndSwap(false, true) {
		d.consumer.release(d)
		send()
	}
}

// giveBack requeues a message; never with go-nsq's backoff.
func giveBack(m *nsq.Message, delay time.Duration) {
	m.RequeueWithoutBackoff(min(max(delay, 0), MaxRequeueDelay))
}
