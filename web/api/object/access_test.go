package object

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestAccesses: an access is noted once a day, also when many ask at once; a failure is tried again, and
// memory is bounded.
func TestAccesses(t *testing.T) {
	t.Parallel()
	var l accesses
	at := time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC)
	key := registry.Access{Kind: registry.EventFilesRead, ObjectID: "ark:/99999/fk4a", Version: 1}
	var notes atomic.Int32
	note := func(context.Context) error { notes.Add(1); return nil }
	failed := errors.New("the database is full")
	if err := l.once(t.Context(), at, key, func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a failure: %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := l.once(t.Context(), at, key, note); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if notes.Load() != 1 {
		t.Errorf("noted %d times, want once", notes.Load())
	}
	if err := l.once(t.Context(), at.Add(time.Second), key, note); err != nil || notes.Load() != 2 {
		t.Errorf("on the next day: noted %d times: %v", notes.Load(), err)
	}
	for n := range 2*accessesKept + 1 {
		other := key
		other.ObjectID = fmt.Sprint(n)
		if err := l.once(t.Context(), at, other, func(context.Context) error { return nil }); err != nil || len(l.noted) > accessesKept {
			t.Fatalf("%d are remembered: %v", len(l.noted), err)
		}
	}
}
