// Package sqlstore is the registry.Store in an SQL database: SQLite, embedded, or PostgreSQL, which
// several processes may share.
//
// Every method is one transaction. Writing transactions take turns, on SQLite because there is one
// writer, on PostgreSQL by an advisory lock. So what a transaction reads stays true until it
// commits. Writes that arrive during a commit join the next transaction and share its fsync. If one
// of them fails, all run again with a savepoint each, so that a fault never touches its neighbours
// (R10). Reads use a pool of their own and never block writers (R25). docs/design.md, "The two
// databases", says why.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast/holdfast/receipt"
	"github.com/holdfast/holdfast/registry"
)

// Tenant is the only tenant of the embedded default.
const Tenant = "default"

// Options says what to open.
type Options struct {
	URL string           // sqlite:PATH, whose file is made when it is missing, or postgres://...
	Now func() time.Time // the clock that all compared times come from (R15); nil: the database's (SQLite: this process's)
	Log *slog.Logger     // nil: discard
	// ReceiptKey signs the receipts of versions as they are recorded. nil: they get none.
	ReceiptKey *receipt.Key
	// Mail: somebody delivers mails. Otherwise none are made.
	Mail bool
}

// Store implements registry.Store.
type Store struct {
	dialect dialect
	db      *sql.DB // the writer's
	read    reader  // query only
	clock   dbClock
	log     *slog.Logger
	writes  chan *write
	closed  chan struct{} // closed by Close: no new writes
	done    chan struct{} // closed when the writer has ended
	woken   chan struct{}

	receiptKey *receipt.Key // nil: no receipts are signed
	mails      bool         // mails are made
	notes      []byte       // that items' note keys are made of

	news  bell // an event was written
	taken bell // an admin took attempts away

	closeOnce sync.Once
	closeErr  error // of the first Close

	// fault, when a test sets it, is asked before every statement of the writer; its error is the statement's.
	fault func(query string) error
}

var _ registry.Store = (*Store)(nil)

// Open opens the database and starts the writer; Close ends it. A SQLite file is made when it is missing, and its schema is
// brought up to date: this process is the only one that uses it, which is cmd's care. A PostgreSQL database is
// used as it is: *[SchemaError] says that [Migrate] has to be run, or that this program is too old (R27).
func Open(ctx context.Context, o Options) (*Store, error) {
	d, err := dialectOf(o.URL)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	s := &Store{
		dialect: d, clock: dbClock{fixed: o.Now}, log: o.Log,
		writes: make(chan *write), closed: make(chan struct{}), done: make(chan struct{}),
		woken: make(chan struct{}, 1), receiptKey: o.ReceiptKey, mails: o.Mail,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.read.dialect = d
	if s.db, s.read.DB, err = d.open(); err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open registry: %w", err), s.read.Close(), s.db.Close())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	if s.dialect.name() == (sqlite{}).name() {
		if _, _, err := migrate(ctx, s.dialect, s.db); err != nil {
			return err
		}
	} else if err := checkSchema(ctx, s.dialect, s.db); err != nil {
		return err
	}
	if err := s.loadNoteKey(ctx); err != nil {
		return err
	}
	go s.writer(context.WithoutCancel(ctx))
	return nil
}

func (s *Store) now() time.Time { return s.clock.now() }

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
