package staging

import (
	"context"
	"sync"

	"github.com/holdfast/holdfast/storage"
)

// Room keeps writing within what was reserved: it asks for more before the first byte past it is written (R24).
type Room struct {
	// Grow reserves bytes in all for the item; its error, such as a *registry.NoSpaceError, ends the write.
	Grow func(ctx context.Context, bytes int64) error

	mu      sync.Mutex
	granted int64
	used    int64
}

// growStep keeps reservations from being extended with every buffer.
const growStep = 64 << 20

// NewRoom returns a room of granted bytes of which used are taken.
func NewRoom(granted, used int64, grow func(ctx context.Context, bytes int64) error) *Room {
	return &Room{Grow: grow, granted: granted, used: used}
}

// take accounts for n more bytes.
func (r *Room) take(ctx context.Context, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > r.granted {
		want := r.used + n + max(growStep, r.used/8)
		if err := r.Grow(ctx, want); err != nil {
			return err
		}
		r.granted = want
	}
	r.used += n
	return nil
}

// Used is the number of bytes taken.
func (r *Room) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// Within returns a store like s whose writers take room for every byte.
func (r *Room) Within(s storage.Store) storage.Store { return &roomed{Store: s, room: r} }

type roomed struct {
	storage.Store
	room *Room
}

// Create implements storage.Store.
func (s *roomed) Create(ctx context.Context, key string) (storage.Writer, error) {
	w, err := s.Store.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &roomedWriter{Writer: w, room: s.room, take: func(n int64) error { return s.room.take(ctx, n) }}, nil
}

// Resume implements storage.Store: the bytes taken over need room of their own until the predecessor's are gone.
func (s *roomed) Resume(ctx context.Context, key string, cp storage.Checkpoint) (storage.Writer, error) {
	if err := s.room.take(ctx, cp.Size); err != nil {
		return nil, err
	}
	w, err := s.Store.Resume(ctx, key, cp)
	if err != nil {
		return nil, err
	}
	return &roomedWriter{Writer: w, room: s.room, take: func(n int64) error { return s.room.take(ctx, n) }}, nil
}

type roomedWriter struct {
	storage.Writer
	room *Room
	take func(n int64) error
}

// Write implements io.Writer.
func (w *roomedWriter) Write(p []byte) (int, error) {
	if err := w.take(int64(len(p))); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
