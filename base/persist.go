package base

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/interim"
)

// Waits between the tries of a call whose service does not answer.
const (
	againFirst = 100 * time.Millisecond
	againCap   = 5 * time.Second
)

// persist makes a call of the item until it is answered, and so waits out an outage instead of
// failing the item. It ends with the claim, when the step is cancelled (a stuck step is: an outage
// is no progress), and after one try when the worker is stopping. fn must be safe to repeat.
func (it *Item) persist(ctx context.Context, trouble *outage, fn func(context.Context) error) error {
	for wait := againFirst; ; wait = min(2*wait, againCap) {
		if err := it.writable(); err != nil {
			return err
		}
		err := it.try(ctx, fn)
		if settled(err) {
			trouble.answered(ctx)
			if lost := it.writable(); err == nil && lost != nil {
				return lost
			}
			return err
		}
		if ctx.Err() != nil { // the caller's own end, or its only try while stopping
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		trouble.fail(ctx, err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

func (it *Item) try(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := it.call(ctx)
	defer cancel()
	return fn(ctx)
}

// settled tells that a store has answered, so that asking again would not change the answer.
func settled(err error) bool {
	return final(err) || errors.Is(err, interim.ErrNotFound) || errors.Is(err, interim.ErrInvalid) || errors.Is(err, interim.ErrClosed)
}
