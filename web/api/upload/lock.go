package upload

import (
	"context"
	"sync"
)

// locks holds a lock for each upload, so that one request at a time decides about it.
type locks struct {
	mu  sync.Mutex
	ids map[string]chan struct{} // closed when the holder is done
}

func newLocks() *locks { return &locks{ids: make(map[string]chan struct{})} }

// take locks an upload; done unlocks it. It waits until ctx ends.
func (u *locks) take(ctx context.Context, id string) (done func(), err error) {
	for {
		u.mu.Lock()
		other, taken := u.ids[id]
		if !taken {
			mine := make(chan struct{})
			u.ids[id] = mine
			u.mu.Unlock()
			return func() {
				u.mu.Lock()
				delete(u.ids, id)
				u.mu.Unlock()
				close(mine)
			}, nil
		}
		u.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
