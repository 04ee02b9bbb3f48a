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
func (n *Node) openDatabase(ctx context.Context, address string) (*sqlstore.Store, error) {
	s, closeAll, err := OpenDatabase(ctx, address, n.Log)
	if err == nil {
		n.onClose(closeAll)
	}
	return s, err
}

// OpenDatabase opens the Registry's database. A SQLite file belongs to one process at a time: [ErrInUse] when another one
// has it. What is returned beside the store closes it and gives the file back.
func OpenDatabase(ctx context.Context, address string, log *slog.Logger) (*sqlstore.Store, func() error, error) {
	release := func() error { return nil }
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		lock, err := takeLock(path + ".lock")
		if err != nil {
			return nil, nil, fmt.Errorf("open registry %s: %w", path, err)
		}
		release = lock.Close
	}
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: address, Log: log, Now: registryClock()})
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return s, func() error { return errors.Join(s.Close(), release()) }, nil
}
