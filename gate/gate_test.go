package gate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/gate"
)

const mib = 1 << 20

// enter lets work in, in a goroutine, and notes its name when it runs. It holds its slot until done
// is closed.
func enter(t *testing.T, g *gate.Gate, name string, w gate.Work, note func(string), done <-chan struct{}) {
	t.Helper()
	enterBy(t, g.Enter, name, w, note, done)
}

type entrance func(context.Context, gate.Work) (leave func(), err error)

func enterBy(t *testing.T, by entrance, name string, w gate.Work, note func(string), done <-chan struct{}) {
	t.Helper()
	go func() {
		leave, err := by(context.Background(), w)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		note(name)
		<-done
		leave()
		leave() // a second call does nothing
	}()
	synctest.Wait()
}

type notes struct {
	mu    sync.Mutex
	names []string
}

func (n *notes) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names = append(n.names, name)
}

func (n *notes) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.names, want) {
		t.Errorf("ran %v, want %v", n.names, want)
	}
}

// wantAll is want for work that was admitted in one go, whose goroutines note it in any order.
func (n *notes) wantAll(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	n.mu.Lock()
	slices.Sort(n.names)
	n.mu.Unlock()
	slices.Sort(want)
	n.want(t, want...)
}

// Small work runs at once however much large work runs and waits. One token never has all slots.
func TestGate_SmallNeverWaitsForLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ran, end := gate.New(gate.Options{}), &notes{}, make(chan struct{})
		for i := range 20 {
			enter(t, g, fmt.Sprint("large ", i), gate.Work{Token: "greedy", Bytes: 1 << 40, Memory: 100 * mib}, ran.add, end)
		}
		ran.want(t, "large 0") // half of the two slots
		for i := range 20 {
			enter(t, g, fmt.Sprint("tiny ", i), gate.Work{Token: "greedy", Bytes: 11}, ran.add, end)
		}
		ran.want(t, "large 0", "tiny 0", "tiny 1")
		enter(t, g, "mine", gate.Work{Token: "other", Bytes: 11}, ran.add, end)
		ran.want(t, "large 0", "tiny 0", "tiny 1", "mine")
		enter(t, g, "my bag", gate.Work{Token: "other", Bytes: 1 << 40, Memory: 100 * mib}, ran.add, end)
		ran.want(t, "large 0", "tiny 0", "tiny 1", "mine", "my bag")
		close(end)
		synctest.Wait()
	})
}

// Slots rotate over the collections, and within each over its tokens, however much work one of them
// has.
func TestGate_GoesRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Options{LargeSlots: 1})
		ran, step := &notes{}, make(chan struct{})
		for _, who := range []string{"a/x", "a/x", "a/x", "a/y", "b/z", "b/z", "c/x"} {
			w := gate.Work{Collection: who[:1], Token: who[2:], Bytes: 1 << 40}
			enter(t, g, who, w, ran.add, step)
		}
		for range 7 {
			step <- struct{}{}
			synctest.Wait()
		}
		ran.want(t, "a/x", "a/x", "b/z", "c/x", "a/y", "b/z", "a/x")
	})
}

// Work that needs much memory waits for it, and later work does not pass it.
func TestGate_Memory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Options{LargeSlots: 4, Memory: 100 * mib, PerToken: func(int) int { return 4 }})
		ran, first, rest := &notes{}, make(chan struct{}), make(chan struct{})
		large := func(name string, memory int64, end <-chan struct{}) {
			t.Helper()
			enter(t, g, name, gate.Work{Token: name, Bytes: 1 << 40, Memory: memory}, ran.add, end)
		}
		large("60", 60*mib, first)
		large("50", 50*mib, rest)
		large("10", 10*mib, rest)
		ran.want(t, "60")
		close(first)
		ran.wantAll(t, "60", "50", "10")
		large("endless", 1<<50, rest) // alone, since it takes more than there is
		ran.wantAll(t, "60", "50", "10")
		close(rest)
		ran.wantAll(t, "60", "50", "10", "endless")
	})
}

// Only the memory of unpacking counts. Judgements never wait for it, and collections rotate.
func TestGate_Unpacking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Options{Memory: 100 * mib, UnpackMemory: 128 * mib})
		ran, step := &notes{}, make(chan struct{})
		for _, who := range []string{"a", "a", "a", "a", "b"} {
			enterBy(t, g.Unpack, who, gate.Work{Collection: who, Memory: 64 * mib}, ran.add, step)
		}
		ran.wantAll(t, "a", "a")
		judged := make(chan struct{})
		enter(t, g, "judged", gate.Work{Token: "x", Bytes: 1 << 40, Memory: 100 * mib}, ran.add, judged)
		ran.wantAll(t, "a", "a", "judged")
		close(judged)
		step <- struct{}{}
		step <- struct{}{}
		ran.wantAll(t, "a", "a", "a", "b", "judged")
		close(step)
		ran.wantAll(t, "a", "a", "a", "a", "b", "judged")
	})
}

// Work that gives up frees its place: the work behind it runs, and it no longer counts.
func TestGate_GiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Options{LargeSlots: 2, Memory: 100 * mib, Waiting: 1})
		ran, end := &notes{}, make(chan struct{})
		defer close(end)
		enter(t, g, "runs", gate.Work{Token: "a", Bytes: 1 << 40, Memory: 60 * mib}, ran.add, end)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gone := make(chan error)
		go func() {
			_, err := g.Enter(ctx, gate.Work{Token: "b", Bytes: 1 << 40, Memory: 90 * mib})
			gone <- err
		}()
		synctest.Wait()
		enter(t, g, "behind", gate.Work{Token: "c", Bytes: 1 << 40, Memory: 10 * mib}, ran.add, end)
		ran.want(t, "runs")
		if _, err := g.Enter(t.Context(), gate.Work{Token: "b", Bytes: 1 << 40}); !errors.Is(err, gate.ErrFull) {
			t.Errorf("a second that waits: %v, want ErrFull", err)
		}
		if err := <-gone; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the end of its context", err)
		}
		ran.want(t, "runs", "behind")
		if _, err := g.Enter(ctx, gate.Work{Token: "b"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that has ended: %v", err)
		}
	})
}

// model is what a Gate promises, kept in the simplest way.
type model struct {
	t       *rapid.T
	g       *gate.Gate
	o       gate.Options
	perTok  int
	running map[int]*one
	waiting map[int]*one
	count   int
	mu      sync.Mutex
}

type one struct {
	id     int
	work   gate.Work
	unpack bool
	cancel context.CancelFunc
	leave  func()
}

// class names what the work is counted with.
func (m *model) class(it *one) string {
	switch {
	case it.unpack:
		return "unpacking"
	case it.work.Bytes <= m.o.Small:
		return "small"
	}
	return "large"
}

// arrive adds work, and settles what the gate made of it.
func (m *model) arrive() {
	w := gate.Work{
		Collection: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.t, "collection"),
		Token:      rapid.SampledFrom([]string{"x", "y", "z"}).Draw(m.t, "token"),
		Bytes:      rapid.SampledFrom([]int64{11, m.o.Small, m.o.Small + 1, 1 << 40}).Draw(m.t, "bytes"),
		Memory:     rapid.Int64Range(0, 2*m.o.Memory).Draw(m.t, "memory"),
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.count++
	it := &one{id: m.count, work: w, cancel: cancel, unpack: rapid.IntRange(0, 2).Draw(m.t, "is unpacking") == 0}
	m.mu.Lock()
	m.waiting[it.id] = it
	m.mu.Unlock()
	go func() {
		enter := m.g.Enter
		if it.unpack {
			enter = m.g.Unpack
		}
		leave, err := enter(ctx, w)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiting, it.id)
		if err != nil {
			return
		}
		it.leave = leave
		m.running[it.id] = it
	}()
}

func pick(t *rapid.T, from map[int]*one) *one {
	ids := make([]int, 0, len(from))
	for id := range from {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return from[rapid.SampledFrom(ids).Draw(t, "which")]
}

// check compares the state with what was promised.
func (m *model) check() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range []struct {
		name          string
		slots, perTok int
		budget        int64
	}{
		{"small", m.o.SmallSlots, m.perTok, math.MaxInt64},
		{"large", m.o.LargeSlots, m.perTok, m.o.Memory},
		{"unpacking", math.MaxInt, math.MaxInt, m.o.UnpackMemory},
	} {
		running, memory, held := 0, int64(0), map[string]int{}
		for _, it := range m.running {
			if m.class(it) == c.name {
				running++
				held[it.work.Token]++
				memory += min(it.work.Memory, c.budget)
			}
		}
		if running > c.slots || memory > c.budget {
			m.t.Fatalf("%s: %d run with %d bytes, want at most %d slots and %d bytes", c.name, running, memory, c.slots, c.budget)
		}
		for token, n := range held {
			if n > c.perTok {
				m.t.Fatalf("token %s holds %d slots, want at most %d", token, n, c.perTok)
			}
		}
		for _, it := range m.waiting {
			if m.class(it) != c.name {
				continue
			}
			// Nothing idles that could run: with room for anybody's memory a slot is free only for
			// those at their cap.
			if running < c.slots && held[it.work.Token] < c.perTok && (c.name == "small" || memory == 0) {
				m.t.Fatalf("%+v waits although %d of %d slots are taken", it.work, running, c.slots)
			}
		}
	}
}

// In any order of arrivals, ends and give-ups: the limits hold, no usable slot idles, and all
// waiting work runs in the end.
func TestGate_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failed any // rapid must see it in its own goroutine
		synctest.Test(t, func(*testing.T) {
			m := &model{
				t: rt, running: map[int]*one{}, waiting: map[int]*one{},
				o: gate.Options{
					Small: 1000, SmallSlots: rapid.IntRange(1, 3).Draw(rt, "small slots"), LargeSlots: rapid.IntRange(1, 3).Draw(rt, "large slots"), Memory: 100, UnpackMemory: 150,
				},
				perTok: rapid.IntRange(1, 2).Draw(rt, "per token"),
			}
			m.o.PerToken = func(int) int { return m.perTok }
			m.g = gate.New(m.o)
			defer func() {
				failed = recover()
				m.end()
			}()
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				switch rapid.IntRange(0, 3).Draw(rt, "act") {
				case 0, 1:
					m.arrive()
				case 2:
					if it := pick(rt, m.running); it != nil {
						m.leave(it)
					}
				default:
					if it := pick(rt, m.waiting); it != nil {
						it.cancel()
					}
				}
				synctest.Wait()
				m.check()
			}
			for len(m.running) > 0 {
				m.leave(pick(rt, m.running))
				synctest.Wait()
				m.check()
			}
			if len(m.waiting) > 0 {
				rt.Fatalf("%d wait although nothing runs", len(m.waiting))
			}
		})
		if failed != nil {
			panic(failed)
		}
	})
}

// end lets all goroutines of the model end.
func (m *model) end() {
	for len(m.waiting)+len(m.running) > 0 {
		for _, it := range m.waiting {
			it.cancel()
		}
		for _, it := range m.running {
			m.leave(it)
		}
		synctest.Wait()
	}
}

func (m *model) leave(it *one) {
	m.mu.Lock()
	delete(m.running, it.id)
	m.mu.Unlock()
	it.leave()
	it.cancel()
}

// No starvation: three collections of three tokens each keep the gate full. Between two turns of a
// token, each other token is served at most once.
func TestGate_NobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Options{LargeSlots: 2, PerToken: func(int) int { return 1 }, Memory: 100})
		const each = 50
		ran := &notes{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		turns := make(chan func(), 1)
		for c := range 3 {
			for tok := range 3 {
				for range 2 { // each token has always two that wait or run
					go func() {
						for {
							w := gate.Work{Collection: fmt.Sprint(c), Token: fmt.Sprint(c, tok), Bytes: 1 << 40, Memory: int64(30 * (tok + 1))}
							leave, err := g.Enter(ctx, w)
							if err != nil {
								return
							}
							ran.add(w.Token)
							select {
							case turns <- leave:
							case <-ctx.Done():
								leave()
								return
							}
						}
					}()
				}
			}
		}
		for range 9 * each {
			synctest.Wait()
			(<-turns)()
		}
		cancel()
		synctest.Wait()
		count := map[string]int{}
		for _, token := range ran.names[:9*each] {
			count[token]++
		}
		for token, n := range count {
			if n < each-2 || n > each+2 || len(count) != 9 {
				t.Errorf("token %s had %d of %d turns, want the ninth part", token, n, 9*each)
			}
		}
	})
}
