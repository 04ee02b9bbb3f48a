// Package sqldb is the SQL kernel of the Registry: transactions in groups, the two dialects,
// migrations, and what every subject needs to write statements and to read rows. It knows nothing
// of what the tables mean.
//
// Writing transactions take turns, on SQLite because there is one writer, on PostgreSQL by an
// advisory lock. So what a transaction reads stays true until it commits. Writes that arrive during
// a commit join the next transaction and share its fsync. If one of them fails, all run again with
// a savepoint each, so that a fault never touches its neighbours (R10). Reads use a pool of their
// own and never block writers (R25). docs/design.md, "The two databases", says why.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Tenant is the only tenant of the embedded default.
const Tenant = "default"

// Options says what to open.
type Options struct {
	URL string           // sqlite:PATH, whose file is made when it is missing, or postgres://...
	Now func() time.Time // the clock that all compared times come from (R15); nil: the database's (SQLite: this process's)
	Log *slog.Logger     // nil: discard
}

// DB is an open database: one writer, and a pool of readers.
type DB struct {
	Dialect Dialect
	Read    Reader // query only
	Log     *slog.Logger

	db     *sql.DB // the writer's
	clock  clock
	above  Above
	writes chan *Write
	closed chan struct{} // closed by Close: no new writes
	done   chan struct{} // closed when the writer has ended

	closeOnce sync.Once
	closeErr  error // of the first Close

	// fault, when a test sets it, is asked before every statement of the writer; its error is the
	// statement's.
	fault func(query string) error
}

// Above is what keeps facts of its own beside the transaction that is open. The writer calls it,
// one call at a time.
type Above interface {
	// Begin begins a transaction.
	Begin(t *Tx)
	// Next begins another write of the transaction, or several that are run together.
	Next()
	// Part begins what may be undone alone; undo forgets what was noted since.
	Part() (undo func())
	// Flush writes what was noted, just before the commit.
	Flush() error
	// Committed is told that the transaction is durable.
	Committed()
}

// Open opens a database, and brings the schema of a SQLite file up to date: this process is the
// only one that uses it, which is cmd's care. A PostgreSQL database is used as it is:
// *[SchemaError] says that [Migrate] has to be run, or that this program is too old (R27). Nothing
// is written before Start.
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
	if dialect.Name() == SQLite {
		_, _, err = migrate(ctx, dialect, d.db)
	} else {
		err = checkSchema(ctx, dialect, d.db)
	}
	if err != nil {
		return nil, errors.Join(err, d.Read.Close(), d.db.Close())
	}
	return d, nil
}

// Start starts the writer. It is called once.
func (d *DB) Start(ctx context.Context, above Above) {
	d.above = above
	go d.writer(context.WithoutCancel(ctx))
}

// Now is the present moment, as far as this process knows it; a transaction has its own.
func (d *DB) Now() time.Time { return d.clock.now() }

// Close ends the writer after the transaction under way and closes the database. It may be called
// again, also concurrently: every call returns when the database is closed, with the same error.
func (d *DB) Close() error {
	d.closeOnce.Do(func() {
		close(d.closed)
		if d.above == nil { // never started
			close(d.done)
		}
		<-d.done
		d.closeErr = errors.Join(d.Read.Close(), d.db.Close())
	})
	return d.closeErr
}

// Closed is closed when Close is called.
func (d *DB) Closed() <-chan struct{} { return d.closed }

// Ping implements registry.ForWorkers.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.Read.PingContext(ctx); err != nil {
		return fmt.Errorf("ping registry: %w", err)
	}
	return nil
}

// Setting returns a value that is drawn once for a database, by fresh, and is the same for all
// processes from then on.
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
