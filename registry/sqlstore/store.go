// Package sqlstore is the registry.Store in an SQL database: SQLite, embedded, with one process as its only writer.
//
// Every method is one transaction. Writes that arrive while another transaction commits are taken together into the
// next one, each in a savepoint of its own, so that they share one fsync and one fault never touches its neighbours
// (design section 4.7, R10). Reads use a pool of their own and never block writers (R25).
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/holdfast/holdfast/registry"
)

// Tenant is the only tenant of the embedded default.
const Tenant = "default"

// Options says what to open.
type Options struct {
	Path string           // the database file; it is made when it is missing
	Now  func() time.Time // the clock that all compared times come from (R15); nil: time.Now
	Log  *slog.Logger     // nil: discard
}

// Store implements registry.Store.
type Store struct {
	db     *sql.DB // one connection, the writer's
	read   *sql.DB // query only
	now    func() time.Time
	log    *slog.Logger
	writes chan *write
	closed chan struct{} // closed by Close: no new writes
	done   chan struct{} // closed when the writer has ended
	woken  chan struct{}
	news   bell // rung after each commit

	closeOnce sync.Once
	closeErr  error // of the first Close

	// fault, when a test sets it, is asked before every statement of the writer; its error is the statement's.
	fault func(query string) error
}

var _ registry.Store = (*Store)(nil)

// Open opens or makes the database, brings its schema up to date and starts the writer. Close ends it. That no second
// process opens the same file is cmd's care, which locks the folder.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{
		now: o.Now, log: o.Log,
		writes: make(chan *write), closed: make(chan struct{}), done: make(chan struct{}),
		woken: make(chan struct{}, 1),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.db, err = sql.Open("sqlite", dsn(o.Path, "_txlock=immediate")); err != nil {
		return nil, fmt.Errorf("open registry %s: %w", o.Path, err)
	}
	s.db.SetMaxOpenConns(1)
	if s.read, err = sql.Open("sqlite", dsn(o.Path, "_pragma=query_only(1)")); err != nil {
		return nil, errors.Join(fmt.Errorf("open registry %s: %w", o.Path, err), s.db.Close())
	}
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(4)
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open registry %s: %w", o.Path, err), s.read.Close(), s.db.Close())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	if err := migrate(ctx, s.db); err != nil {
		return err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	go s.writer(context.WithoutCancel(ctx), conn)
	return nil
}

// dsn makes the driver's address. synchronous=FULL: a commit survives power loss, which I2 needs. The journal of
// savepoints is of no use after a crash and stays in memory.
func dsn(path, extra string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)" +
		"&_pragma=temp_store(MEMORY)&" + extra
}

// Close ends the writer after the transaction under way and closes the database. It may be called again, also
// concurrently: every call returns when the store is closed, with the same error.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		<-s.done
		s.closeErr = errors.Join(s.read.Close(), s.db.Close())
	})
	return s.closeErr
}

// Ping implements registry.Reading.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.read.PingContext(ctx); err != nil {
		return fmt.Errorf("ping registry: %w", err)
	}
	return nil
}

// Woken implements registry.Housekeeping.
func (s *Store) Woken() <-chan struct{} { return s.woken }

func (s *Store) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // one is waiting already
	}
}
