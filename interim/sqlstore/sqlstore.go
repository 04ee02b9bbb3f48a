// Package sqlstore keeps interim data in an SQLite file, for Holdfast in one process.
//
// The file may lose recent data, as interim data may. A power cut rolls it back to an earlier
// commit. A damaged file is renamed and replaced by a new one. The file is separate from the
// Registry's, so that writes here never delay a lease renewal there (R25).
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/holdfast/holdfast/interim"
)

var _ interim.Store = (*Store)(nil)

// Store is an interim.Store in an SQLite file. It has one writing connection, so that writers queue
// here and not at SQLite's file lock, and a pool of read-only connections that never wait for it.
type Store struct {
	path  string
	log   *slog.Logger
	write *sql.DB
	read  *sql.DB

	prepared map[string]*sql.Stmt // by text; DB.Close closes them

	// mu is read-locked around every statement and locked by Close. Close thus waits for running
	// calls, and later calls fail with interim.ErrClosed. It is never held while a caller's code
	// runs.
	mu     sync.RWMutex
	closed bool
}

// Open opens the interim file at path and creates it if it is absent; its folder must exist. Only
// one process may have it open.
//
// If the file is damaged, or another version of Holdfast wrote it in another format, Open renames
// it to PATH.damaged, starts a new one and logs a warning: the cost is rework (R27). A file that is
// not Holdfast's stays unchanged; Open returns a [ForeignError].
func Open(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	if err := checkOurs(path); err != nil {
		return nil, err
	}
	s, err := open(ctx, path, log)
	if !replaceable(err) {
		return s, err
	}
	if asideErr := setAside(path); asideErr != nil {
		return nil, errors.Join(err, asideErr)
	}
	log.WarnContext(ctx, "interim file was unusable; started a new one", "path", path, "kept_as", path+asideSuffix, "err", err)
	return open(ctx, path, log)
}

func open(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	s := &Store{path: path, log: log}
	if err := s.connect(ctx); err != nil {
		// The error of opening matters, not that of closing.
		_ = s.Close()
		return nil, fmt.Errorf("open interim file %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context) (err error) {
	if s.write, err = sql.Open("sqlite", writeDSN(s.path)); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if err := migrate(ctx, s.write); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", readDSN(s.path)); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(max(4, runtime.NumCPU()))
	s.prepared = map[string]*sql.Stmt{}
	for db, texts := range map[*sql.DB][]string{
		s.write: {attemptSQL, putSQL, adoptedSQL, predecessorSQL, dropSQL, droppedSQL, sweepSQL, forgetSQL},
		s.read:  {anySQL, findSQL, getSQL},
	} {
		for _, text := range texts {
			if s.prepared[text], err = db.PrepareContext(ctx, text); err != nil { //nolint:sqlclosecheck // DB.Close closes it
				return err
			}
		}
	}
	return nil
}

// Close implements interim.Store. It waits for running statements.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	// The writer closes last: the last connection to close merges the log into the file.
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close interim file %s: %w", s.path, err)
	}
	return nil
}

// reading runs f with the read-only pool, unless the store is closed.
func (s *Store) reading(ctx context.Context, f func(db *sql.DB) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return interim.ErrClosed
	}
	return s.explain(ctx, f(s.read))
}

// readRow runs a prepared query, and scans its row into dest.
func (s *Store) readRow(ctx context.Context, text string, args []any, dest any) error {
	return s.reading(ctx, func(*sql.DB) error { return s.prepared[text].QueryRowContext(ctx, args...).Scan(dest) })
}

// row runs a prepared query in a transaction.
func (s *Store) row(ctx context.Context, tx *sql.Tx, text string, args ...any) *sql.Row {
	return tx.StmtContext(ctx, s.prepared[text]).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // the end of tx closes it
}

// exec runs a prepared statement in a transaction.
func (s *Store) exec(ctx context.Context, tx *sql.Tx, text string, args ...any) (sql.Result, error) {
	return tx.StmtContext(ctx, s.prepared[text]).ExecContext(ctx, args...) //nolint:sqlclosecheck // the end of tx closes it
}

// writing runs f in a write transaction, unless the store is closed, and commits if f returns nil.
func (s *Store) writing(ctx context.Context, f func(tx *sql.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return interim.ErrClosed
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.explain(ctx, err)
	}
	if err := f(tx); err != nil {
		// The rollback's error adds nothing: the transaction is gone either way.
		_ = tx.Rollback()
		return s.explain(ctx, err)
	}
	return s.explain(ctx, tx.Commit())
}

// explain replaces SQLite's "interrupted" by the context's error, and tells how to repair a damaged
// file.
func (s *Store) explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if hasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) {
		return &DamagedError{Path: s.path, Err: err}
	}
	return err
}

// DamagedError says that SQLite found damage in the interim file of a running store.
type DamagedError struct {
	Path string
	Err  error // SQLite's own
}

// Error names the file and the remedy.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("interim file %s is damaged (%v): stop holdfast, delete the file and start again; only rework is lost", e.Path, e.Err)
}

// Unwrap returns SQLite's error.
func (e *DamagedError) Unwrap() error { return e.Err }

// hasCode reports whether err is an SQLite error with one of the primary result codes.
func hasCode(err error, codes ...int) bool {
	var sqliteErr *sqlite.Error
	if !errors.As(err, &sqliteErr) {
		return false
	}
	for _, code := range codes {
		// The low byte is the primary code, also of an extended one.
		if sqliteErr.Code()&0xff == code {
			return true
		}
	}
	return false
}
