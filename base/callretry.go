package base

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/interim"
)

// Waits between the tries of a call that was not answered.
const (
	retryFirst = 100 * time.Millisecond
	retryCap   = 5 * time.Second
)

// callUntilAnswered repeats a call of the item until it is answered, so that an outage does not
// fail the item. It ends when the claim or the step ends, and after one try while the worker is
// stopping. An outage is no progress: a step that waits too long is cancelled as stuck. fn must be
// safe to repeat.
func (it *Item) callUntilAnswered(ctx context.Context, trouble *outage, fn func(context.Context) error) error {
	for wait := retryFirst; ; wait = min(2*wait, retryCap) {
		if err := it.writable(); err != nil {
			return err
		}
		err := it.callOnce(ctx, fn)
		if isStoreFinal(err) {
			trouble.answered(ctx)
			if lost := it.writable(); err == nil && lost != nil {
				return lost
			}
			return err
		}
		if ctx.Err() != nil { // the caller's context ended, or this was the only try while stopping
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

func (it *Item) callOnce(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := it.callContext(ctx)
	defer cancel()
	return fn(ctx)
}

// isStoreFinal reports whether a store has answered, so that a repeat would give the same answer.
func isStoreFinal(err error) bool {
	return isFinal(err) || errors.Is(err, interim.ErrNotFound) || errors.Is(err, interim.ErrInvalid) || errors.Is(err, interim.ErrClosed)
}
