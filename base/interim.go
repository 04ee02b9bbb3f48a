package base

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
)

// adoption makes the interim data of the earlier attempt available to this one, once, at the first
// access.
type adoption struct {
	mu   ctxMutex
	done bool // guarded by mu
}

// Put stores v under a key of this attempt, replacing an earlier value. It is a checkpoint: what it
// describes must already be durable (R4). Put waits out an outage of the store and still works
// while the worker is stopping. It returns ErrClaimLost once the claim is gone. Interim data may be
// lost at any time; use [Item.Once] for what must not be repeated.
func Put[T any](ctx context.Context, item *Item, key string, v T) error {
	return PutAll(ctx, item, map[string]T{key: v})
}

// PutAll stores several entries atomically; see [Put].
func PutAll[T any](ctx context.Context, item *Item, entries map[string]T) error {
	values := make(map[string][]byte, len(entries))
	for key, v := range entries {
		value, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode interim entry %s: %w", key, err)
		}
		values[key] = item.notary.seal(key, value)
	}
	err := item.withInterim(ctx, func(ctx context.Context, s interim.Store, a interim.Attempt) error {
		return s.Put(ctx, a, values)
	})
	if err != nil {
		return fmt.Errorf("put %d interim entries: %w", len(entries), err)
	}
	return nil
}

// Get returns the value that this attempt, or the one before it, stored under a key. ok is false if
// there is no value, if no attempt of the item wrote it, or if it does not decode as a T: the step
// then repeats the work (R27).
func Get[T any](ctx context.Context, item *Item, key string) (v T, ok bool, err error) {
	var value []byte
	err = item.withInterim(ctx, func(ctx context.Context, s interim.Store, a interim.Attempt) (err error) {
		value, err = s.Get(ctx, a, key)
		return err
	})
	if errors.Is(err, interim.ErrNotFound) {
		return v, false, nil
	} else if err != nil {
		return v, false, fmt.Errorf("get interim entry %s: %w", key, err)
	}
	v, ok = decodeEntry[T](item, key, value)
	return v, ok, nil
}

// Each calls fn once for every entry whose key begins with prefix, in no particular order. It skips
// entries that do not decode as a T. An error of fn ends Each and is returned unchanged. Each waits
// out an outage of the store before the first entry. A later outage is an error, since fn has
// already seen entries.
func Each[T any](ctx context.Context, item *Item, prefix string, fn func(key string, v T) error) error {
	if err := item.adopt(ctx); err != nil {
		return fmt.Errorf("read interim entries %s: %w", prefix, err)
	}
	var stop, broken error
	begun := false
	err := item.callUntilAnswered(ctx, item.stores.interimTrouble, func(context.Context) error {
		// ctx itself, without the timeout of a call: a walk may take longer.
		err := item.stores.interim.Each(ctx, item.attempt(), prefix, func(key string, value []byte) error {
			begun = true
			if stop = item.writable(); stop != nil {
				return stop
			}
			if v, ok := decodeEntry[T](item, key, value); ok {
				stop = fn(key, v)
			}
			return stop
		})
		if begun {
			broken = err
			return nil
		}
		return err
	})
	if stop != nil {
		return stop
	}
	if err := errors.Join(err, broken); err != nil {
		return fmt.Errorf("read interim entries %s: %w", prefix, err)
	}
	return nil
}

func decodeEntry[T any](item *Item, key string, kept []byte) (v T, ok bool) {
	value, ok := item.notary.open(key, kept)
	if !ok {
		return v, false
	}
	if err := json.Unmarshal(value, &v); err != nil {
		var zero T
		return zero, false
	}
	return v, true
}

// attempt returns the key of the item's interim data (R26).
func (it *Item) attempt() interim.Attempt {
	return interim.Attempt{ItemID: it.lease.ItemID, N: it.lease.N}
}

// withInterim calls the interim store for this attempt, after adopting the data of the one before
// it.
func (it *Item) withInterim(ctx context.Context, fn func(context.Context, interim.Store, interim.Attempt) error) error {
	if err := it.adopt(ctx); err != nil {
		return err
	}
	return it.callUntilAnswered(ctx, it.stores.interimTrouble, func(ctx context.Context) error {
		return fn(ctx, it.stores.interim, it.attempt())
	})
}

func (it *Item) adopt(ctx context.Context) error {
	if err := it.adopted.mu.lock(ctx); err != nil {
		return err
	}
	defer it.adopted.mu.unlock()
	if it.adopted.done {
		return nil
	}
	if err := it.dropBeforeRecheck(ctx); err != nil {
		return err
	}
	err := it.callUntilAnswered(ctx, it.stores.interimTrouble, func(ctx context.Context) error {
		_, err := it.stores.interim.Adopt(ctx, it.attempt())
		return err
	})
	it.adopted.done = err == nil
	return err
}

// dropBeforeRecheck drops the interim data of earlier attempts, once for each time that an admin
// requeues the item to be checked again. A durable result records that it was done. A process
// killed between the two drops the data again: that costs an attempt its work, but never skips the
// check.
func (it *Item) dropBeforeRecheck(ctx context.Context) error {
	upTo, ok := it.result(registry.ResultRecheck)
	if !ok {
		return nil
	}
	forgotten := "forgotten-" + string(upTo)
	if _, ok := it.result(forgotten); ok {
		return nil
	}
	err := it.callUntilAnswered(ctx, it.stores.interimTrouble, func(ctx context.Context) error {
		return it.stores.interim.Drop(ctx, it.ID)
	})
	if err != nil {
		return fmt.Errorf("forget earlier interim data: %w", err)
	}
	return it.callUntilAnswered(ctx, it.stores.registryTrouble, func(ctx context.Context) error {
		_, err := it.stores.registry.SaveResult(ctx, it.lease, forgotten, json.RawMessage(`true`))
		return err
	})
}

func (it *Item) result(name string) (json.RawMessage, bool) {
	it.mu.Lock()
	defer it.mu.Unlock()
	value, ok := it.results[name]
	return value, ok
}
