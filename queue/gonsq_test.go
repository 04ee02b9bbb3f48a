package queue_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/queuetest"
)

// What go-nsq's own Consumer and Producer cannot do, which is why this package stands on its
// connections. When one of these tests fails with a new version of go-nsq, think again.

// go-nsq's consumer does not reconnect to a restarted server while it has an older unanswered
// message, which here may take hours. Ours reconnects at once.
func TestGoNSQ_ConsumerStaysAway(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	config := nsq.NewConfig()
	config.LookupdPollInterval = 10 * time.Millisecond // after which it connects again
	consumer, err := nsq.NewConsumer(topic, queue.Channel, config)
	if err != nil {
		t.Fatal(err)
	}
	consumer.SetLogger(nil, nsq.LogLevelMax)
	begun, end := make(chan struct{}, 1), make(chan struct{})
	consumer.AddHandler(nsq.HandlerFunc(func(*nsq.Message) error {
		begun <- struct{}{}
		<-end
		return nil
	}))
	if err := consumer.ConnectToNSQD(s.addr); err != nil {
		t.Fatal(err)
	}
	queuetest.Publish(t, s.addr, topic, "long")
	<-begun
	s.stop()
	s.start()
	// Ours comes after the restart, and then the other one has thirty times as long as it waits.
	in := queuetest.OpenInbox(t, queue.ConsumerConfig{Addrs: []string{s.addr}, Topic: topic, Free: 1, Timing: quick})
	queuetest.Eventually(t, "ours is connected", func() bool { return in.Connections() == 1 })
	time.Sleep(300 * time.Millisecond)
	if n := len(s.workers(topic).Clients); n != 1 {
		t.Errorf("%d consumers are connected, want ours alone: go-nsq's connects again with a message in hand", n)
	}
	close(end)
	queuetest.Eventually(t, "the other one is back", func() bool { return len(s.workers(topic).Clients) == 2 })
	consumer.Stop()
	<-consumer.StopChan
}

// go-nsq's producer waits for an unresponsive server as long as its connection lives, and cannot be
// cancelled. Ours ends with its context.
func TestGoNSQ_ProducerCannotBeCalledOff(t *testing.T) {
	t.Parallel()
	addr := silent(t)
	producer, err := nsq.NewProducer(addr, nsq.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	producer.SetLogger(nil, nsq.LogLevelMax)
	done := make(chan error, 1)
	go func() { done <- producer.Publish(topic, []byte("x")) }()

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ours := queuetest.OpenProducer(t, queue.ProducerConfig{Addrs: []string{addr}, Timing: quick})
	if err := ours.Publish(ctx, topic, "x"); err == nil {
		t.Error("ours says that a silent server has it")
	}
	select {
	case err := <-done:
		t.Errorf("go-nsq's has ended: %v", err)
	default:
	}
	producer.Stop()
	if err := <-done; err == nil {
		t.Error("go-nsq's says that a silent server has it")
	}
}

// silent is the address of a server that takes connections in, and answers nothing else.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			go func() {
				defer conn.Close()
				// "  V2", IDENTIFY and a line's end, the length of what follows.
				head := make([]byte, len("  V2IDENTIFY\n")+4)
				if _, err := io.ReadFull(conn, head); err != nil {
					return
				}
				if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head[len(head)-4:]))); err != nil {
					return
				}
				if _, err := conn.Write([]byte{0, 0, 0, 6, 0, 0, 0, 0, 'O', 'K'}); err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, conn) // until it is closed
			}()
		}
	}()
	return l.Addr().String()
}
