package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast/holdfast/interim"
)

// fieldsACommand keeps one HSET far below the argument limits of Redis and the client.
const fieldsACommand = 500

// Both scripts derive the attempts' keys from the item's index key; its hash tag keeps them in one
// slot. They compare numbers as decimal text, first by length, since Lua's numbers are exact only
// up to 2^53.
const (
	adoptLua = `
local index, n = KEYS[1], ARGV[1]
local own = index .. ':' .. n
if redis.call('EXISTS', own) == 1 then
	return redis.call('HGET', index, n) or '0'
end
local function before(a, b)
	return #a < #b or (#a == #b and a < b)
end
local known = redis.call('HKEYS', index)
local from = nil
for _, m in ipairs(known) do
	if before(m, n) and (from == nil or before(from, m)) and redis.call('EXISTS', index .. ':' .. m) == 1 then
		from = m
	end
end
if from == nil then
	return '0'
end
redis.call('COPY', index .. ':' .. from, own)
redis.call('HSET', index, n, from)
for _, m in ipairs(known) do
	if before(m, from) then
		redis.call('UNLINK', index .. ':' .. m)
		redis.call('HDEL', index, m)
	end
end
return from`

	dropLua = `
local index = KEYS[1]
for _, n in ipairs(redis.call('HKEYS', index)) do
	redis.call('UNLINK', index .. ':' .. n)
end
return redis.call('UNLINK', index)`
)

// Put implements interim.Store with one MULTI.
func (s *Store) Put(ctx context.Context, a interim.Attempt, entries map[string][]byte) error {
	if err := a.Validate(); err != nil {
		return fmt.Errorf("put interim data: %w", err)
	}
	if err := interim.ValidateEntries(entries); err != nil {
		return fmt.Errorf("put interim data of %s: %w", a, err)
	}
	err := s.call(ctx, func(ctx context.Context) error {
		if len(entries) == 0 {
			return ctx.Err()
		}
		_, err := s.client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			tx.HSetNX(ctx, indexKey(a.ItemID), strconv.FormatInt(a.N, 10), 0)
			fields := make([]any, 0, 2*min(len(entries), fieldsACommand))
			for key, value := range entries {
				fields = append(fields, key, value)
				if len(fields) == 2*fieldsACommand {
					tx.HSet(ctx, entriesKey(a), fields...)
					fields = fields[:0:0] // the command keeps the old array until it is sent
				}
			}
			if len(fields) > 0 {
				tx.HSet(ctx, entriesKey(a), fields...)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("put interim data of %s: %w", a, err)
	}
	return nil
}

// Adopt implements interim.Store. One script copies the hash by the server's COPY.
func (s *Store) Adopt(ctx context.Context, a interim.Attempt) (from int64, err error) {
	if err := a.Validate(); err != nil {
		return 0, fmt.Errorf("adopt interim data: %w", err)
	}
	err = s.call(ctx, func(ctx context.Context) error {
		from, err = s.adopt.Run(ctx, s.client, []string{indexKey(a.ItemID)}, a.N).Int64()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("adopt interim data for %s: %w", a, err)
	}
	return from, nil
}

// Drop implements interim.Store, atomically; Redis frees the memory in the background.
func (s *Store) Drop(ctx context.Context, itemID string) error {
	if itemID == "" {
		return fmt.Errorf("drop interim data without an item: %w", interim.ErrInvalid)
	}
	err := s.call(ctx, func(ctx context.Context) error {
		err := s.drop.Run(ctx, s.client, []string{indexKey(itemID)}).Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("drop interim data of %s: %w", itemID, err)
	}
	return nil
}
