package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// postgres is a database that several processes write to. They take turns: a transaction begins by
// taking an advisory lock, which makes what holds for SQLite's one writer hold for all of them. A
// group of writes shares one turn, so that turns are few. Rows are so locked before they are tested
// (R16), the feed's cursor is given in the order of commits (R17), and no two transactions can
// deadlock (R11).
type postgres struct{ config *pgx.ConnConfig }

// Bounds of a turn. A process that stops in the middle of one must not keep the others from theirs:
// the server ends its transaction.
const (
	turnIdle      = 10 * time.Second // between two statements
	turnWait      = 20 * time.Second // for the turn
	turnStatement = 30 * time.Second // for a statement
	turnWhole     = 60 * time.Second
)

func newPostgres(address string) (postgres, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The error repeats the address, and with it a password.
		return postgres{}, errors.New("database address cannot be read; it must be postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE")
	}
	config.ConnectTimeout = 10 * time.Second
	return postgres{config: config}, nil
}

func (d postgres) Name() string { return PostgreSQL }

func (d postgres) PayloadOwner() string { return `(w.spec::json -> 'profile' ->> 'owner')` }

func (d postgres) open() (write, read *sql.DB, err error) {
	write = stdlib.OpenDB(*d.with(map[string]string{
		"idle_in_transaction_session_timeout": millis(turnIdle),
		"lock_timeout":                        millis(turnWait),
		"statement_timeout":                   millis(turnStatement),
		// To plan a write for its very arguments takes longer than to run it, the more so the
		// larger the tables are.
		"plan_cache_mode": "force_generic_plan",
	}))
	write.SetMaxOpenConns(2)
	read = stdlib.OpenDB(*d.with(map[string]string{
		"default_transaction_read_only": "on",
		"statement_timeout":             millis(turnStatement),
	}))
	read.SetMaxOpenConns(16)
	read.SetMaxIdleConns(16)
	read.SetConnMaxIdleTime(5 * time.Minute)
	return write, read, nil
}

// with is the configuration with settings of the session.
func (d postgres) with(settings map[string]string) *pgx.ConnConfig {
	c := d.config.Copy()
	c.RuntimeParams["application_name"] = "holdfast"
	c.RuntimeParams["jit"] = "off" // it takes longer than what it makes faster
	for name, value := range settings {
		c.RuntimeParams[name] = value
	}
	return c
}

func millis(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// begin waits for the writer's turn. The time is asked for after it has come, or a later
// transaction could carry an earlier time.
func (d postgres) begin(t *Tx) (now int64, mark string, err error) {
	if _, err := t.Exec("BEGIN"); err != nil {
		return 0, "", err
	}
	err = t.Get(`WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtext('holdfast ' || current_schema())))
		SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), CAST(pg_current_xact_id() AS TEXT) FROM turn`,
		nil, &now, &mark)
	return now, mark, err
}

func (d postgres) committed(ctx context.Context, db *sql.DB, mark string) (bool, error) {
	var status sql.NullString
	err := db.QueryRowContext(ctx, `SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8))`, mark).Scan(&status)
	if err != nil {
		return false, fmt.Errorf("ask what became of transaction %s: %w", mark, err)
	}
	switch status.String {
	case "committed":
		return true, nil
	case "aborted":
		return false, nil
	}
	return false, fmt.Errorf("transaction %s is still in progress", mark)
}

// gone tells the loss of a connection, and a server that is stopping, from an answer.
func (d postgres) gone(err error) bool {
	var answered *pgconn.PgError
	if errors.As(err, &answered) {
		switch answered.Code {
		case "25P03", "25P04", "55P03", "57014": // idle or transaction timeout, lock not available, statement timeout
			return true
		}
		return strings.HasPrefix(answered.Code, "08") || strings.HasPrefix(answered.Code, "57P") || strings.HasPrefix(answered.Code, "53")
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) ||
		errors.As(err, &connect) || pgconn.Timeout(err) || err != nil && strings.Contains(err.Error(), "conn closed")
}

func (d postgres) full(error) bool { return false } // gone has it, since the server may end the connection

func (d postgres) statement(query string) string { return query }

func (d postgres) pipelines() bool { return true }

func (d postgres) run(ctx context.Context, conn any, statements []statement) error {
	c, ok := conn.(*stdlib.Conn)
	if !ok {
		return fmt.Errorf("connection is a %T", conn)
	}
	batch := &pgx.Batch{}
	for _, s := range statements {
		batch.Queue(s.query, s.args...)
	}
	results := c.Conn().SendBatch(ctx, batch)
	for _, s := range statements {
		if _, err := results.Exec(); err != nil {
			return errors.Join(fmt.Errorf("run %q: %w", s.query, err), results.Close())
		}
	}
	return results.Close()
}

func (d postgres) among(column, parameter string) string {
	return column + " = ANY(CAST(" + parameter + " AS TEXT[]))"
}

// Members leaves an object as it is that has a NUL somewhere, which PostgreSQL refuses to look
// into.
func (d postgres) Members(column string, names ...string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = "'" + name + "', CAST(" + column + " AS JSON) -> '" + name + "'"
	}
	return "CASE WHEN position('\\u0000' IN " + column + ") > 0 THEN " + column +
		" ELSE CAST(json_build_object(" + strings.Join(parts, ", ") + ") AS TEXT) END"
}

func (d postgres) list(texts []string) any { return texts }

func (d postgres) unfit(err error) bool {
	var answered *pgconn.PgError
	if !errors.As(err, &answered) {
		return false
	}
	switch answered.Code {
	case "22021", "22003", "54000": // character_not_in_repertoire, numeric_value_out_of_range, program_limit_exceeded
		return true
	}
	return false
}

func (d postgres) patience() time.Duration { return turnWhole }

func (d postgres) goose() (goose.Dialect, []goose.ProviderOption, error) {
	// One lock for each schema, asked for every second for ten minutes: a migration of a large
	// table takes its time.
	place := crc32.ChecksumIEEE([]byte("holdfast " + d.config.Database + " " + d.config.RuntimeParams["search_path"]))
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(int64(place)), lock.WithLockTimeout(1, 600))
	if err != nil {
		return "", nil, fmt.Errorf("prepare the lock for migrations: %w", err)
	}
	return goose.DialectPostgres, []goose.ProviderOption{goose.WithSessionLocker(locker)}, nil
}
