package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/storage"
)

func testBatch(t *testing.T, s storage.Store) {
	ctx := t.Context()
	put(t, s, "taken", "first")
	put(t, s, "src", "copied")
	b := storage.NewBatch(s)
	defer b.Close()
	for key, text := range map[string]string{"a/b/c": "one", "a/b/d": "two", "taken": "second", "e": ""} {
		if err := storage.PutIn(ctx, b, key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Copy(ctx, "x/copy", s, "src"); err != nil {
		t.Fatal(err)
	}
	w, err := b.Create(ctx, "given/up")
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, "never ended")
	if _, err := w.Checkpoint(ctx); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a checkpoint in a batch: %v", err)
	}
	for _, key := range []string{"a/b/c", "a/b/d", "e", "x/copy"} {
		wantAbsent(t, s, key)
	}
	taken, err := b.Publish(ctx)
	if err != nil || !slices.Equal(taken, []string{"taken"}) {
		t.Fatalf("taken %q, %v", taken, err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	for key, text := range map[string]string{"a/b/c": "one", "a/b/d": "two", "taken": "first", "e": "", "x/copy": "copied", "src": "copied"} {
		wantContent(t, s, key, text)
	}
	wantAbsent(t, s, "given/up")

	// What another call has made counts as well.
	if err := b.Rely(ctx, "a/b/c"); err != nil {
		t.Fatal(err)
	}
	if err := storage.Rely(ctx, s, "src"); err != nil {
		t.Fatal(err)
	}

	// What it replaces keeps its old bytes until it is published, and needs not be there.
	for _, step := range []error{
		b.Replace(ctx, "e", []byte("new")), b.Replace(ctx, "fresh", []byte("first")), b.ReplaceFrom(ctx, "taken", "src"), b.ReplaceFrom(ctx, "z/z", "src"),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	wantContent(t, s, "e", "")
	wantAbsent(t, s, "fresh")
	if taken, err := b.Publish(ctx); err != nil || len(taken) > 0 {
		t.Fatalf("taken %q, %v", taken, err)
	}
	for key, text := range map[string]string{"e": "new", "fresh": "first", "taken": "copied", "z/z": "copied", "src": "copied"} {
		wantContent(t, s, key, text)
	}

	// Where a key is taken, nothing is replaced. What is replaced may come from the batch itself.
	for i, key := range []string{"e", "new"} {
		for _, step := range []error{
			storage.PutIn(ctx, b, key, []byte("made")), b.ReplaceFrom(ctx, "z/z", key), b.Replace(ctx, "fresh", []byte("second")),
		} {
			if step != nil {
				t.Fatal(step)
			}
		}
		if taken, err := b.Publish(ctx); err != nil || len(taken) != 1-i {
			t.Fatalf("create %s: taken %q, %v", key, taken, err)
		}
		wantContent(t, s, "z/z", []string{"copied", "made"}[i])
		wantContent(t, s, "fresh", []string{"first", "second"}[i])
	}

	// It is empty and can be used again; a copy of what is missing is an error, now or later.
	if taken, err := b.Publish(ctx); err != nil || len(taken) > 0 {
		t.Errorf("an empty batch: %q, %v", taken, err)
	}
	err = b.Copy(ctx, "y", s, "missing")
	if err == nil {
		_, err = b.Publish(ctx)
	}
	wantErr(t, "copy of a missing object", err, storage.ErrNotFound)
	wantAbsent(t, s, "y")
}

// testBatchGoesOn shows parts of a batch before the rest.
func testBatchGoesOn(t *testing.T, s storage.Store) {
	ctx := t.Context()
	put(t, s, "taken", "first")
	b := storage.NewBatch(s)
	defer b.Close()
	for part, keys := range [][]string{{"a/1", "b/1"}, {"a/2", "taken"}, {"c/d/3"}, nil} {
		for _, key := range keys {
			if err := storage.PutIn(ctx, b, key, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		publish := b.Show
		if part >= 2 {
			publish = b.Publish
		}
		taken, err := publish(ctx)
		if err != nil || slices.Contains(keys, "taken") != slices.Contains(taken, "taken") {
			t.Fatalf("part %d: taken %q, %v", part, taken, err)
		}
		for _, key := range keys {
			if key != "taken" {
				wantContent(t, s, key, key)
			}
		}
	}
	wantContent(t, s, "taken", "first")
	wantContent(t, s, "a/1", "a/1")
}

func testBatchDropped(t *testing.T, s storage.Store) {
	ctx := t.Context()
	b := storage.NewBatch(s)
	if err := storage.PutIn(ctx, b, "a/dropped", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if taken, err := b.Publish(ctx); err != nil || len(taken) > 0 {
		t.Errorf("after Close: %q, %v", taken, err)
	}
	wantAbsent(t, s, "a/dropped")
}

// testBatchesAtOnce lets many batches want the same keys and folders, while others remove the
// folders.
func testBatchesAtOnce(t *testing.T, s storage.Store) {
	ctx := t.Context()
	const batches, each = 8, 12
	var all sync.WaitGroup
	won := make([]int, batches)
	for i := range batches {
		all.Go(func() {
			b := storage.NewBatch(s)
			defer b.Close()
			text := fmt.Sprint("of ", i)
			for n := range each {
				if err := storage.PutIn(ctx, b, fmt.Sprintf("shared/%d/x", n), []byte(text)); err != nil {
					t.Error(err)
				}
			}
			if err := storage.PutIn(ctx, b, fmt.Sprintf("own/%d/x", i), []byte(text)); err != nil {
				t.Error(err)
			}
			taken, err := b.Publish(ctx)
			if err != nil {
				t.Error(err)
			}
			won[i] = each - len(taken)
			if err := s.DeletePrefix(ctx, fmt.Sprintf("own/%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	sum := 0
	for _, n := range won {
		sum += n
	}
	if sum != each {
		t.Errorf("%d keys were won %d times: %v", each, sum, won)
	}
	for n := range each {
		if _, err := s.Stat(ctx, fmt.Sprintf("shared/%d/x", n)); err != nil {
			t.Error(err)
		}
	}
}
