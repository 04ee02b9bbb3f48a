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
