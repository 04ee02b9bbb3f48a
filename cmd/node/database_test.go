package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// TestOpenAlone: a Registry on PostgreSQL is not rebuilt or compared while a process serves it.
func TestOpenAlone(t *testing.T) {
	address := sqlstoretest.Postgres(t)
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	open := func(lease time.Duration) error {
		n := &Node{Common: Common{Log: slog.New(slog.DiscardHandler)}}
		_, err := n.openAlone(t.Context(), sqlstore.Options{URL: address}, lease)
		for _, close := range n.closers {
			err = errors.Join(err, close())
		}
		return err
	}
	if err := open(time.Hour); err != nil {
		t.Errorf("nobody ever served it: %v", err)
	}
	serving, stop := context.WithCancel(t.Context())
	var server sync.WaitGroup
	defer server.Wait()
	defer stop()
	first := make(chan struct{})
	server.Go(func() {
		for n := 0; serving.Err() == nil; n++ {
			if _, err := s.Sweep(t.Context(), time.Hour); err != nil {
				t.Error(err)
				return
			}
			if n == 0 {
				close(first)
			}
			time.Sleep(10 * time.Millisecond) // its pace
		}
	})
	<-first
	if err := open(time.Hour); !errors.Is(err, ErrServed) {
		t.Errorf("while it is served: %v, want %v", err, ErrServed)
	}
	stop()
	server.Wait()
	if err := open(20 * time.Millisecond); err != nil {
		t.Errorf("nobody serves it any more: %v", err)
	}
}
