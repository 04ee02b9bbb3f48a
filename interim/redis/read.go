package redis

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast/holdfast/interim"
)

// countLua counts one round of a scan on the server, so that no value is transferred. It blocks the
// server for one round only.
const countLua = `
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'MATCH', ARGV[2], 'COUNT', 5000)
return {page[1], tostring(#page[2] / 2)}`

const (
	// A page of Each starts small and doubles while its values are small: Redis limits a page by
	// entries, not by bytes.
	firstPage  = 16
	largePage  = 1024
	lightBytes = 256 << 10
	heavyBytes = 1 << 20

	itemsAPage = 1000
)

// Get implements interim.Store.
func (s *Store) Get(ctx context.Context, a interim.Attempt, key string) (value []byte, err error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("get interim data: %w", err)
	}
	err = s.call(ctx, func(ctx context.Context) error {
		value, err = s.client.HGet(ctx, entriesKey(a), key).Bytes()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get interim data %q of %s: %w", key, a, err)
	}
	return value, nil
}

// Each implements interim.Store, in no order. Redis has no index by prefix, so it scans the whole
// attempt.
//
// A scan of a hash returns an entry twice only if the hash shrinks meanwhile, and no method deletes
// single entries.
func (s *Store) Each(ctx context.Context, a interim.Attempt, prefix string, fn func(key string, value []byte) error) error {
	if err := a.Validate(); err != nil {
		return fmt.Errorf("walk interim data: %w", err)
	}
	pattern := literal(prefix) + "*"
	count := int64(firstPage)
	for cursor := uint64(0); ; {
		var page []string
		err := s.call(ctx, func(ctx context.Context) (err error) {
			page, cursor, err = s.client.HScan(ctx, entriesKey(a), cursor, pattern, count).Result()
			return err
		})
		if err != nil {
			return fmt.Errorf("walk interim data of %s: %w", a, err)
		}
		size := 0
		for i := 0; i+1 < len(page); i += 2 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("walk interim data of %s: %w", a, err)
			}
			if err := fn(page[i], []byte(page[i+1])); err != nil {
				return fmt.Errorf("walk interim data of %s at %q: %w", a, page[i], err)
			}
			size += len(page[i]) + len(page[i+1])
		}
		if cursor == 0 {
			return nil
		}
		count = nextPage(count, size)
	}
}

// nextPage returns how many entries to request after a page of count entries had size bytes.
func nextPage(count int64, size int) int64 {
	switch {
	case size < lightBytes:
		return min(2*count, largePage)
	case size > heavyBytes:
		return max(count/2, 1)
	default:
		return count
	}
}

// Count implements interim.Store. With a prefix it scans the whole attempt, on the server.
func (s *Store) Count(ctx context.Context, a interim.Attempt, prefix string) (n int64, err error) {
	if err := a.Validate(); err != nil {
		return 0, fmt.Errorf("count interim data: %w", err)
	}
	if prefix == "" {
		err = s.call(ctx, func(ctx context.Context) error {
			n, err = s.client.HLen(ctx, entriesKey(a)).Result()
			return err
		})
	} else {
		n, err = s.countMatching(ctx, entriesKey(a), literal(prefix)+"*")
	}
	if err != nil {
		return 0, fmt.Errorf("count interim data of %s: %w", a, err)
	}
	return n, nil
}

func (s *Store) countMatching(ctx context.Context, key, pattern string) (n int64, err error) {
	for cursor := int64(0); ; {
		var page []int64
		err = s.call(ctx, func(ctx context.Context) error {
			page, err = s.count.Run(ctx, s.client, []string{key}, cursor, pattern).Int64Slice()
			return err
		})
		if err != nil {
			return 0, err
		}
		n += page[1]
		if cursor = page[0]; cursor == 0 {
			return n, nil
		}
	}
}

// Items implements interim.Store. It scans all keys of the database and remembers the ids that it
// yielded, since Redis may return a key twice.
func (s *Store) Items(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		seen := map[string]struct{}{}
		for cursor := uint64(0); ; {
			var page []string
			err := s.call(ctx, func(ctx context.Context) (err error) {
				page, cursor, err = s.client.Scan(ctx, cursor, literal(keyPrefix)+"*}", itemsAPage).Result()
				return err
			})
			if err != nil {
				yield("", fmt.Errorf("list items with interim data: %w", err))
				return
			}
			for _, key := range page {
				id := strings.TrimSuffix(strings.TrimPrefix(key, keyPrefix), "}")
				if _, ok := seen[id]; ok {
					continue
				}
				seen[id] = struct{}{}
				if !yield(id, nil) {
					return
				}
			}
			if cursor == 0 {
				return
			}
		}
	}
}

// literal escapes the special characters of Redis patterns.
func literal(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
