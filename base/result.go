package base

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// Result reads a durable result of the item into out, which may be nil: one of an earlier stage or
// attempt, or one set since. ok is false when there is none. An error means that out does not fit
// what is there.
func (it *Item) Result(name string, out any) (ok bool, err error) {
	it.mu.Lock()
	value, ok := it.results[name]
	it.mu.Unlock()
	if !ok {
		return false, nil
	}
	return true, decodeResult(name, value, out)
}

// SetResult sets a durable result, in place of one of an earlier attempt or stage. It is seen by
// Result at once, and written with the settlement when the step is done or failed: otherwise the
// step runs again and sets it again. What must not be redone goes through [Item.Once], and a name
// used there is refused here.
func (it *Item) SetResult(name string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode result %s: %w", name, err)
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	if err := it.writable(); err != nil {
		return fmt.Errorf("set result %s: %w", name, err)
	}
	if _, once := it.once[name]; once {
		return fmt.Errorf("set result %s: it is made once and does not change", name)
	}
	if it.pending == nil {
		it.pending = map[string]json.RawMessage{}
	}
	it.results[name], it.pending[name] = value, value
	return nil
}

// Once makes a durable result that must not be made twice: fn runs only when the item has no result
// of that name, and what it returns stands in the Registry before Once returns. When another
// attempt was faster, its value holds. out, which may be nil, gets the value that holds. Concurrent
// calls for one name run fn one after the other, and only until one succeeds. An error of fn is
// returned as it is, and nothing is kept (I10, R8).
func (it *Item) Once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error {
	mine := it.turnOf(name)
	if err := mine.take(ctx); err != nil {
		return fmt.Errorf("wait for result %s: %w", name, err)
	}
	defer mine.give()
	if err := it.writable(); err != nil {
		return fmt.Errorf("make result %s: %w", name, err)
	}
	if ok, err := it.Result(name, out); ok || err != nil {
		return err
	}
	v, err := fn(ctx)
	if err != nil {
		return err
	}
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode result %s: %w", name, err)
	}
	holds, err := it.saveResult(ctx, name, value)
	if err != nil {
		return fmt.Errorf("save result %s: %w", name, err)
	}
	it.mu.Lock()
	it.results[name] = holds
	it.mu.Unlock()
	return decodeResult(name, holds, out)
}

// saveResult asks until there is an answer: the value may be there although the first answer was
// lost, and asking again is safe since the first writer wins.
func (it *Item) saveResult(ctx context.Context, name string, value json.RawMessage) (holds json.RawMessage, err error) {
	err = it.persist(ctx, it.stores.registryTrouble, func(ctx context.Context) (err error) {
		holds, err = it.stores.registry.SaveResult(ctx, it.lease, name, value)
		if errors.Is(err, errLost) {
			it.fence.lose()
		}
		return err
	})
	return holds, err
}

// turnOf returns the turn of a name: one caller a name at a time.
func (it *Item) turnOf(name string) turn {
	it.mu.Lock()
	defer it.mu.Unlock()
	t, ok := it.once[name]
	if !ok {
		t = newTurn()
		it.once[name] = t
	}
	return t
}

func decodeResult(name string, value json.RawMessage, out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(value, out); err != nil {
		return fmt.Errorf("decode result %s: %w", name, err)
	}
	return nil
}

// final tells that the Registry has answered, and would answer the same again. Any other error may
// be a lost connection.
func final(err error) bool {
	var refused *registry.NotClaimable
	var transition *registry.TransitionError
	return err == nil || errors.Is(err, errLost) || errors.Is(err, registry.ErrInvalid) || errors.Is(err, registry.ErrNotFound) ||
		errors.As(err, &refused) || errors.As(err, &transition)
}
