package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Examination is what [Examine] found.
type Examination struct {
	Dialect string // SQLite or PostgreSQL
	Server  string // the version of the database
	Schema  int64  // the version of its schema; 0: none
	// SchemaErr is a *SchemaError if this program does not work on that version.
	SchemaErr error
	Source    string            // the name of the Registry that it is of; "": it has none yet
	Bytes     int64             // its size
	Now       time.Time         // its clock; zero on SQLite, which has this machine's
	Settings  map[string]string // those that decide whether commits last
}

// Examine reads the state of a database at an address, which another process may be using. It takes
// no lock and changes nothing. The error says why it cannot be read.
func Examine(ctx context.Context, address string) (e Examination, err error) {
	d, err := dialectOf(address)
	if err != nil {
		return e, err
	}
	db, err := OpenReader(address)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	e = Examination{Dialect: d.Name(), Settings: map[string]string{}}
	settings := map[string]string{"journal_mode": "PRAGMA journal_mode"}
	state := "SELECT sqlite_version(), 0, (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())"
	if e.Dialect == PostgreSQL {
		settings = map[string]string{}
		for _, name := range []string{"synchronous_commit", "fsync", "full_page_writes", "transaction_read_only"} {
			settings[name] = "SHOW " + name
		}
		state = "SELECT current_setting('server_version'), CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), pg_database_size(current_database())"
	}
	var now int64
	if err := db.QueryRowContext(ctx, state).Scan(&e.Server, &now, &e.Bytes); err != nil {
		return e, fmt.Errorf("read the state of the database: %w", err)
	}
	if now > 0 {
		e.Now = FromMicros(now)
	}
	for name, query := range settings {
		var value string
		if err := db.QueryRowContext(ctx, query).Scan(&value); err != nil {
			return e, fmt.Errorf("read the database's setting %s: %w", name, err)
		}
		e.Settings[name] = value
	}
	if err := e.readSchema(ctx, d, db); err != nil || e.Schema == 0 {
		return e, err
	}
	err = db.QueryRowContext(ctx, "SELECT value FROM setting WHERE name = 'source'").Scan(&e.Source)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return e, fmt.Errorf("read the name of the Registry: %w", err)
	}
	return e, nil
}

// OpenReader opens a database that another process may be using, for reading only. It takes no
// lock. The caller closes it.
func OpenReader(address string) (*sql.DB, error) {
	d, err := dialectOf(address)
	if err != nil {
		return nil, err
	}
	var db *sql.DB
	switch d := d.(type) {
	case sqlite:
		if _, err := os.Stat(d.path); err != nil {
			return nil, err // opening it would say less
		}
		if db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: d.path}).EscapedPath()+"?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)"); err != nil {
			return nil, err
		}
	case postgres:
		db = stdlib.OpenDB(*d.with(nil))
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// readSchema reads the version of the schema. goose would make its table if there is none.
func (e *Examination) readSchema(ctx context.Context, d Dialect, db *sql.DB) error {
	var have sql.NullInt64
	err := db.QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version").Scan(&have)
	var answered *pgconn.PgError
	missing := errors.As(err, &answered) && answered.Code == "42P01" || err != nil && strings.Contains(err.Error(), "no such table")
	if err != nil && !missing {
		return fmt.Errorf("read schema version: %w", err)
	}
	p, err := provider(d, db)
	if err != nil {
		return err
	}
	e.Schema = have.Int64
	switch {
	case e.Schema < newest(p):
		e.SchemaErr = &SchemaError{Have: e.Schema, Needs: newest(p)}
	case e.Schema > newest(p):
		err := stillServes(ctx, db, e.Schema, newest(p))
		if !errors.As(err, new(*SchemaError)) {
			return err
		}
		e.SchemaErr = err
	}
	return nil
}
