// Package redis keeps interim data in Redis (6.2 or newer), for workers in containers of their own.
//
// All entries of an attempt are in one hash, and a small index per item lists the attempts that
// have one. Both change in one atomic step. Keys:
//
//	holdfast:interim:{ITEM}     the index: attempt number -> number it was adopted from, or 0
//	holdfast:interim:{ITEM}:N   the entries of attempt N: key -> value
//
// The braces keep an item's keys on one server of a cluster. Nothing expires: an item may wait for
// weeks and then go on. Drop removes the data of a settled item, and the report of orphans finds
// the rest.
package redis

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast/holdfast/interim"
)

var _ interim.Store = (*Store)(nil)

// ErrTimeout says that Redis did not answer in time, although the caller's context had not ended.
var ErrTimeout = errors.New("redis did not answer in time")

const (
	keyPrefix = "holdfast:interim:{"

	// callTimeout bounds every call with its retries, and so lies below the default lease of 30 s.
	callTimeout = 20 * time.Second
	// readTimeout bounds one answer. Copying an attempt of 360,000 entries is the longest command.
	readTimeout = 15 * time.Second
)

// Store is an interim.Store in Redis.
type Store struct {
	client *redis.Client
	adopt  *redis.Script
	count  *redis.Script
	drop   *redis.Script
	closed atomic.Bool
}

// Open returns a store in the Redis server at rawURL (redis://[user:password@]host:port/db,
// rediss:// for TLS, unix:///socket). Over TLS the server must have a certificate of one of the
// roots; nil: of the machine's. It does not connect, so that a worker starts while Redis is away;
// [Store.Check] does.
func Open(rawURL string, roots *x509.CertPool) (*Store, error) {
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		// The URL may hold a password, and url.Error repeats it whole.
		if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
			err = urlErr.Err
		}
		return nil, fmt.Errorf("parse redis url: %w", err)
	}
	quiet()
	if options.TLSConfig != nil {
		options.TLSConfig.RootCAs = roots
	}
	options.ContextTimeoutEnabled = true
	options.ReadTimeout = readTimeout
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &Store{
		client: redis.NewClient(options),
		adopt:  redis.NewScript(adoptLua),
		count:  redis.NewScript(countLua),
		drop:   redis.NewScript(dropLua),
	}, nil
}

// quiet keeps go-redis from writing lines of its own to standard error, which is ours; what it says
// there, its errors say, too.
var quiet = sync.OnceFunc(logging.Disable)

// Close implements interim.Store. Calls under way fail with interim.ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// call runs f with a bounded context and maps what ended it to the contract's errors.
func (s *Store) call(ctx context.Context, f func(ctx context.Context) error) error {
	if s.closed.Load() {
		return interim.ErrClosed
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := f(bounded)
	var netErr net.Error
	switch {
	case err == nil:
		return nil
	case s.closed.Load() || errors.Is(err, redis.ErrClosed):
		return interim.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, redis.Nil):
		return interim.ErrNotFound
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		// Not the caller's deadline: the text says what happened, the chain must not say
		// context.DeadlineExceeded.
		return fmt.Errorf("%w: %v", ErrTimeout, err) //nolint:errorlint // see above
	default:
		return err
	}
}

// indexKey is the key of an item's index.
func indexKey(itemID string) string { return keyPrefix + itemID + "}" }

// entriesKey is the key of an attempt's entries. The scripts build the same from the index key and
// the number.
func entriesKey(a interim.Attempt) string {
	return indexKey(a.ItemID) + ":" + strconv.FormatInt(a.N, 10)
}
