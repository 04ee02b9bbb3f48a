package queue_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/queuetest"
)

// BenchmarkWakeUps measures wake-ups from Publish to Finish, in groups as the relay sends them.
func BenchmarkWakeUps(b *testing.B) {
	for _, group := range []int{1, 100} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			s := openServer(b)
			finished := make(chan struct{}, group)
			c, err := queue.Consume(context.Background(), queue.ConsumerConfig{Addrs: []string{s.addr}, Topic: topic, Free: 100},
				func(_ context.Context, d *queue.Delivery) {
					d.Finish()
					finished <- struct{}{}
				})
			if err != nil {
				b.Fatal(err)
			}
			p := queuetest.OpenProducer(b, queue.ProducerConfig{Addrs: []string{s.addr}})
			ids := make([]string, group)
			for i := range ids {
				ids[i] = "01938f2e-7c4a-7000-8000-000000000000"
			}
			for b.Loop() {
				if err := p.Publish(b.Context(), topic, ids...); err != nil {
					b.Fatal(err)
				}
				for range ids {
					<-finished
				}
			}
			b.ReportMetric(float64(b.N*group)/b.Elapsed().Seconds(), "wakeups/s")
			if err := c.Stop(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
