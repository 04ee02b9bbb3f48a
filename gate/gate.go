// Package gate decides which work runs when the memory and the processors of a process are for
// several people at once: judging uploads, unpacking containers.
//
// Work is small or large, by the bytes that it may have to read. Each class has slots of its own,
// so small work never waits for large work, and small work cannot starve large work. Within a
// class, slots go round the collections, and within a collection round the tokens, first come
// first served within a token. One token holds at most a part of a class's slots. Large work also
// counts the memory that it takes: it starts only when the sum stays within the budget.
//
// Workers' unpacking, which lasts for hours, is a class of its own, with a budget of its own: it
// never keeps a judgement waiting. Its slots are those of the workers; the gate counts the memory
// only.
package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
)

// Options size a Gate. Zero fields take the defaults that New names.
type Options struct {
	// Small is the greatest number of bytes that small work may have to read. Default 16 MiB.
	Small int64
	// SmallSlots and LargeSlots are how much work of a class runs at a time. Default 4 and 2.
	SmallSlots, LargeSlots int
	// PerToken is how many slots of a class one token may hold. Default: half of them, at least 1.
	PerToken func(slots int) int
	// Memory is the number of bytes that running large work may take in all. Default DefaultMemory.
	Memory int64
	// UnpackMemory is the number of bytes that running unpacking may take in all. Default
	// DefaultMemory.
	UnpackMemory int64
	// Waiting is how much work of one token may wait. Default 1,000.
	Waiting int
}

// DefaultMemory is enough to judge two containers that are decompressed with a window of 64 MiB
// each, and to unpack five.
const DefaultMemory = 320 << 20

// Work is what asks to run.
type Work struct {
	Collection string
	Token      string
	// Bytes is the greatest number of bytes that the work may have to read, unpacked ones included.
	Bytes int64
	// Memory is the greatest number of bytes that it holds. It counts for large work only.
	Memory int64
}

// ErrFull means that too much work of the token waits already. The caller must try again later.
var ErrFull = errors.New("too much work of this token waits already")

// Gate admits work. All methods may be called concurrently.
type Gate struct {
	options Options

	mu      sync.Mutex
	small   class
	large   class
	unpacks class
	waiting map[string]int // by token
}

// New returns a Gate through which nothing has gone yet.
func New(o Options) *Gate {
	set(&o.Small, 16<<20)
	set(&o.SmallSlots, 4)
	set(&o.LargeSlots, 2)
	set(&o.Memory, DefaultMemory)
	set(&o.UnpackMemory, DefaultMemory)
	set(&o.Waiting, 1000)
	if o.PerToken == nil {
		o.PerToken = func(slots int) int { return max(1, slots/2) }
	}
	return &Gate{
		options: o,
		small:   newClass(o.SmallSlots, o.PerToken(o.SmallSlots), 0),
		large:   newClass(o.LargeSlots, o.PerToken(o.LargeSlots), o.Memory),
		unpacks: newClass(math.MaxInt, math.MaxInt, o.UnpackMemory),
		waiting: map[string]int{},
	}
}

func set[N int | int64](field *N, to N) {
	if *field <= 0 {
		*field = to
	}
}

// Small is the greatest number of bytes that small work may have to read.
func (g *Gate) Small() int64 { return g.options.Small }

// Enter waits until the work may run. The caller must call leave when it is done; a second call of
// leave does nothing. Enter returns ErrFull, or the cause of ctx when that ends first.
//
// Work that takes more memory than the whole budget runs when no other large work does.
func (g *Gate) Enter(ctx context.Context, w Work) (leave func(), err error) {
	if w.Bytes <= g.options.Small {
		w.Memory = 0
		return g.enter(ctx, &g.small, w)
	}
	return g.enter(ctx, &g.large, w)
}

// Unpack is Enter for a worker's unpacking that holds w.Memory bytes. Its Bytes do not count.
func (g *Gate) Unpack(ctx context.Context, w Work) (leave func(), err error) {
	return g.enter(ctx, &g.unpacks, w)
}

func (g *Gate) enter(ctx context.Context, c *class, w Work) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("enter the gate: %w", context.Cause(ctx))
	}
	t, err := g.join(c, w)
	if err != nil {
		return nil, err
	}
	leave = sync.OnceFunc(func() { g.leave(c, t) })
	select {
	case <-t.admitted:
		return leave, nil
	case <-ctx.Done():
		if !g.giveUp(c, t) {
			leave() // it was admitted at the same moment
		}
		return nil, fmt.Errorf("wait at the gate: %w", context.Cause(ctx))
	}
}

// join takes a place among those that wait, which may be admitted at once.
func (g *Gate) join(c *class, w Work) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[w.Token] >= g.options.Waiting {
		return nil, ErrFull
	}
	w.Memory = min(max(w.Memory, 0), c.memory)
	t := &ticket{work: w, admitted: make(chan struct{})}
	g.waiting[w.Token]++
	c.join(t)
	g.dispatch(c)
	return t, nil
}

// giveUp takes a ticket off the queue; false when it was admitted.
func (g *Gate) giveUp(c *class, t *ticket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.running {
		return false
	}
	c.remove(t)
	g.gone(t)
	g.dispatch(c) // those behind it may fit
	return true
}

func (g *Gate) leave(c *class, t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.leave(t)
	g.dispatch(c)
}

// dispatch admits all that may run now.
func (g *Gate) dispatch(c *class) {
	for t := c.next(); t != nil; t = c.next() {
		g.gone(t)
		t.running = true
		close(t.admitted)
	}
}

// gone counts one less of its token that waits.
func (g *Gate) gone(t *ticket) {
	if g.waiting[t.work.Token]--; g.waiting[t.work.Token] == 0 {
		delete(g.waiting, t.work.Token)
	}
}
