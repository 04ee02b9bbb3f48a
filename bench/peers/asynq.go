package main

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// servers is the number of Asynq's servers in this process: each fetches one task at a time. Of 1 to
// 4 servers, four were the fastest if Redis syncs always, and as fast as two otherwise.
const servers = 4

// asynqChains returns the time from the servers' start, with a task of each chain waiting, until no
// task is left. With always, Redis syncs each write before it answers; otherwise once a second, and
// may lose that second.
func asynqChains(ctx context.Context, address string, c *chains, always bool) (taken time.Duration, err error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		return 0, err
	}
	options.PoolSize = 2 * slots
	db := redis.NewClient(options)
	defer func() { err = errors.Join(err, db.Close()) }()
	sync := "everysec"
	if always {
		sync = "always"
	}
	if err := errors.Join(db.FlushDB(ctx).Err(), db.ConfigSet(ctx, "appendonly", "yes").Err(), db.ConfigSet(ctx, "appendfsync", sync).Err()); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.FlushDB(context.WithoutCancel(ctx)).Err()) }()
	client := asynq.NewClientFromRedisClient(db)
	for range c.items {
		if _, err := client.EnqueueContext(ctx, asynq.NewTask("stage", []byte{0})); err != nil {
			return 0, err
		}
	}
	handler := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) (err error) {
		defer c.done()
		if next := t.Payload()[0] + 1; next < stages {
			_, err = client.EnqueueContext(ctx, asynq.NewTask("stage", []byte{next}))
		}
		return err
	})
	begun := time.Now()
	for range servers {
		server := asynq.NewServerFromRedisClient(db, asynq.Config{Concurrency: slots, TaskCheckInterval: time.Millisecond, LogLevel: asynq.FatalLevel})
		if err := server.Start(handler); err != nil {
			return 0, err
		}
		defer server.Shutdown()
	}
	queue := asynq.NewInspectorFromRedisClient(db)
	err = c.wait(ctx, func(context.Context) (int, error) {
		q, err := queue.GetQueueInfo("default")
		if err != nil {
			return 0, err
		}
		return q.Size, nil
	})
	return time.Since(begun), err
}
