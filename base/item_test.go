package base_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
)

// runOne works on a fresh item with a real Registry and interim store.
func runOne(t *testing.T, work func(ctx context.Context, item *base.Item) error) registry.WorkItem {
	t.Helper()
	store := openRegistry(t)
	id := submit(t, store)
	if _, err := (&base.Runner{Registry: store, Interim: openInterim(t)}).RunOne(t.Context(), &worker{work: work}, id); err != nil {
		t.Error(err)
	}
	return itemOf(t, store, id)
}

func TestOnce_MintsOnceWhateverIsKilled(t *testing.T) {
	store := openRegistry(t)
	id := submit(t, store)
	minted := 0
	var seen []string
	w := &worker{work: func(ctx context.Context, it *base.Item) error {
		var ark string
		err := it.Once(ctx, "minted", &ark, func(context.Context) (any, error) {
			minted++
			return "ark:/99999/x1", nil
		})
		seen = append(seen, ark)
		return errors.Join(err, base.Snooze(0, registry.ReasonNotDue, "cut off after minting"))
	}}
	r := &base.Runner{Registry: store, Interim: openInterim(t)}
	for range 3 {
		_, _ = r.RunOne(t.Context(), w, id)
	}
	if minted != 1 || !slices.Equal(seen, []string{"ark:/99999/x1", "ark:/99999/x1", "ark:/99999/x1"}) {
		t.Errorf("minted %d times, seen %v", minted, seen)
	}
	if got := string(itemOf(t, store, id).Results["minted"]); got != `"ark:/99999/x1"` {
		t.Errorf("result ark = %s", got)
	}
}

func TestOnce_ConcurrentCallsRunOne(t *testing.T) {
	var runs atomic.Int32
	runOne(t, func(ctx context.Context, it *base.Item) error {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				var v int32
				if err := it.Once(ctx, "n", &v, func(context.Context) (any, error) { return runs.Add(1), nil }); err != nil || v != 1 {
					t.Errorf("Once: %d, %v; want 1", v, err)
				}
			})
		}
		all.Wait()
		return nil
	})
	if runs.Load() != 1 {
		t.Errorf("made %d times, want 1", runs.Load())
	}
}

func TestOnce_FirstWriterHolds(t *testing.T) {
	store := openRegistry(t)
	id := submit(t, store)
	w := &worker{work: func(ctx context.Context, it *base.Item) error {
		var v string
		err := it.Once(ctx, "name", &v, func(ctx context.Context) (any, error) {
			_, err := store.SaveResult(ctx, it.Lease(), "name", []byte(`"theirs"`)) // faster
			return "ours", err
		})
		if v != "theirs" {
			t.Errorf("got %q, want the value that holds", v)
		}
		return err
	}}
	if _, err := (&base.Runner{Registry: store, Interim: openInterim(t)}).RunOne(t.Context(), w, id); err != nil {
		t.Error(err)
	}
}

func TestOnce_ErrorKeepsNothing(t *testing.T) {
	boom := errors.New("boom")
	runOne(t, func(ctx context.Context, it *base.Item) error {
		if err := it.Once(ctx, "n", nil, func(context.Context) (any, error) { return nil, boom }); !errors.Is(err, boom) {
			t.Errorf("Once: %v, want %v", err, boom)
		}
		if ok, err := it.Result("n", nil); ok || err != nil {
			t.Errorf("Result: %v, %v; want none", ok, err)
		}
		return it.Once(ctx, "n", nil, func(context.Context) (any, error) { return 1, nil })
	})
}

func TestResult(t *testing.T) {
	got := runOne(t, func(ctx context.Context, it *base.Item) error {
		var v []int
		if ok, err := it.Result("list", &v); ok || err != nil {
			t.Errorf("Result of nothing: %v, %v", ok, err)
		}
		if err := it.SetResult("list", []int{1, 2}); err != nil {
			return err
		}
		if ok, err := it.Result("list", &v); !ok || err != nil || len(v) != 2 {
			t.Errorf("Result: %v, %v, %v", v, ok, err)
		}
		var wrong map[string]string
		if ok, err := it.Result("list", &wrong); !ok || err == nil {
			t.Errorf("Result into the wrong type: %v, %v; want an error", ok, err)
		}
		if err := it.SetResult("bad", func() {}); err == nil {
			t.Error("SetResult of a func: no error")
		}
		if err := it.Once(ctx, "minted", nil, func(context.Context) (any, error) { return "a", nil }); err != nil {
			return err
		}
		if err := it.SetResult("minted", "b"); err == nil {
			t.Error("SetResult of what was made once: no error")
		}
		return nil
	})
	if string(got.Results["list"]) != "[1,2]" || string(got.Results["minted"]) != `"a"` {
		t.Errorf("results %s", got.Results)
	}
}

func TestInterim_PutGetEach(t *testing.T) {
	type part struct{ N int }
	runOne(t, func(ctx context.Context, it *base.Item) error {
		if err := base.PutAll(ctx, it, map[string]part{"p/1": {1}, "p/2": {2}}); err != nil {
			return err
		}
		if err := base.Put(ctx, it, "p/3", "not a part"); err != nil {
			return err
		}
		if _, ok, err := base.Get[part](ctx, it, "p/3"); ok || err != nil {
			t.Errorf("an entry that cannot be read: %v, %v; want as if it were not there", ok, err)
		}
		if _, ok, err := base.Get[part](ctx, it, "p/4"); ok || err != nil {
			t.Errorf("no entry: %v, %v", ok, err)
		}
		got := map[string]int{}
		if err := base.Each(ctx, it, "p/", func(key string, p part) error { got[key] = p.N; return nil }); err != nil {
			return err
		}
		if !maps.Equal(got, map[string]int{"p/1": 1, "p/2": 2}) {
			t.Errorf("Each gave %v", got)
		}
		boom := errors.New("boom")
		if err := base.Each(ctx, it, "p/", func(string, part) error { return boom }); !errors.Is(err, boom) {
			t.Errorf("Each: %v, want its callback's error", err)
		}
		if err := base.Put(ctx, it, "", 1); !errors.Is(err, interim.ErrInvalid) {
			t.Errorf("Put without a key: %v, want ErrInvalid", err)
		}
		return nil
	})
}

func TestItem_RefusesAfterTheStep(t *testing.T) {
	var left *base.Item
	got := runOne(t, func(_ context.Context, it *base.Item) error { left = it; return nil })
	assertRefuses(t.Context(), t, left)
	if len(got.Results) != 0 {
		t.Errorf("results %s, want none", got.Results)
	}
}

// assertRefuses checks that an item refuses everything that would write.
func assertRefuses(ctx context.Context, t *testing.T, it *base.Item) {
	t.Helper()
	_, _, getErr := base.Get[int](ctx, it, "k")
	for name, err := range map[string]error{
		"Put":       base.Put(ctx, it, "k", 1),
		"Get":       getErr,
		"Each":      base.Each(ctx, it, "", func(string, int) error { return nil }),
		"SetResult": it.SetResult("r", 1),
		"Once": it.Once(ctx, "o", nil, func(context.Context) (any, error) {
			t.Error("Once ran its function")
			return 1, nil
		}),
		"Writable": it.Writable(ctx),
	} {
		if !errors.Is(err, registry.ErrClaimLost) {
			t.Errorf("%s: %v, want ErrClaimLost", name, err)
		}
	}
}
