package staging

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// growStep is how much more than needed is reserved, so that not every buffer extends the
// reservation. If there is no room for that, a sixteenth is tried, and so on.
const growStep = 64 << 20

// GrowFunc extends an item's reservation to bytes in total, of which staged are already written.
// Its error, such as a *registry.NoSpaceError, ends the write that needed the room.
type GrowFunc func(ctx context.Context, bytes, staged int64) error

// Room keeps writers within a reservation: it extends the reservation before a byte beyond it is
// written (R24). All methods may be called concurrently.
type Room struct {
	grow GrowFunc

	mu      sync.Mutex
	granted int64
	used    int64
}

// NewRoom returns a room of granted bytes of which used are occupied.
func NewRoom(granted, used int64, grow GrowFunc) *Room {
	return &Room{grow: grow, granted: granted, used: used}
}

// Take counts n more bytes, which are about to be written or already exist. It extends the
// reservation if necessary.
func (r *Room) Take(ctx context.Context, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > r.granted {
		if err := r.extend(ctx, r.used+n); err != nil {
			return err
		}
	}
	r.used += n
	return nil
}

// extend reserves at least so many bytes, and some more while there is room.
func (r *Room) extend(ctx context.Context, least int64) error {
	for more := max(growStep, r.used/8); ; more /= 16 {
		if more < 1<<10 {
			more = 0
		}
		err := r.grow(ctx, least+more, r.used)
		if err == nil {
			r.granted = least + more
			return nil
		}
		if more == 0 || !errors.As(err, new(*registry.NoSpaceError)) {
			return err
		}
	}
}

// release subtracts n deleted bytes.
func (r *Room) release(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = max(0, r.used-n)
}

// Granted returns the number of reserved bytes.
func (r *Room) Granted() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.granted
}

// Within returns a store like s whose writers take room for every byte, and release it for deleted
// bytes.
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
	return s.within(ctx, w, 0), nil
}

// Resume implements storage.Store. The copied bytes need room of their own until the predecessor's
// are deleted.
func (s *roomed) Resume(ctx context.Context, key string, cp storage.Checkpoint) (storage.Writer, error) {
	if err := s.room.Take(ctx, cp.Size); err != nil {
		return nil, err
	}
	w, err := s.Store.Resume(ctx, key, cp)
	if err != nil {
		s.room.release(cp.Size)
		return nil, err
	}
	return s.within(ctx, w, cp.Size), nil
}

func (s *roomed) within(ctx context.Context, w storage.Writer, taken int64) *roomedWriter {
	return &roomedWriter{Writer: w, room: s.room, taken: taken, take: func(n int64) error { return s.room.Take(ctx, n) }}
}

// Delete implements storage.Store.
func (s *roomed) Delete(ctx context.Context, key string) error {
	info, err := s.Stat(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if err := s.Store.Delete(ctx, key); err != nil {
		return err
	}
	s.room.release(info.Size)
	return nil
}

type roomedWriter struct {
	storage.Writer
	room  *Room
	take  func(n int64) error
	taken int64
	done  bool // committed, or released
}

// Write implements io.Writer.
func (w *roomedWriter) Write(p []byte) (int, error) {
	if err := w.take(int64(len(p))); err != nil {
		return 0, err
	}
	w.taken += int64(len(p))
	return w.Writer.Write(p)
}

// Commit implements storage.Writer.
func (w *roomedWriter) Commit(ctx context.Context) (storage.Info, error) {
	info, err := w.Writer.Commit(ctx)
	w.done = w.done || err == nil
	return info, err
}

// Abort implements storage.Writer.
func (w *roomedWriter) Abort() error {
	if !w.done {
		w.done = true
		w.room.release(w.taken)
	}
	return w.Writer.Abort()
}
