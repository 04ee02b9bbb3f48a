package pace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// TestPace: all checks of a process together keep to the rate, and read the right bytes.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perSecond, size = 100_000, 400_000
		pace := NewLimiter(perSecond)
		content := bytes.Repeat([]byte("holdfast"), size/8)
		begun := time.Now()
		var reading sync.WaitGroup
		for range 2 {
			reading.Go(func() {
				got, err := io.ReadAll(&reader{t.Context(), bytes.NewReader(content), pace, func(int64) {}})
				if err != nil || !bytes.Equal(got, content) {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			})
		}
		reading.Wait()
		// The first second's bytes need not be waited for.
		if took, want := time.Since(begun), (2*size-perSecond)*time.Second/perSecond; took < want || took > want+time.Second {
			t.Errorf("%d bytes took %v, want %v", 2*size, took, want)
		}
	})
}

// TestPaceEnds: a cancelled check does not wait for the limiter.
func TestPaceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		pace := rate.NewLimiter(1, 1)
		go func() {
			time.Sleep(10 * time.Second)
			cancel()
		}()
		begun := time.Now()
		n, err := io.Copy(io.Discard, &reader{ctx, bytes.NewReader(make([]byte, 1000)), pace, func(int64) {}})
		if !errors.Is(err, context.Canceled) || n > 12 || time.Since(begun) > 11*time.Second {
			t.Errorf("read %d bytes in %v, %v; want it to end when it is stopped", n, time.Since(begun), err)
		}
	})
}

// TestStore: what is read from a store keeps to the rate, also when another store copies it: that must not
// recognise the source and copy around the limit. Without a limit it is the same store.
func TestStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perSecond, size = 100_000, 500_000
		content := bytes.Repeat([]byte("holdfast"), size/8)
		kept := storagetest.NewMemory()
		w, err := kept.Create(t.Context(), "a")
		if err == nil {
			_, err = w.Write(content)
		}
		if err == nil {
			_, err = w.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if s := Store(kept, NewLimiter(0)); s != storage.Store(kept) {
			t.Error("a store without a limit is another one")
		}
		paced := Store(kept, NewLimiter(perSecond))
		for _, part := range []struct{ offset, length int64 }{{0, size}, {size / 2, size / 2}} {
			begun := time.Now()
			in, err := paced.Open(t.Context(), "a", part.offset, part.length)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(in)
			if err != nil || !bytes.Equal(got, content[part.offset:part.offset+part.length]) || in.Close() != nil {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			if took, least := time.Since(begun), time.Duration(part.length-perSecond)*time.Second/perSecond; took < least {
				t.Errorf("%d bytes took %v, want at least %v", part.length, took, least)
			}
		}
		begun := time.Now()
		if info, err := storage.Copy(t.Context(), storagetest.NewMemory(), "b", paced, "a"); err != nil || info.Size != size {
			t.Errorf("copied %+v, %v", info, err)
		}
		if took := time.Since(begun); took < (size-perSecond)*time.Second/perSecond {
			t.Errorf("the copy took %v", took)
		}
		if _, ok := paced.(storage.Copier); ok {
			t.Error("a paced store copies by itself")
		}
		if _, err := paced.Open(t.Context(), "none", 0, 1); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("what is not there: %v", err)
		}
	})
}
