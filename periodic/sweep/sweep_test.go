package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/periodic/sweep"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestI4_TakesItemsBack sweeps a store whose worker is gone.
func TestI4_TakesItemsBack(t *testing.T) {
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLite(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	r, err := s.Submit(t.Context(), registry.Submission{Collection: "c"})
	if err != nil {
		t.Fatal(err)
	}
	const lease = 40 * time.Millisecond
	_, err = s.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Worker: "gone", Lease: lease, MaxAttempts: 5})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 3 { // several processes
		running.Go(func() { sweep.New(s, lease, slog.New(slog.DiscardHandler)).Run(ctx) })
	}
	var it registry.WorkItem
	for it.Status != registry.Pending {
		if it, err = s.Item(t.Context(), r.BatchID); err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the item was not taken back")
		}
	}
	stop()
	running.Wait()
	if it.Tries != 1 || it.Attempt != 1 {
		t.Errorf("tries=%d attempt=%d, want one loss", it.Tries, it.Attempt)
	}
}

// fake answers Sweep as it is told.
type fake struct {
	registry.Sweeping
	mu    sync.Mutex
	looks int
	lost  []registry.Lease
	err   error
	lease time.Duration
}

func (f *fake) Sweep(_ context.Context, lease time.Duration) ([]registry.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	f.lease = lease
	lost := f.lost
	f.lost = nil
	return lost, f.err
}

func (f *fake) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// TestTroubleIsLoggedOnce checks that the begin and end of an outage are logged once, and every
// ended attempt once.
func TestTroubleIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := &fake{lost: []registry.Lease{{ItemID: "a", N: 2}, {ItemID: "b", N: 1}}}
		s := sweep.New(f, 8*time.Second, slog.New(slog.NewTextHandler(&out, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		synctest.Wait()
		f.set(errors.New("no database"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		f.set(nil)
		time.Sleep(5 * time.Second)
		stop()
		<-done
		if f.looks < 10 || f.looks > 12 || f.lease != 8*time.Second {
			t.Errorf("%d looks in ten seconds with lease %v, want one a second", f.looks, f.lease)
		}
		if got := strings.Count(out.String(), "\n"); got != 4 {
			t.Errorf("%d lines, want 4:\n%s", got, out.String())
		}
		for _, want := range []string{"item=a attempt=2", "item=b attempt=1", "no database", "swept again"} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("logged not once: %q in\n%s", want, out.String())
			}
		}
	})
}

// TestEndsWithItsContext checks that the sweeper ends without a log line, also when the store fails
// because of the context.
func TestEndsWithItsContext(t *testing.T) {
	var out bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	stop()
	sweep.New(&fake{err: context.Canceled}, time.Second, slog.New(slog.NewTextHandler(&out, nil))).Run(ctx)
	if out.Len() != 0 {
		t.Errorf("logged %s", out.String())
	}
}
