package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Warning says that Redis works, but its configuration loses interim data more often than
// necessary. It is an error value for logs and health pages, not a reason to stop: the cost is
// rework.
type Warning struct {
	Setting     string // as in redis.conf
	Value       string // as Redis reports it, or "unknown"
	Consequence string
}

// Error names the setting, its value and the consequence.
func (w *Warning) Error() string {
	return fmt.Sprintf("redis has %s %s: %s", w.Setting, w.Value, w.Consequence)
}

// Check verifies that the server keeps interim data over a restart and under memory pressure. It
// returns nil, one or more joined [*Warning], or the error that prevented the check. A server that
// hides its configuration, as hosted ones do, gets a warning with the value "unknown".
func (s *Store) Check(ctx context.Context) error {
	var warnings []error
	for _, want := range []struct{ setting, value, consequence string }{
		{"appendonly", "yes", "a restart of redis forgets what running steps have done, and they start from the beginning; set appendonly yes"},
		{"maxmemory-policy", "noeviction", "redis may throw interim data away when memory runs short; set maxmemory-policy noeviction"},
	} {
		got, err := s.setting(ctx, want.setting)
		if err != nil {
			return fmt.Errorf("check redis: %w", err)
		}
		if got != want.value {
			warnings = append(warnings, &Warning{Setting: want.setting, Value: got, Consequence: want.consequence})
		}
	}
	return errors.Join(warnings...)
}

// setting returns a value of the server's configuration, or "unknown" if the server refuses.
func (s *Store) setting(ctx context.Context, name string) (value string, err error) {
	value = "unknown"
	err = s.call(ctx, func(ctx context.Context) error {
		values, err := s.client.ConfigGet(ctx, name).Result()
		if v, ok := values[name]; ok {
			value = v
		}
		// Any reply, even a refusal, shows that the server is there.
		var refused redis.Error
		if errors.As(err, &refused) && !redis.IsAuthError(err) && !redis.IsLoadingError(err) {
			return nil
		}
		return err
	})
	return value, err
}

// Version returns the server's version, "" if it does not tell.
func (s *Store) Version(ctx context.Context) (version string, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		info, err := s.client.InfoMap(ctx, "server").Result()
		version = info["Server"]["redis_version"]
		var refused redis.Error
		if errors.As(err, &refused) && !redis.IsAuthError(err) && !redis.IsLoadingError(err) {
			return nil // an account may be denied INFO
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("ask redis for its version: %w", err)
	}
	return version, err
}
