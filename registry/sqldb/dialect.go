package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

// Names of the dialects, as in the marker lines of the migrations.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// Dialect is what differs between the databases, except their text indexes. Statements have the
// same text in both.
type Dialect interface {
	wording
	diagnosis
	// open returns the pools of the writer and of the readers.
	open() (write, read *sql.DB, err error)
	// begin starts a transaction that runs beside no other writer of any process. It returns the
	// database's time in microseconds, or 0 if this process's clock counts. mark is for committed.
	begin(t *Tx) (now int64, mark string, err error)
	// committed reports whether a transaction was committed whose commit got no answer.
	committed(ctx context.Context, db *sql.DB, mark string) (bool, error)
	// pipelines reports whether statements without results are better sent together, by run.
	pipelines() bool
	// run runs statements in order on a connection of the driver's own type.
	run(ctx context.Context, conn any, statements []statement) error
	// patience is the longest time that a transaction may take before its connection is dropped; 0:
	// no limit.
	patience() time.Duration
	// Name is the name in the marker lines of the migrations.
	Name() string
	// goose returns how goose applies the migrations.
	goose() (goose.Dialect, []goose.ProviderOption, error)
}

// wording is what differs in the text of statements and in their arguments.
type wording interface {
	// statement returns the text that the database prepares.
	statement(query string) string
	// among returns the condition that a column is one of the texts in a parameter, which list
	// makes.
	among(column, parameter string) string
	// Apart ends a subquery that computes what the query around it groups by. Without it SQLite would
	// merge the two, and sort the rows with all columns of an expression that contains subqueries.
	Apart() string
	// Members returns the SQL expression for an object with some members of the JSON object in a
	// column.
	Members(column string, names ...string) string
	list(texts []string) any
	// PayloadOwner returns the SQL expression for the owner in the profile in the spec of row w of
	// work_detail. It is NULL for items without a payload.
	PayloadOwner() string
}

// diagnosis classifies errors of the database.
type diagnosis interface {
	// connLost reports whether the connection can no longer be used.
	connLost(err error) bool
	// diskFull reports whether the disk is full. The connection can still be used.
	diskFull(err error) bool
	// unstorable reports whether the database cannot store an argument: invalid text, too long a
	// key, too large a number.
	unstorable(err error) bool
}

// dialectOf returns the dialect for a database address, sqlite:PATH or postgres://...
func dialectOf(address string) (Dialect, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return sqlite{path: rest}, nil
	case scheme == "postgres" || scheme == "postgresql":
		return newPostgres(address)
	}
	// The address may contain a password, so the error does not repeat it.
	return nil, fmt.Errorf("database address begins with %q; it must be sqlite:PATH or postgres://USER@HOST/NAME", scheme)
}
