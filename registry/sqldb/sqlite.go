package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqlite is an embedded database: one process owns its file, and one connection writes.
type sqlite struct{ path string }

func (d sqlite) Name() string { return SQLite }

func (d sqlite) PayloadOwner() string { return `json_extract(w.spec, '$.profile.owner')` }

func (d sqlite) open() (write, read *sql.DB, err error) {
	// In a large database the pages of a claim lie far apart: there has to be room for those of
	// some dozen collections, and a checkpoint writes each once, however often it has changed since
	// the last one.
	if write, err = sql.Open("sqlite", d.dsn("_txlock=immediate&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(4000)")); err != nil {
		return nil, nil, err
	}
	write.SetMaxOpenConns(1)
	if read, err = sql.Open("sqlite", d.dsn("_pragma=query_only(1)")); err != nil {
		return nil, nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(4)
	return write, read, nil
}

// dsn makes the driver's address. synchronous=FULL: a commit survives power loss, which I2 needs.
// The journal of savepoints is of no use after a crash and stays in memory.
func (d sqlite) dsn(extra string) string {
	return "file:" + (&url.URL{Path: d.path}).EscapedPath() +
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)" +
		"&_pragma=temp_store(MEMORY)&" + extra
}

func (d sqlite) begin(t *Tx) (now int64, mark string, err error) {
	_, err = t.Exec("BEGIN IMMEDIATE")
	return 0, "", err
}

// committed: a commit that failed is none; whoever asks has rolled it back.
func (d sqlite) committed(context.Context, *sql.DB, string) (bool, error) { return false, nil }

func (d sqlite) gone(error) bool { return false }

func (d sqlite) full(err error) bool {
	var answered *driver.Error
	return errors.As(err, &answered) && answered.Code()&0xff == sqlite3.SQLITE_FULL
}

func (d sqlite) statement(query string) string { return bareParameters(query) }

func (d sqlite) pipelines() bool { return false }

func (d sqlite) run(context.Context, any, []statement) error { return nil } // nothing is kept back

func (d sqlite) among(column, parameter string) string {
	return column + " IN (SELECT value FROM json_each(" + parameter + "))"
}

func (d sqlite) Members(column string, names ...string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = "'" + name + "', json_extract(" + column + ", '$." + name + "')"
	}
	return "json_object(" + strings.Join(parts, ", ") + ")"
}

func (d sqlite) list(texts []string) any {
	text, err := json.Marshal(texts)
	if err != nil {
		panic(fmt.Errorf("encode texts: %w", err)) // there is no text that cannot be encoded
	}
	return string(text)
}

func (d sqlite) unfit(error) bool { return false }

func (d sqlite) patience() time.Duration { return 0 }

func (d sqlite) goose() (goose.Dialect, []goose.ProviderOption, error) {
	return goose.DialectSQLite3, nil, nil // the one writing connection is the lock
}
