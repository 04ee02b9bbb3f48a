package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast/holdfast/internal/cputime"
)

// serverTime is the CPU time of the servers behind a fleet since their start.
type serverTime struct {
	postgres, redis time.Duration
}

// serverTimes reads the CPU time of -postgres and -redis. PostgreSQL's is 0 if it runs on another
// machine.
func (b *bench) serverTimes(ctx context.Context) (t serverTime, err error) {
	if t.postgres, err = cputime.Postgres(ctx, b.postgres); err != nil {
		return t, fmt.Errorf("read PostgreSQL's CPU time: %w", err)
	}
	if t.redis, err = redisTime(ctx, b.redis); err != nil {
		return t, fmt.Errorf("read Redis's CPU time: %w", err)
	}
	return t, nil
}

// redisTime reads what the server says of itself.
func redisTime(ctx context.Context, address string) (total time.Duration, err error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return 0, errors.New("-redis is not an address")
	}
	c := redis.NewClient(o)
	defer func() { err = errors.Join(err, c.Close()) }()
	text, err := c.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}
