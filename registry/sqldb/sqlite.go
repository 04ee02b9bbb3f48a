package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqlite is an embedded database. One process owns its file, and one connection writes.
type sqlite struct{ path string }

func (d sqlite) Name() string { return SQLite }

func (d sqlite) PayloadOwner() string { return `json_extract(w.spec, '$.profile.owner')` }

func (d sqlite) open() (write, read *sql.DB, err error) {
	if err := syncLog(d.path + "-wal"); err != nil {
		return nil, nil, err
	}
	// In a large database the pages of a claim lie far apart. The cache has room for those of some
	// dozen collections. A rare checkpoint writes a page once, however often it changed.
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

// syncLog makes the write-ahead log durable before anyone reads it. A process that was killed
// between the write of a commit and its fsync leaves a commit that the next process reads; without
// this, a loss of power could take back what that one answered from it (I2).
func syncLog(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// dsn returns the driver's address. With synchronous=FULL a commit survives a power failure, which
// I2 requires. The journal of savepoints is useless after a crash, so it stays in memory.
func (d sqlite) dsn(extra string) string {
	return "file:" + (&url.URL{Path: d.path}).EscapedPath() +
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)" +
		"&_pragma=temp_store(MEMORY)&" + extra
}

func (d sqlite) begin(t *Tx) (now int64, mark string, err error) {
	_, err = t.Exec("BEGIN IMMEDIATE")
	return 0, "", err
}

// committed: a failed commit did not happen; the caller rolls it back.
func (d sqlite) committed(context.Context, *sql.DB, string) (bool, error) { return false, nil }

func (d sqlite) connLost(error) bool { return false }

func (d sqlite) diskFull(err error) bool {
	var answered *driver.Error
	return errors.As(err, &answered) && answered.Code()&0xff == sqlite3.SQLITE_FULL
}

// IsDamaged reports whether an error of a SQLite database says that its file is damaged, or is no
// database.
func IsDamaged(err error) bool {
	var answered *driver.Error
	return errors.As(err, &answered) && (answered.Code()&0xff == sqlite3.SQLITE_CORRUPT || answered.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

func (d sqlite) statement(query string) string { return bareParameters(query) }

func (d sqlite) pipelines() bool { return false }

func (d sqlite) run(context.Context, any, []statement) error { return nil } // statements are never kept back

func (d sqlite) among(column, parameter string) string {
	return column + " IN (SELECT value FROM json_each(" + parameter + "))"
}

func (d sqlite) Apart() string { return " LIMIT -1" }

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
		panic(fmt.Errorf("encode texts: %w", err)) // every text can be encoded
	}
	return string(text)
}

func (d sqlite) unstorable(error) bool { return false }

func (d sqlite) patience() time.Duration { return 0 }

func (d sqlite) goose() (goose.Dialect, []goose.ProviderOption, error) {
	return goose.DialectSQLite3, nil, nil // the only writing connection is the lock
}
