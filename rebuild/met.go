package rebuild

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// met is what was entered with earlier objects, and need not be entered again.
type met struct {
	collections sync.Map // of which an object was entered

	mu   sync.Mutex
	keys map[string]time.Time // by their IDs, and when they were first used
}

// enterKey enters a key that signed something, unless it is known from an earlier time. One without an ID is
// none.
func (m *met) enterKey(ctx context.Context, to registry.Rebuilding, k registry.ReceiptKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, known := m.keys[k.ID]; k.ID == "" || known && !k.FirstUsedAt.Before(at) {
		return nil
	}
	if err := to.EnterKeys(ctx, []registry.ReceiptKey{k}); err != nil {
		return err
	}
	if m.keys == nil {
		m.keys = map[string]time.Time{}
	}
	m.keys[k.ID] = k.FirstUsedAt
	return nil
}
