package upload

import (
	"context"
	"sync"
)

// inUse lets one request at a time decide about an upload.
type inUse struct {
	mu  sync.Mutex
	ids map[string]chan struct{} // closed when the one that has it is done
}

func newInUse() *inUse { return &inUse{ids: make(map[string]chan struct{})} }

// take waits until nobody else has the upload; done gives it back. It ends with ctx.
func (u *inUse) take(ctx context.Context, id string) (done func(), err error) {
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
