package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Warning says that Redis works but is set up so that interim data is lost more often than need be.
// It is an error value for a log line or a health page, never a reason to stop: the price is
// rework.
type Warning struct {
	Setting     string // as in redis.conf
	Value       string // as Redis reports it, or "unknown" when it does not tell
	Consequence string
}

// Error names the setting, its value and what follows from it.
func (w *Warning) Error() string {
	return fmt.Sprintf("redis has %s %s: %s", w.Setting, w.Value, w.Consequence)
}

// Check asks the server whether it keeps interim data over a restart and under memory pressure. It
// returns nil, one or more joined [*Warning], or the error that kept it from asking. A server that
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

// setting returns a value of the server's configuration, or "unknown" when the server refuses to
// tell.
func (s *Store) setting(ctx context.Context, name string) (value string, err error) {
	value = "unknown"
	err = s.call(ctx, func(ctx context.Context) error {
		values, err := s.client.ConfigGet(ctx, name).Result()
		if v, ok := values[name]; ok {
			value = v
		}
		// Any reply of the server, even a refusal, shows that it is there.
		var refused redis.Error
		if errors.As(err, &refused) && !redis.IsAuthError(err) && !redis.IsLoadingError(err) {
			return nil
		}
		return err
	})
	return value, err
}
