// Package gate admits work when several people share the memory and the processors of a process:
// judging uploads, unpacking containers.
//
// Work is small or large, by the bytes that it may have to read. Each class has slots of its own:
// small work never waits for large work, and cannot starve it. Within a class, slots rotate over
// the collections, within a collection over the tokens, and each token's work is first come, first
// served. One token has at most a part of a class's slots. Large work also has a memory budget, and
// starts only if the total stays within it.
//
// Workers' unpacking, which takes hours, is a class of its own with its own budget, so that it
// never delays a judgement. The workers limit its slots; the gate limits only its memory. The
// package does not know what the work is.
package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
)

// Options configure a Gate. Zero fields take the defaults.
type Options struct {
	// Small is the number of bytes up to which work is small. Default 16 MiB.
	Small int64
	// SmallSlots and LargeSlots are how much work of a class runs concurrently. Default 4 and 2.
	SmallSlots, LargeSlots int
	// PerToken returns how many of a class's slots one token may have. Default: half of them, at
	// least 1.
	PerToken func(slots int) int
	// Memory is the memory budget of large work, in bytes. Default DefaultMemory.
	Memory int64
	// UnpackMemory is the memory budget of unpacking, in bytes. Default DefaultMemory.
	UnpackMemory int64
	// Waiting is how much work of one token may wait. Default 1,000.
	Waiting int
}

// DefaultMemory is enough to judge two containers with a decompression window of 64 MiB each, and
// to unpack five.
const DefaultMemory = 320 << 20

// Work describes work to admit.
type Work struct {
	Collection string
	Token      string
	// Bytes is the most that the work may have to read, including unpacked bytes.
	Bytes int64
	// Memory is the most memory that it needs, in bytes. It counts only for large work.
	Memory int64
}

// ErrFull means that too much work of the token is already waiting. Try again later.
var ErrFull = errors.New("too much work of this token is already waiting")

// Gate admits work. All methods may be called concurrently.
type Gate struct {
	options Options

	mu      sync.Mutex
	small   class
	large   class
	unpacks class
	waiting map[string]int // by token
}

// New returns a Gate that has admitted nothing yet.
func New(o Options) *Gate {
	setDefault(&o.Small, 16<<20)
	setDefault(&o.SmallSlots, 4)
	setDefault(&o.LargeSlots, 2)
	setDefault(&o.Memory, DefaultMemory)
	setDefault(&o.UnpackMemory, DefaultMemory)
	setDefault(&o.Waiting, 1000)
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

func setDefault[N int | int64](field *N, to N) {
	if *field <= 0 {
		*field = to
	}
}

// Small returns the number of bytes up to which work is small.
func (g *Gate) Small() int64 { return g.options.Small }

// Enter waits until the work may run. The caller must call leave afterwards; a second call of leave
// does nothing. Enter returns ErrFull, or the cause of ctx if that ends first.
//
// Work that needs more memory than the whole budget runs when no other large work does.
func (g *Gate) Enter(ctx context.Context, w Work) (leave func(), err error) {
	if w.Bytes <= g.options.Small {
		w.Memory = 0
		return g.enter(ctx, &g.small, w)
	}
	return g.enter(ctx, &g.large, w)
}

// Unpack is Enter for a worker's unpacking with w.Memory bytes. It ignores w.Bytes.
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

// join adds waiting work, which may be admitted at once.
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

// giveUp removes a waiting ticket. It returns false if the ticket was already admitted.
func (g *Gate) giveUp(c *class, t *ticket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.running {
		return false
	}
	c.remove(t)
	g.countDown(t)
	g.dispatch(c) // the work behind it may fit
	return true
}

func (g *Gate) leave(c *class, t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.leave(t)
	g.dispatch(c)
}

// dispatch admits everything that may run now.
func (g *Gate) dispatch(c *class) {
	for t := c.next(); t != nil; t = c.next() {
		g.countDown(t)
		t.running = true
		close(t.admitted)
	}
}

// countDown subtracts one from the token's waiting work.
func (g *Gate) countDown(t *ticket) {
	if g.waiting[t.work.Token]--; g.waiting[t.work.Token] == 0 {
		delete(g.waiting, t.work.Token)
	}
}
