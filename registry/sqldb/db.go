// Package sqldb is the SQL kernel of the Registry: grouped transactions, the two dialects,
// migrations, and helpers for writing statements and reading rows. It does not know what the tables
// mean.
//
// Write transactions are serial: SQLite has one writer, and PostgreSQL uses an advisory lock. So
// what a transaction reads stays true until it commits. Writes that arrive during a commit form the
// next group: they share one transaction and its fsync. If one of them fails, all run again with a
// savepoint each, so that a failure never affects the others (R10). Reads use their own pool and
// never block writers (R25). docs/design.md, "The two databases", gives the reasons.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast/holdfast/metrics"
)

// Tenant is the only tenant.
const Tenant = "default"

// Options configures [Open].
type Options struct {
	URL string           // sqlite:PATH (created if missing) or postgres://...
	Now func() time.Time // clock of all compared times (R15); nil: the database's (SQLite: this process's)
	Log *slog.Logger     // nil: discard
	// MakeSchema makes the schema in a PostgreSQL database that has no tables at all.
	MakeSchema bool
}

// DB is an open database with one writer and a pool of readers. Its methods may be called
// concurrently.
type DB struct {
	Dialect Dialect
	Read    Reader // for queries only
	Log     *slog.Logger

	db     *sql.DB // the writer's connections
	clock  clock
	state  TxState
	writes chan *Write
	closed chan struct{} // closed by Close: no new writes
	done   chan struct{} // closed when the writer has ended

	unwatch   func() // ends the metrics of the pools
	closeOnce sync.Once
	closeErr  error // result of the first Close

	// fault is set by tests. The writer calls it before every statement; its error becomes the
	// statement's.
	fault func(query string) error
}

// TxState is the state that a higher layer keeps beside the open transaction. The writer makes one
// call at a time.
type TxState interface {
	// Begin starts a transaction with fresh state.
	Begin(t *Tx)
	// Next starts the next write of the transaction, or several that run together.
	Next()
	// Part starts a part that may be undone alone. undo drops the state that was added since.
	Part() (undo func())
	// Flush writes pending rows just before the commit.
	Flush() error
	// Committed runs after the transaction has become durable.
	Committed()
}

// Open opens a database. It migrates a SQLite file, which only this process may use; package cmd
// ensures that. It does not migrate a PostgreSQL database that has tables: *[SchemaError] means that
// [Migrate] must run, or that this program is too old (R27). Writes are possible after Start.
func Open(ctx context.Context, o Options) (*DB, error) {
	dialect, err := dialectOf(o.URL)
	if err != nil {
		return nil, err
	}
	d := &DB{
		Dialect: dialect, Log: o.Log, clock: clock{fixed: o.Now},
		writes: make(chan *Write), closed: make(chan struct{}), done: make(chan struct{}),
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	d.Read.Dialect = dialect
	if d.db, d.Read.DB, err = dialect.open(); err != nil {
		return nil, err
	}
	stopWrite, stopRead := metrics.Pool(d.db, "write"), metrics.Pool(d.Read.DB, "read")
	d.unwatch = func() { stopWrite(); stopRead() }
	if dialect.Name() == SQLite {
		d.Read.prepared = newPrepared()
		_, _, err = migrate(ctx, dialect, d.db)
	} else {
		err = checkSchema(ctx, dialect, d.db)
		if o.MakeSchema && isEmpty(ctx, d.db, err) {
			d.Log.InfoContext(ctx, "the database is empty; making Holdfast's tables")
			_, _, err = migrate(ctx, dialect, d.db)
		}
	}
	if err != nil {
		d.unwatch()
		return nil, errors.Join(err, d.Read.Close(), d.db.Close())
	}
	return d, nil
}

// Start starts the writer. It must be called exactly once.
func (d *DB) Start(ctx context.Context, state TxState) {
	d.state = state
	go d.writer(context.WithoutCancel(ctx))
}

// Now returns the present time as far as this process knows it. A transaction has its own time.
func (d *DB) Now() time.Time { return d.clock.now() }

// Close ends the writer after the open transaction and closes the database. It may be called
// repeatedly and concurrently: every call returns after the database is closed, with the same
// error.
func (d *DB) Close() error {
	d.closeOnce.Do(func() {
		close(d.closed)
		if d.state == nil { // never started
			close(d.done)
		}
		<-d.done
		d.unwatch()
		d.closeErr = errors.Join(d.Read.Close(), d.db.Close())
	})
	return d.closeErr
}

// Closed returns a channel that is closed when Close is called.
func (d *DB) Closed() <-chan struct{} { return d.closed }

// Ping implements registry.ForWorkers.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.Read.PingContext(ctx); err != nil {
		return fmt.Errorf("ping registry: %w", err)
	}
	return nil
}

// Setting returns a named value of the database. The first call stores fresh; from then on all
// processes get that value.
func (d *DB) Setting(ctx context.Context, name, actor, fresh string) (value string, err error) {
	const find = `SELECT value FROM setting WHERE name = $1`
	err = d.db.QueryRowContext(ctx, find, name).Scan(&value)
	if !errors.Is(err, sql.ErrNoRows) {
		return value, err
	}
	if _, err := d.db.ExecContext(ctx, `INSERT INTO setting (name, value, reason, actor, at) VALUES ($1, $2, '', $3, 0) ON CONFLICT DO NOTHING`, name, fresh, actor); err != nil {
		return "", err
	}
	return value, d.db.QueryRowContext(ctx, find, name).Scan(&value)
}
