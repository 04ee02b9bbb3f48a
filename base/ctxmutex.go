package base

import "context"

// ctxMutex is a mutex whose lock can be awaited with a context.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// lock waits for the mutex. It takes a free one even if ctx has ended: a checkpoint may still be
// written then.
func (t ctxMutex) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t ctxMutex) unlock() { <-t }
