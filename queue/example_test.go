package queue_test

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
)

// A message is a hint that an item may be ready. The handler asks the Registry, works, and then
// finishes it.
func Example() {
	ctx := context.Background()
	server, err := broker.New(broker.Options{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	if err := server.Listen("127.0.0.1:0"); err != nil {
		panic(err)
	}
	topic, err := queue.Topic("", "ingest", "download")
	if err != nil {
		panic(err)
	}

	done := make(chan string, 1)
	consumer, err := queue.Consume(ctx, queue.ConsumerConfig{Topic: topic, Addrs: []string{server.Addr()}, Free: 1},
		func(_ context.Context, d *queue.Delivery) {
			d.Finish()
			done <- d.ItemID
		})
	if err != nil {
		panic(err)
	}
	defer func() { _ = consumer.Stop(ctx) }()
	producer, err := queue.OpenProducer(ctx, queue.ProducerConfig{Addrs: []string{server.Addr()}})
	if err != nil {
		panic(err)
	}
	defer producer.Close()
	if err := producer.Publish(ctx, topic, "item-1"); err != nil {
		panic(err)
	}
	fmt.Println(topic, <-done)
	// Output: ingest.download item-1
}
