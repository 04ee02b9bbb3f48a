package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast/holdfast/metrics"
)

// measured is a hook that measures each request.
type measured struct{}

// DialHook implements redis.Hook.
func (measured) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (measured) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		metrics.RedisRequest.Since(begun, cmd.Name(), outcome(err))
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (measured) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		metrics.RedisRequest.Since(begun, "pipeline", outcome(err))
		return err
	}
}

// outcome counts a missing value, and a script that is not loaded yet, as an answer.
func outcome(err error) string {
	if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = nil
	}
	return metrics.Outcome(err)
}
