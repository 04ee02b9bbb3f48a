package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

// The names of the dialects, as the marker lines of the migrations have them.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// Dialect is all that differs between the databases beside their text indexes: every statement is
// the same text.
type Dialect interface {
	wording
	diagnosis
	// open returns the writer's pool and the readers'.
	open() (write, read *sql.DB, err error)
	// begin starts a transaction that no other writer, of whatever process, runs beside, and
	// returns the database's time in microseconds, 0 when this process's clock is the one that
	// counts, with what committed needs.
	begin(t *Tx) (now int64, mark string, err error)
	// committed tells what became of a transaction whose commit got no answer.
	committed(ctx context.Context, db *sql.DB, mark string) (bool, error)
	// pipelines says that statements whose results nobody waits for are better sent together, by
	// run.
	pipelines() bool
	// run runs statements in their order on a connection of the driver's own kind.
	run(ctx context.Context, conn any, statements []statement) error
	// patience is how long a transaction may take before its connection is given up; 0: for ever.
	patience() time.Duration
	// Name is as in the marker lines of the migrations.
	Name() string
	// goose is how the migrations are applied.
	goose() (goose.Dialect, []goose.ProviderOption, error)
}

// wording is what differs in the text of statements and in their arguments.
type wording interface {
	// statement is a statement's text as the database is asked to prepare it.
	statement(query string) string
	// among is the condition that a column is one of the texts of a parameter which list makes.
	among(column, parameter string) string
	// Members is some members of the JSON object in a column, as an object of their own.
	Members(column string, names ...string) string
	list(texts []string) any
	// PayloadOwner is the owner in the profile in the spec of a row w of work_detail; NULL of items
	// that are about no payload.
	PayloadOwner() string
}

// diagnosis is what an error of the database means.
type diagnosis interface {
	// gone says that an error means that the connection cannot be used any more.
	gone(err error) bool
	// full says that an error means that the disk is full, and the connection is as good as before.
	full(err error) bool
	// unfit says that an error means that an argument is nothing that the database could hold: no
	// text, too long a key, too large a number.
	unfit(err error) bool
}

// dialectOf returns the dialect of a database's address, sqlite:PATH or postgres://...
func dialectOf(address string) (Dialect, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return sqlite{path: rest}, nil
	case scheme == "postgres" || scheme == "postgresql":
		return newPostgres(address)
	}
	// The address may hold a password and is not repeated.
	return nil, fmt.Errorf("database address begins with %q; it must be sqlite:PATH or postgres://USER@HOST/NAME", scheme)
}
