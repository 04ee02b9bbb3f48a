package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// Op names an operation of a Store, a Writer or a reader, for Faulty.
type Op string

// The operations. Any stands for each of them.
const (
	Any              Op = ""
	Create           Op = "create"
	Resume           Op = "resume"
	Discard          Op = "discard"
	Write            Op = "write"
	Checkpoint       Op = "checkpoint"
	Commit           Op = "commit"
	Open             Op = "open"
	Read             Op = "read"
	Thaw             Op = "thaw"
	Stat             Op = "stat"
	List             Op = "list"
	Delete           Op = "delete"
	DeletePrefix     Op = "delete-prefix"
	DeleteUnfinished Op = "delete-unfinished"
	Replace          Op = "replace"
	Space            Op = "space"
	Copy             Op = "copy"
)

// Errors of Faulty.
var (
	// ErrInjected is returned by a failing operation if no other error was given.
	ErrInjected = errors.New("storagetest: injected fault")
	// ErrDead is returned by every operation once the store has died.
	ErrDead = errors.New("storagetest: process is dead")
)

// Faulty is a Store that passes everything on to an inner store, until it is told to fail. It may
// be used concurrently; operations are counted in the order of their start.
type Faulty struct {
	inner storage.Store

	mu     sync.Mutex
	counts map[Op]int
	rules  []*rule
	dead   bool
	quota  int64 // bytes that may still be written; negative for no limit
	flips  map[string]int64
	cuts   map[string]int64

	frozen map[string]bool // archived objects by key; true: a thaw was requested

	spoilAt   int  // reads until the spoilt one; 0 for none
	spoilFlip bool // by a flipped bit instead of an early end
}

// rule is a fault that waits for its operation.
type rule struct {
	op    Op
	left  int // operations of this name until it applies
	err   error
	after bool // the operation takes effect, but its answer is lost
	die   bool // nothing works afterwards
}

// NewFaulty returns a Store that passes everything on to inner.
func NewFaulty(inner storage.Store) *Faulty {
	return &Faulty{
		inner: inner, counts: make(map[Op]int), quota: -1,
		flips: make(map[string]int64), cuts: make(map[string]int64), frozen: make(map[string]bool),
	}
}

// Fail makes the nth operation op from now on (1 is the next) do nothing and return err, or
// ErrInjected for nil.
func (f *Faulty) Fail(op Op, n int, err error) { f.add(&rule{op: op, left: n, err: err}) }

// FailAfter makes the nth operation op from now on take effect and still return err, as if the
// answer of a server were lost.
func (f *Faulty) FailAfter(op Op, n int, err error) {
	f.add(&rule{op: op, left: n, err: err, after: true})
}

// DieAt makes the nth operation of any kind, and all later ones, do nothing and return ErrDead: the
// process was killed before it.
func (f *Faulty) DieAt(n int) { f.add(&rule{left: n, err: ErrDead, die: true}) }

// DieAfter lets the nth operation of any kind take effect. It and all later ones return ErrDead.
func (f *Faulty) DieAfter(n int) { f.add(&rule{left: n, err: ErrDead, die: true, after: true}) }

// Quota allows n more bytes to be written; more fails with storage.ErrNoSpace. A negative n removes
// the limit.
func (f *Faulty) Quota(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quota = n
}

// Flip changes one bit of the byte at offset whenever the object key is read.
func (f *Faulty) Flip(key string, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flips[key] = offset
}

// Truncate ends every read of the object key at offset, without an error.
func (f *Faulty) Truncate(key string, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts[key] = offset
}

// Archive archives the object key: Open refuses it until it is thawed.
func (f *Faulty) Archive(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen[key] = false
}

// Thawed completes the requested thaws. It returns their number, and how many objects are still
// archived.
func (f *Faulty) Thawed() (thawed, left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, asked := range f.frozen {
		if asked {
			delete(f.frozen, key)
			thawed++
		}
	}
	return thawed, len(f.frozen)
}

// CutAt ends the nth read from now on, of any object, early and without an error.
func (f *Faulty) CutAt(n int) { f.spoil(n, false) }

// FlipAt changes one bit of the first byte of the nth read from now on, of any object.
func (f *Faulty) FlipAt(n int) { f.spoil(n, true) }

func (f *Faulty) spoil(n int, flip bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoilAt, f.spoilFlip = n, flip
}

// Heal removes every fault.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules, f.dead, f.quota, f.spoilAt = nil, false, -1, 0
	clear(f.flips)
	clear(f.cuts)
}

// Count returns how often op was called, including failures.
func (f *Faulty) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

func (f *Faulty) add(r *rule) {
	if r.err == nil {
		r.err = ErrInjected
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
}

// do counts op on key and runs it according to the rules.
func (f *Faulty) do(op Op, key string, run func() error) error {
	before, after := f.strike(op)
	if before != nil {
		return fmt.Errorf("%s %q: %w", op, key, before)
	}
	if err := run(); err != nil {
		return err
	}
	if after != nil {
		return fmt.Errorf("%s %q: %w", op, key, after)
	}
	return nil
}

// strike counts op and returns the error to fail with, before or after it takes effect.
func (f *Faulty) strike(op Op) (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[Any]++
	f.counts[op]++
	if f.dead {
		return ErrDead, nil
	}
	for _, r := range f.rules {
		if r.left <= 0 || r.op != Any && r.op != op {
			continue
		}
		r.left--
		if r.left > 0 {
			continue
		}
		f.dead = f.dead || r.die
		if r.after {
			after = r.err
		} else {
			before = r.err
		}
	}
	return before, after
}

// take uses up to n bytes of the quota and returns how many.
func (f *Faulty) take(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quota < 0 {
		return n
	}
	n = min(n, f.quota)
	f.quota -= n
	return n
}

// spoils reports whether reads of key are flipped or cut.
func (f *Faulty) spoils(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, flipped := f.flips[key]
	_, cut := f.cuts[key]
	return flipped || cut
}

// Create implements storage.Store.
func (f *Faulty) Create(ctx context.Context, key string) (w storage.Writer, err error) {
	err = f.do(Create, key, func() error { w, err = f.inner.Create(ctx, key); return err })
	return f.wrapWriter(key, w, err)
}

// Resume implements storage.Store.
func (f *Faulty) Resume(ctx context.Context, key string, cp storage.Checkpoint) (w storage.Writer, err error) {
	err = f.do(Resume, key, func() error { w, err = f.inner.Resume(ctx, key, cp); return err })
	return f.wrapWriter(key, w, err)
}

// Discard implements storage.Store.
func (f *Faulty) Discard(ctx context.Context, cp storage.Checkpoint) error {
	return f.do(Discard, cp.Token, func() error { return f.inner.Discard(ctx, cp) })
}

func (f *Faulty) wrapWriter(key string, w storage.Writer, err error) (storage.Writer, error) {
	if err != nil {
		if w != nil {
			_ = w.Close()
		}
		return nil, err
	}
	return &faultyWriter{store: f, key: key, inner: w}, nil
}

// Open implements storage.Store.
func (f *Faulty) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	var r io.ReadCloser
	err := f.do(Open, key, func() (err error) {
		if f.archived(key) {
			return fmt.Errorf("open %q: %w", key, storage.ErrArchived)
		}
		r, err = f.inner.Open(ctx, key, offset, length)
		return err
	})
	if err != nil {
		if r != nil {
			_ = r.Close()
		}
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fr := &faultyReader{store: f, key: key, inner: r, at: offset, flip: -1, cut: -1}
	if at, ok := f.flips[key]; ok {
		fr.flip = at
	}
	if at, ok := f.cuts[key]; ok {
		fr.cut = at
	}
	if f.spoilAt > 0 {
		if f.spoilAt--; f.spoilAt == 0 && f.spoilFlip {
			fr.flip = offset
		} else if f.spoilAt == 0 {
			fr.half = true
		}
	}
	return fr, nil
}

func (f *Faulty) archived(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.frozen[key]
	return ok
}

// Thaw implements storage.Store.
func (f *Faulty) Thaw(ctx context.Context, key string, keep time.Duration) (readable bool, err error) {
	err = f.do(Thaw, key, func() error {
		if !f.archived(key) {
			readable, err = f.inner.Thaw(ctx, key, keep)
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.frozen[key] = f.frozen[key] || keep > 0
		return nil
	})
	return readable, err
}

// Stat implements storage.Store.
func (f *Faulty) Stat(ctx context.Context, key string) (info storage.Info, err error) {
	err = f.do(Stat, key, func() error { info, err = f.inner.Stat(ctx, key); return err })
	return info, err
}

// List implements storage.Store.
func (f *Faulty) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := f.do(List, prefix, func() error { return nil }); err != nil {
			yield(storage.Info{}, err)
			return
		}
		f.inner.List(ctx, prefix)(yield)
	}
}

// Delete implements storage.Store.
func (f *Faulty) Delete(ctx context.Context, key string) error {
	return f.do(Delete, key, func() error { return f.inner.Delete(ctx, key) })
}

// DeletePrefix implements storage.Store.
func (f *Faulty) DeletePrefix(ctx context.Context, prefix string) error {
	return f.do(DeletePrefix, prefix, func() error { return f.inner.DeletePrefix(ctx, prefix) })
}

// DeleteUnfinished implements storage.Store.
func (f *Faulty) DeleteUnfinished(ctx context.Context, prefix string) error {
	return f.do(DeleteUnfinished, prefix, func() error { return f.inner.DeleteUnfinished(ctx, prefix) })
}

// Replace implements storage.Store.
func (f *Faulty) Replace(ctx context.Context, key string, data []byte) error {
	return f.do(Replace, key, func() error {
		if f.take(int64(len(data))) < int64(len(data)) {
			return fmt.Errorf("replace %q: %w", key, storage.ErrNoSpace)
		}
		return f.inner.Replace(ctx, key, data)
	})
}

// ReplaceFrom implements storage.Replacer; it counts as Replace.
func (f *Faulty) ReplaceFrom(ctx context.Context, key, srcKey string) error {
	return f.do(Replace, key, func() error {
		from, err := f.inner.Stat(ctx, srcKey)
		if err != nil {
			return err
		}
		if f.take(from.Size) < from.Size {
			return fmt.Errorf("replace %q: %w", key, storage.ErrNoSpace)
		}
		return storage.ReplaceFrom(ctx, f.inner, key, srcKey)
	})
}

// Space implements storage.Store.
func (f *Faulty) Space(ctx context.Context) (space storage.Space, err error) {
	err = f.do(Space, "", func() error { space, err = f.inner.Space(ctx); return err })
	return space, err
}

// CopyFrom implements storage.Copier as one operation. It replaces a Faulty source by its inner
// store. If that source spoils reads of srcKey, copying is not supported, and the bytes are read
// and written.
func (f *Faulty) CopyFrom(ctx context.Context, dstKey string, src storage.Store, srcKey string) (info storage.Info, err error) {
	if from, ok := src.(*Faulty); ok {
		if from.spoils(srcKey) {
			return info, fmt.Errorf("copy %q: %w", dstKey, errors.ErrUnsupported)
		}
		src = from.inner
	}
	err = f.do(Copy, dstKey, func() error {
		from, err := src.Stat(ctx, srcKey)
		if err != nil {
			return err
		}
		if f.take(from.Size) < from.Size {
			return fmt.Errorf("copy %q: %w", dstKey, storage.ErrNoSpace)
		}
		info, err = storage.Copy(ctx, f.inner, dstKey, src, srcKey)
		return err
	})
	return info, err
}

// Links implements storage.Linker.
func (f *Faulty) Links() bool {
	l, ok := f.inner.(storage.Linker)
	return ok && l.Links()
}

var (
	_ storage.Store    = (*Faulty)(nil)
	_ storage.Copier   = (*Faulty)(nil)
	_ storage.Replacer = (*Faulty)(nil)
)
