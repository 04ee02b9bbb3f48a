package base

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
)

// adoption makes the earlier attempt's interim data this one's own, once, when it is first asked
// for.
type adoption struct {
	turn turn
	done bool // guarded by turn
}

// Put keeps what the step has done so far under a key of this attempt, in place of what was there.
// It is a checkpoint: what it describes must be on disk already (R4). It waits out an outage of the
// store, is still written while the worker is stopping, and returns ErrClaimLost once the claim is
// gone. Interim data may be lost at any time; what must not be redone goes through [Item.Once].
func Put[T any](ctx context.Context, item *Item, key string, v T) error {
	return PutAll(ctx, item, map[string]T{key: v})
}

// PutAll keeps several entries in one atomic step; see [Put].
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

// Get returns what this attempt, or the one before it, kept under a key. ok is false when there is
// nothing, when what is there was not kept there by an attempt of the item, and when it cannot be
// read as a T: the work is done again (R27).
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

// Each calls fn for every entry whose key begins with prefix, each once, in no particular order;
// entries that cannot be read as a T are left out. An error of fn ends it and is returned as it is.
// An outage of the store is waited out before the first entry; later it is an error, since fn has
// counted what it saw.
func Each[T any](ctx context.Context, item *Item, prefix string, fn func(key string, v T) error) error {
	if err := item.adopt(ctx); err != nil {
		return fmt.Errorf("read interim entries %s: %w", prefix, err)
	}
	var stop, broken error
	begun := false
	err := item.persist(ctx, item.stores.interimTrouble, func(context.Context) error {
		// ctx itself, for a walk takes as long as it takes.
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

// attempt is the key of all the item's interim data (R26).
func (it *Item) attempt() interim.Attempt {
	return interim.Attempt{ItemID: it.lease.ItemID, N: it.lease.N}
}

// withInterim makes a call to the interim store for this attempt, after adopting what the one
// before it left.
func (it *Item) withInterim(ctx context.Context, fn func(context.Context, interim.Store, interim.Attempt) error) error {
	if err := it.adopt(ctx); err != nil {
		return err
	}
	return it.persist(ctx, it.stores.interimTrouble, func(ctx context.Context) error {
		return fn(ctx, it.stores.interim, it.attempt())
	})
}

func (it *Item) adopt(ctx context.Context) error {
	if err := it.adopted.turn.take(ctx); err != nil {
		return err
	}
	defer it.adopted.turn.give()
	if it.adopted.done {
		return nil
	}
	if err := it.recheck(ctx); err != nil {
		return err
	}
	err := it.persist(ctx, it.stores.interimTrouble, func(ctx context.Context) error {
		_, err := it.stores.interim.Adopt(ctx, it.attempt())
		return err
	})
	it.adopted.done = err == nil
	return err
}

// recheck forgets what earlier attempts noted, once for each time that an admin sends the item back
// to be checked again. That it was done is a durable result: whoever is killed in between costs
// another attempt the work, never the check.
func (it *Item) recheck(ctx context.Context) error {
	upTo, ok := it.result(registry.ResultRecheck)
	if !ok {
		return nil
	}
	forgotten := "forgotten-" + string(upTo)
	if _, ok := it.result(forgotten); ok {
		return nil
	}
	err := it.persist(ctx, it.stores.interimTrouble, func(ctx context.Context) error {
		return it.stores.interim.Drop(ctx, it.ID)
	})
	if err != nil {
		return fmt.Errorf("forget earlier interim data: %w", err)
	}
	return it.persist(ctx, it.stores.registryTrouble, func(ctx context.Context) error {
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
