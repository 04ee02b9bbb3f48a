package staging

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// growStep keeps reservations from being extended with every buffer. Where there is no room for
// that much, a sixteenth of it is asked for, and so on.
const growStep = 64 << 20

// GrowFunc reserves bytes in all for an item of which staged are written already. Its error, such
// as a *registry.NoSpaceError, ends the write that needed them.
type GrowFunc func(ctx context.Context, bytes, staged int64) error

// Room keeps writing within what was reserved: it asks for more before the first byte past it is
// written (R24). All methods may be called concurrently.
type Room struct {
	grow GrowFunc

	mu      sync.Mutex
	granted int64
	used    int64
}

// NewRoom returns a room of granted bytes of which used are taken.
func NewRoom(granted, used int64, grow GrowFunc) *Room {
	return &Room{grow: grow, granted: granted, used: used}
}

// Take accounts for n more bytes, which are about to be written or are there from before.
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

// extend has at least so many bytes granted, and some more while there is room.
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

// give accounts for n bytes that are gone.
func (r *Room) give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = max(0, r.used-n)
}

// Granted is the number of bytes reserved.
func (r *Room) Granted() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.granted
}

// Within returns a store like s whose writers take room for every byte, and give back what they
// throw away.
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

// Resume implements storage.Store: the bytes taken over need room of their own until the
// predecessor's are gone.
func (s *roomed) Resume(ctx context.Context, key string, cp storage.Checkpoint) (storage.Writer, error) {
	if err := s.room.Take(ctx, cp.Size); err != nil {
		return nil, err
	}
	w, err := s.Store.Resume(ctx, key, cp)
	if err != nil {
		s.room.give(cp.Size)
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
	s.room.give(info.Size)
	return nil
}

type roomedWriter struct {
	storage.Writer
	room  *Room
	take  func(n int64) error
	taken int64
	done  bool // committed, or given back
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
		w.room.give(w.taken)
	}
	return w.Writer.Abort()
}
