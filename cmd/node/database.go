package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

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
