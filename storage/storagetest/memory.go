package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// Memory is a fast Store in memory, for tests of something else. It keeps the contract, except that
// nothing survives the process.
type Memory struct {
	mu      sync.Mutex
	objects map[string]object
	tokens  map[string]*memoryWriter
	serial  int
}

// object is a committed object.
type object struct {
	data []byte
	info storage.Info
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{objects: make(map[string]object), tokens: make(map[string]*memoryWriter)}
}

// check starts every method.
func (m *Memory) check(ctx context.Context, op, key string) error {
	if err := storage.CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %q: %w", op, key, err)
	}
	return nil
}

// put makes an object; the caller holds the lock.
func (m *Memory) put(key string, data []byte) storage.Info {
	m.serial++
	info := storage.Info{Key: key, Size: int64(len(data)), Modified: time.Now(), ETag: strconv.Itoa(m.serial)}
	m.objects[key] = object{data: data, info: info}
	return info
}

// Create implements storage.Store.
func (m *Memory) Create(ctx context.Context, key string) (storage.Writer, error) {
	return m.create(ctx, key, nil)
}

func (m *Memory) create(ctx context.Context, key string, data []byte) (storage.Writer, error) {
	if err := m.check(ctx, "create", key); err != nil {
		return nil, err
	}
	return &memoryWriter{store: m, key: key, data: data}, nil
}

// Resume implements storage.Store.
func (m *Memory) Resume(ctx context.Context, key string, cp storage.Checkpoint) (storage.Writer, error) {
	m.mu.Lock()
	w := m.tokens[cp.Token]
	var data []byte
	ok := w != nil && cp.Size >= 0 && cp.Size <= int64(w.durable)
	if ok {
		data = slices.Clone(w.data[:cp.Size])
	}
	m.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("resume %q: %w", key, storage.ErrNotFound)
	}
	return m.create(ctx, key, data)
}

// Discard implements storage.Store.
func (m *Memory) Discard(ctx context.Context, cp storage.Checkpoint) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("discard: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.tokens[cp.Token]; w != nil && !w.success {
		delete(m.tokens, cp.Token)
	}
	return nil
}

// Open implements storage.Store.
func (m *Memory) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := m.check(ctx, "open", key); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return nil, fmt.Errorf("open %q: %w", key, storage.ErrNotFound)
	}
	if offset < 0 || offset > o.info.Size {
		return nil, fmt.Errorf("open %q at %d of %d: %w", key, offset, o.info.Size, storage.ErrRange)
	}
	data := o.data[offset:]
	if length >= 0 && length < int64(len(data)) {
		data = data[:length]
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Stat implements storage.Store.
func (m *Memory) Stat(ctx context.Context, key string) (storage.Info, error) {
	if err := m.check(ctx, "stat", key); err != nil {
		return storage.Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return storage.Info{}, fmt.Errorf("stat %q: %w", key, storage.ErrNotFound)
	}
	return o.info, nil
}

// Thaw implements storage.Store. Objects in memory are always readable.
func (m *Memory) Thaw(ctx context.Context, key string, _ time.Duration) (bool, error) {
	_, err := m.Stat(ctx, key)
	return err == nil, err
}

// List implements storage.Store. It yields the objects that existed when it began.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		m.mu.Lock()
		var infos []storage.Info
		for _, key := range slices.Sorted(maps.Keys(m.objects)) {
			if strings.HasPrefix(key, prefix) {
				infos = append(infos, m.objects[key].info)
			}
		}
		m.mu.Unlock()
		for _, info := range infos {
			if err := ctx.Err(); err != nil {
				yield(storage.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Delete implements storage.Store.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := m.check(ctx, "delete", key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(key)
	delete(m.objects, key)
	return nil
}

// forget drops the checkpoints that led to the object key; the caller holds the lock.
func (m *Memory) forget(key string) {
	maps.DeleteFunc(m.tokens, func(_ string, w *memoryWriter) bool { return w.key == key && w.success })
}

// DeletePrefix implements storage.Store.
func (m *Memory) DeletePrefix(ctx context.Context, prefix string) error {
	if err := m.check(ctx, "delete folder", prefix); err != nil {
		return err
	}
	below := func(key string) bool { return key == prefix || strings.HasPrefix(key, prefix+"/") }
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.objects, func(key string, _ object) bool { return below(key) })
	maps.DeleteFunc(m.tokens, func(_ string, w *memoryWriter) bool { return below(w.key) })
	return nil
}

// DeleteUnfinished implements storage.Store.
func (m *Memory) DeleteUnfinished(ctx context.Context, prefix string) error {
	if err := m.check(ctx, "delete what is unfinished in", prefix); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.tokens, func(_ string, w *memoryWriter) bool {
		return !w.success && (w.key == prefix || strings.HasPrefix(w.key, prefix+"/"))
	})
	return nil
}

// Replace implements storage.Store.
func (m *Memory) Replace(ctx context.Context, key string, data []byte) error {
	if err := m.check(ctx, "replace", key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(key)
	m.put(key, slices.Clone(data))
	return nil
}

// Space implements storage.Store.
func (m *Memory) Space(context.Context) (storage.Space, error) {
	return storage.Space{}, storage.ErrUnlimited
}

// memoryWriter writes one object.
type memoryWriter struct {
	store   *Memory
	key     string
	data    []byte
	durable int
	token   string
	info    storage.Info
	done    bool
	success bool
}

// Write implements io.Writer.
func (w *memoryWriter) Write(p []byte) (int, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.done {
		return 0, fmt.Errorf("write %q: %w", w.key, storage.ErrClosed)
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

// Checkpoint implements storage.Writer.
func (w *memoryWriter) Checkpoint(ctx context.Context) (storage.Checkpoint, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.done {
		return storage.Checkpoint{}, fmt.Errorf("checkpoint %q: %w", w.key, storage.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return storage.Checkpoint{}, fmt.Errorf("checkpoint %q: %w", w.key, err)
	}
	w.durable = len(w.data)
	if w.token == "" {
		w.store.serial++
		w.token = "memory-" + strconv.Itoa(w.store.serial)
		w.store.tokens[w.token] = w
	}
	return storage.Checkpoint{Token: w.token, Size: int64(w.durable)}, nil
}

// Commit implements storage.Writer.
func (w *memoryWriter) Commit(ctx context.Context) (storage.Info, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	switch {
	case w.success:
		return w.info, nil
	case w.done:
		return storage.Info{}, fmt.Errorf("commit %q: %w", w.key, storage.ErrClosed)
	case ctx.Err() != nil:
		return storage.Info{}, fmt.Errorf("commit %q: %w", w.key, ctx.Err())
	}
	if _, ok := w.store.objects[w.key]; ok {
		return storage.Info{}, fmt.Errorf("commit %q: %w", w.key, storage.ErrExists)
	}
	w.info = w.store.put(w.key, w.data)
	w.success, w.done = true, true
	return w.info, nil
}

// Abort implements storage.Writer.
func (w *memoryWriter) Abort() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if !w.success {
		delete(w.store.tokens, w.token)
	}
	w.done = true
	return nil
}

// Close implements storage.Writer.
func (w *memoryWriter) Close() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.done = true
	return nil
}

var _ storage.Store = (*Memory)(nil)
