package base

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// Result decodes a durable result of the item into out, which may be nil. The result may be of an
// earlier stage or attempt, or set since. ok is false if there is none. An error means that the
// value does not fit out.
func (it *Item) Result(name string, out any) (ok bool, err error) {
	it.mu.Lock()
	value, ok := it.results[name]
	it.mu.Unlock()
	if !ok {
		return false, nil
	}
	return true, decodeResult(name, value, out)
}

// SetResult sets a durable result, replacing that of an earlier attempt or stage. Result returns it
// at once. The settlement of a completed or failed step writes it; in all other cases the step runs
// again and sets it again. Use [Item.Once] for what must not be repeated. SetResult refuses a name
// that Once was called with.
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

// Once makes a durable result that must not be made twice. It calls fn only if the item has no
// result of that name, and writes the value to the Registry before it returns. If another attempt
// was faster, that attempt's value holds. out, which may be nil, receives the value that holds.
// Concurrent calls for one name run fn one after the other, until one succeeds. An error of fn is
// returned unchanged, and nothing is written (I10, R8).
func (it *Item) Once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error {
	return it.OnceWith(ctx, name, out, func(ctx context.Context) (json.RawMessage, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode result %s: %w", name, err)
		}
		holds, err := it.saveResult(ctx, name, value)
		if err != nil {
			return nil, fmt.Errorf("save result %s: %w", name, err)
		}
		return holds, nil
	})
}

// OnceWith is Once for a result that fn itself writes to the Registry, together with other state.
// fn returns the value that holds.
func (it *Item) OnceWith(ctx context.Context, name string, out any, fn func(context.Context) (json.RawMessage, error)) error {
	mine := it.onceLock(name)
	if err := mine.lock(ctx); err != nil {
		return fmt.Errorf("wait for result %s: %w", name, err)
	}
	defer mine.unlock()
	if err := it.writable(); err != nil {
		return fmt.Errorf("make result %s: %w", name, err)
	}
	if ok, err := it.Result(name, out); ok || err != nil {
		return err
	}
	holds, err := fn(ctx)
	if err != nil {
		return err
	}
	it.mu.Lock()
	it.results[name] = holds
	it.mu.Unlock()
	return decodeResult(name, holds, out)
}

// State decodes into out what [Item.SetState] set last, in this attempt or an earlier one. ok is
// false if nothing was set.
func (it *Item) State(out any) (ok bool, err error) { return it.Result(registry.ResultState, out) }

// SetState replaces the state of the item, and writes it to the Registry before it returns. A later
// attempt reads it. Concurrent calls write one after the other.
func (it *Item) SetState(ctx context.Context, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	mine := it.onceLock(registry.ResultState)
	if err := mine.lock(ctx); err != nil {
		return fmt.Errorf("set the state: %w", err)
	}
	defer mine.unlock()
	if err := it.writable(); err != nil {
		return fmt.Errorf("set the state: %w", err)
	}
	err = it.callUntilAnswered(ctx, it.stores.registryTrouble, func(ctx context.Context) error {
		err := it.stores.registry.SetState(ctx, it.lease, value)
		if errors.Is(err, errLost) {
			it.fence.lose()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("set the state: %w", err)
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	it.results[registry.ResultState] = value
	return nil
}

// saveResult repeats the call until it is answered. The first call may have written the value and
// lost its answer; a repeat is safe, since the first writer wins.
func (it *Item) saveResult(ctx context.Context, name string, value json.RawMessage) (holds json.RawMessage, err error) {
	err = it.callUntilAnswered(ctx, it.stores.registryTrouble, func(ctx context.Context) (err error) {
		holds, err = it.stores.registry.SaveResult(ctx, it.lease, name, value)
		if errors.Is(err, errLost) {
			it.fence.lose()
		}
		return err
	})
	return holds, err
}

// onceLock returns the lock of a name, which admits one caller at a time.
func (it *Item) onceLock(name string) ctxMutex {
	it.mu.Lock()
	defer it.mu.Unlock()
	t, ok := it.once[name]
	if !ok {
		t = newCtxMutex()
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

// isFinal reports whether the Registry has answered, and would give the same answer again. Any
// other error may be a lost connection.
func isFinal(err error) bool {
	var refused *registry.NotClaimable
	var transition *registry.TransitionError
	return err == nil || errors.Is(err, errLost) || errors.Is(err, registry.ErrInvalid) || errors.Is(err, registry.ErrNotFound) ||
		errors.As(err, &refused) || errors.As(err, &transition)
}
