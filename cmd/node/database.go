package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry/sqlstore"
)

// openDatabase opens the Registry's database until the node is closed.
func (n *Node) openDatabase(ctx context.Context, o sqlstore.Options) (*sqlstore.Store, error) {
	o.Log = n.Log
	s, closeAll, err := openDatabase(ctx, o)
	if err == nil {
		n.onClose(closeAll)
	}
	return s, err
}

// OpenDatabase opens the Registry's database. A SQLite file serves one process at a time:
// [ErrInUse] if another one has it. The returned function closes the store and releases the file.
func OpenDatabase(ctx context.Context, address string, log *slog.Logger) (*sqlstore.Store, func() error, error) {
	return openDatabase(ctx, sqlstore.Options{URL: address, Log: log})
}

// ErrServed says that a Registry's process is at work on a database.
var ErrServed = errors.New("a process of this Registry is at work on its database: stop all of them first")

// openAlone opens a database that no process of a Registry serves: ErrServed if one does. A SQLite file has
// a lock. On PostgreSQL each process sweeps eight times a lease, so it waits until half a lease has passed
// since the last sweep, and refuses if another one comes. A process that starts later finds the Registry
// held, or its rebuild not done, or shares it with an adoption.
func (n *Node) openAlone(ctx context.Context, o sqlstore.Options, lease time.Duration) (*sqlstore.Store, error) {
	s, err := n.openDatabase(ctx, o)
	if err != nil || strings.HasPrefix(o.URL, "sqlite:") {
		return s, err
	}
	last, ago, err := s.LastSweep(ctx)
	if err != nil || last.IsZero() || ago > lease/2 {
		return s, err
	}
	tick := time.NewTicker(min(lease/16, time.Second))
	defer tick.Stop()
	for free := time.Now().Add(lease/2 - max(ago, 0)); time.Now().Before(free); {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
		if again, _, err := s.LastSweep(ctx); err != nil || !again.Equal(last) {
			return nil, cmp.Or(err, ErrServed)
		}
	}
	return s, nil
}

func openDatabase(ctx context.Context, o sqlstore.Options) (*sqlstore.Store, func() error, error) {
	release := func() error { return nil }
	if path, ok := strings.CutPrefix(o.URL, "sqlite:"); ok {
		lock, err := TakeLock(path + ".lock")
		if err != nil {
			return nil, nil, fmt.Errorf("open registry %s: %w", path, err)
		}
		release = lock.Close
		TightenDatabase(ctx, o.Log, o.URL)
	}
	o.Now = registryClock()
	s, err := sqlstore.Open(ctx, o)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return s, func() error { return errors.Join(s.Close(), release()) }, nil
}
