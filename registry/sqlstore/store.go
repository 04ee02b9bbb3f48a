// Package sqlstore assembles the Registry from its subjects over one SQL database: embedded SQLite,
// or PostgreSQL, which several processes may share. It is the only package that knows all subjects.
package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/account"
	"github.com/holdfast/holdfast/registry/bulk"
	"github.com/holdfast/holdfast/registry/catalog"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/deposit"
	"github.com/holdfast/holdfast/registry/outbound"
	"github.com/holdfast/holdfast/registry/processes"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/schedules"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/storages"
	"github.com/holdfast/holdfast/registry/survey"
	"github.com/holdfast/holdfast/registry/tasks"
	"github.com/holdfast/holdfast/registry/throughput"
	"github.com/holdfast/holdfast/registry/why"
	"github.com/holdfast/holdfast/registry/work"
)

// Options configures [Open].
type Options struct {
	URL string           // sqlite:PATH (created if missing) or postgres://...
	Now func() time.Time // clock of all compared times (R15); nil: the database's (SQLite: this process's)
	Log *slog.Logger     // nil: discard
	// MakeSchema makes the schema in a PostgreSQL database that has no tables at all.
	MakeSchema bool
	// ReceiptKey signs the receipts of versions as they are recorded. Without it they get none.
	ReceiptKey *receipt.Key
	// Mail reports whether mails are delivered. Otherwise none are created.
	Mail bool
	// FixityEvery is the time after which stored files are checked again; 0: no schedule.
	FixityEvery time.Duration
}

// Store is the whole Registry. Every method is one transaction and may be called concurrently;
// docs/design.md says how transactions take turns.
type Store struct {
	*work.Engine
	*collection.Profiles
	*outbound.Outbound
	*account.Accounts
	*catalog.Catalog
	*storages.Manager
	*tasks.Tasks
	*schedules.Calendar
	*processes.Keeper
	*deposit.Deposits
	*search.Search
	*bulk.Acts
	*why.Reasons
	*throughput.Meter
	*survey.Survey

	db *sqldb.DB
}

// Open opens the database and starts the writer; Close ends it. It creates or migrates a SQLite
// file, which only this process may use; package cmd ensures that. It does not migrate a PostgreSQL
// database that has tables: *[sqldb.SchemaError] means that [sqldb.Migrate] must run, or that this
// program is too old (R27).
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := sqldb.Open(ctx, sqldb.Options{URL: o.URL, Now: o.Now, Log: o.Log, MakeSchema: o.MakeSchema})
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	engine, err := work.New(ctx, db)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open registry: %w", err), db.Close())
	}
	s := &Store{db: db, Engine: engine}
	s.Profiles = collection.New(db, engine, func(t *work.Tx, p registry.Profile) error {
		return errors.Join(tasks.FitsProfile(t, p), storages.Fits(t, p))
	})
	s.Outbound = outbound.New(db, engine, o.Mail)
	s.Accounts = account.New(db, engine)
	s.Catalog = catalog.New(db, engine, o.ReceiptKey)
	s.Manager = storages.New(db, engine, s.Catalog, s.Profiles)
	s.Tasks = tasks.New(db, engine)
	s.Calendar = schedules.New(db, engine)
	s.Keeper = processes.New(db, engine)
	s.Deposits = deposit.New(db, engine, s.Outbound)
	s.Search = search.New(db, engine, s.Outbound, o.FixityEvery)
	s.Acts = bulk.New(db, engine, s.Search)
	s.Reasons = why.New(db, engine, s.Search)
	s.Meter = throughput.New(db, engine)
	s.Survey = survey.New(db, o.ReceiptKey)
	hooks := work.Hooks{OneByOne: collection.OneByOne}
	s.Accounts.Join(&hooks)
	s.Catalog.Join(&hooks)
	s.Outbound.Join(&hooks)
	s.Deposits.Join(&hooks)
	s.Acts.Join(&hooks)
	s.Keeper.Join(&hooks)
	engine.Start(ctx, hooks)
	return s, nil
}

// Close ends the writer after the open transaction and closes the database. It may be called
// repeatedly and concurrently: every call returns after the store is closed, with the same error.
func (s *Store) Close() error { return s.db.Close() }

// Ping implements registry.ForWorkers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }
