// Package redis keeps interim data in Redis (6.2 or newer), for workers in separate containers.
//
// All entries of an attempt are in one hash. A small index per item lists its attempts. Both change
// atomically. Keys:
//
//	holdfast:interim:{ITEM}     the index: attempt number -> number it was adopted from, or 0
//	holdfast:interim:{ITEM}:N   the entries of attempt N: key -> value
//
// The braces keep an item's keys on one server of a cluster. Nothing expires: an item may wait for
// weeks and then continue. Drop removes the data of a settled item, and the report of orphaned data
// finds the rest.
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
	"github.com/holdfast/holdfast/metrics"
)

var _ interim.Store = (*Store)(nil)

// ErrTimeout says that Redis did not answer in time, before the caller's context ended.
var ErrTimeout = errors.New("redis did not answer in time")

const (
	keyPrefix = "holdfast:interim:{"

	// callTimeout bounds a call with its retries. It is below the default lease of 30 s.
	callTimeout = 20 * time.Second
	// readTimeout bounds one answer. The longest command copies an attempt of 360,000 entries.
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
// rediss:// for TLS, unix:///socket). Over TLS, the server needs a certificate of one of the roots;
// nil means the machine's. Open does not connect, so that a worker can start during an outage of
// Redis; [Store.Check] connects.
func Open(rawURL string, roots *x509.CertPool) (*Store, error) {
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		// The URL may contain a password, and url.Error quotes the whole URL.
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
	options.DisableIdentity = true // Redis before 7.2 refuses it, which would count as failed requests
	options.ReadTimeout = readTimeout
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(options)
	client.AddHook(measured{})
	metrics.RedisPool(func() (total, idle, timeouts uint32) {
		p := client.PoolStats()
		return p.TotalConns, p.IdleConns, p.Timeouts
	})
	return &Store{
		client: client,
		adopt:  redis.NewScript(adoptLua),
		count:  redis.NewScript(countLua),
		drop:   redis.NewScript(dropLua),
	}, nil
}

// quiet stops go-redis from writing to standard error. It logs only what its errors say too.
var quiet = sync.OnceFunc(logging.Disable)

// Close implements interim.Store. Running calls fail with interim.ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// call runs f with a timeout and maps its error to the contract's errors.
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
		// This is not the caller's deadline, so the chain must not contain
		// context.DeadlineExceeded.
		return fmt.Errorf("%w: %v", ErrTimeout, err) //nolint:errorlint // see above
	default:
		return err
	}
}

// indexKey returns the key of an item's index.
func indexKey(itemID string) string { return keyPrefix + itemID + "}" }

// entriesKey returns the key of an attempt's entries. The scripts build the same key from the index
// key and the number.
func entriesKey(a interim.Attempt) string {
	return indexKey(a.ItemID) + ":" + strconv.FormatInt(a.N, 10)
}
