// Package sqlstore puts the Registry together: its subjects, each in a package of its own, over one
// SQL database, SQLite, embedded, or PostgreSQL, which several processes may share. It is the one
// place that knows all of them.
package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/registry/account"
	"github.com/holdfast/holdfast/registry/bulk"
	"github.com/holdfast/holdfast/registry/catalog"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/deposit"
	"github.com/holdfast/holdfast/registry/outbound"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/why"
	"github.com/holdfast/holdfast/registry/work"
)

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

// Store is the whole Registry. Every method is one transaction; docs/design.md says how they take
// turns.
type Store struct {
	*work.Engine
	*collection.Profiles
	*outbound.Outbound
	*account.Accounts
	*catalog.Catalog
	*deposit.Deposits
	*search.Search
	*bulk.Acts
	*why.Reasons

	db *sqldb.DB
}

// Open opens the database and starts the writer; Close ends it. A SQLite file is made when it is
// missing, and its schema is brought up to date: this process is the only one that uses it, which
// is cmd's care. A PostgreSQL database is used as it is: *[sqldb.SchemaError] says that
// [sqldb.Migrate] has to be run, or that this program is too old (R27).
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := sqldb.Open(ctx, sqldb.Options{URL: o.URL, Now: o.Now, Log: o.Log})
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	engine, err := work.New(ctx, db)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open registry: %w", err), db.Close())
	}
	s := &Store{db: db, Engine: engine}
	s.Profiles = collection.New(db, engine)
	s.Outbound = outbound.New(db, engine, o.Mail)
	s.Accounts = account.New(db, engine)
	s.Catalog = catalog.New(db, engine, o.ReceiptKey)
	s.Deposits = deposit.New(db, engine, s.Outbound)
	s.Search = search.New(db, engine, s.Outbound)
	s.Acts = bulk.New(db, engine, s.Search)
	s.Reasons = why.New(db, engine, s.Search)
	hooks := work.Hooks{OneByOne: collection.OneByOne}
	s.Accounts.Join(&hooks)
	s.Catalog.Join(&hooks)
	s.Outbound.Join(&hooks)
	s.Deposits.Join(&hooks)
	s.Acts.Join(&hooks)
	engine.Start(ctx, hooks)
	return s, nil
}

// Close ends the writer after the transaction under way and closes the database. It may be called
// again, also concurrently: every call returns when the store is closed, with the same error.
func (s *Store) Close() error { return s.db.Close() }

// Ping implements registry.ForWorkers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }
