package queue

import (
	"sync/atomic"
	"time"

	"github.com/nsqio/go-nsq"
)

// MaxRequeueDelay is the longest delay that nsqd accepts by default.
const MaxRequeueDelay = time.Hour

// Delivery is one wake-up that a handler has received. It occupies a slot of its Consumer until it
// is finished or requeued. The first answer counts; later calls do nothing. A delivery without an
// answer is requeued when its handler returns. The methods may be called concurrently from any
// goroutine. They do not wait for the server and never fail: if the connection is lost, or the
// message timed out, the server delivers it again, here or elsewhere.
type Delivery struct {
	// ItemID is the hint: the item that is probably ready.
	ItemID string
	// Attempts counts the deliveries of this message including this one, up to 65,535. It does not
	// count the tries of the item.
	Attempts int

	consumer *Consumer
	session  *session // guarded by the consumer's mutex; nil after its connection was lost
	message  *nsq.Message
	answered atomic.Bool
}

// Finish removes the message from the server's queue.
func (d *Delivery) Finish() { d.answer(d.message.Finish) }

// Requeue asks the server to deliver the message again after delay, to this consumer or another.
// The delay is limited to the range from 0 to MaxRequeueDelay. Other messages are not delayed
// (R21).
func (d *Delivery) Requeue(delay time.Duration) {
	d.answer(func() { giveBack(d.message, delay) })
}

// Touch restarts the server's timeout for the message (ConsumerConfig.MsgTimeout), for at most
// nsqd's max-msg-timeout, 15 minutes, after delivery. Past that the server delivers the message
// again.
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

// giveBack requeues a message, without go-nsq's backoff.
func giveBack(m *nsq.Message, delay time.Duration) {
	m.RequeueWithoutBackoff(min(max(delay, 0), MaxRequeueDelay))
}
