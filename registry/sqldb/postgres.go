package sqldb

import (
	"context"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// postgres is a database that several processes write to. Each transaction begins by taking an
// advisory lock, so that writes are serial as on SQLite. A group of writes shares one turn of the
// lock. So rows are locked before they are tested (R16), the feed is numbered in the order of
// commits (R17), and no two transactions can deadlock (R11).
type postgres struct{ config *pgx.ConnConfig }

// Limits of a turn. If a process stops in the middle of one, the server ends its transaction, so
// that others get theirs.
const (
	turnIdle      = 10 * time.Second // between two statements
	turnWait      = 20 * time.Second // for the turn
	turnStatement = 30 * time.Second // for a statement
	turnWhole     = 60 * time.Second
)

// newPostgres reads an address. Its sslrootcert may be the text of the authorities, in PEM, in place
// of the name of a file: a container's secrets are texts.
func newPostgres(address string) (postgres, error) {
	address, roots, err := rootsOf(address)
	if err != nil {
		return postgres{}, err
	}
	config, err := pgx.ParseConfig(address)
	if err == nil && roots != nil {
		if config.TLSConfig == nil || config.TLSConfig.InsecureSkipVerify || len(config.Fallbacks) > 0 {
			return postgres{}, errors.New("database address: sslrootcert with the text of certificates needs sslmode=verify-full")
		}
		config.TLSConfig.RootCAs = roots
	}
	if err != nil {
		// The error of pgx contains the address, which may contain a password.
		return postgres{}, errors.New("database address cannot be read; it must be postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE")
	}
	config.ConnectTimeout = 10 * time.Second
	return postgres{config: config}, nil
}

// rootsOf removes the text of authorities from an address. roots are nil if it has none.
func rootsOf(address string) (rest string, roots *x509.CertPool, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return address, nil, nil //nolint:nilerr // pgx reports it
	}
	const parameter = "sslrootcert"
	query := u.Query()
	text := query.Get(parameter)
	if !strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN") {
		return address, nil, nil
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(text)) {
		return "", nil, errors.New("database address: the text in sslrootcert has no certificate in PEM")
	}
	query.Del(parameter)
	u.RawQuery = query.Encode()
	return u.String(), roots, nil
}

func (d postgres) Name() string { return PostgreSQL }

func (d postgres) PayloadOwner() string { return `(w.spec::json -> 'profile' ->> 'owner')` }

func (d postgres) open() (write, read *sql.DB, err error) {
	write = stdlib.OpenDB(*d.with(writerSettings))
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

// writerSettings are the settings of the writer's session.
var writerSettings = map[string]string{
	"idle_in_transaction_session_timeout": millis(turnIdle),
	"lock_timeout":                        millis(turnWait),
	"statement_timeout":                   millis(turnStatement),
	// Planning a write for its actual arguments takes longer than running it, even more so with
	// large tables.
	"plan_cache_mode": "force_generic_plan",
	// Such a plan is kept until the next ANALYZE of its tables. One that was made while they were
	// small would read whole tables in each claim when they have grown. So plans use indexes,
	// whatever the statistics say.
	"enable_seqscan":   "off",
	"enable_hashjoin":  "off",
	"enable_mergejoin": "off",
}

// with returns the configuration with session settings added.
func (d postgres) with(settings map[string]string) *pgx.ConnConfig {
	c := d.config.Copy()
	c.RuntimeParams["application_name"] = "holdfast"
	c.RuntimeParams["jit"] = "off" // compiling takes longer than it saves
	for name, value := range settings {
		c.RuntimeParams[name] = value
	}
	return c
}

func millis(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// begin waits for the writer's turn, all in one round trip. It reads the time after the turn has
// come; otherwise a later transaction could have an earlier time.
func (d postgres) begin(t *Tx) (now int64, mark string, err error) {
	if err := t.injectedFault("BEGIN"); err != nil {
		return 0, "", err
	}
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	batch.Queue(`WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtext('holdfast ' || current_schema())))
		SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), CAST(pg_current_xact_id() AS TEXT) FROM turn`).
		QueryRow(func(row pgx.Row) error { return row.Scan(&now, &mark) })
	err = t.conn.Raw(func(driverConn any) error {
		c, err := pgxConn(driverConn)
		if err != nil {
			return err
		}
		return c.SendBatch(t.ctx, batch).Close()
	})
	return now, mark, err
}

func pgxConn(driverConn any) (*pgx.Conn, error) {
	c, ok := driverConn.(*stdlib.Conn)
	if !ok {
		return nil, fmt.Errorf("connection is a %T", driverConn)
	}
	return c.Conn(), nil
}

func (d postgres) committed(ctx context.Context, db *sql.DB, mark string) (bool, error) {
	var status sql.NullString
	err := db.QueryRowContext(ctx, `SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8))`, mark).Scan(&status)
	if err != nil {
		return false, fmt.Errorf("look up the outcome of transaction %s: %w", mark, err)
	}
	switch status.String {
	case "committed":
		return true, nil
	case "aborted":
		return false, nil
	}
	return false, fmt.Errorf("transaction %s is still in progress", mark)
}

// connLost tells lost connections and stopping servers from answers. A full disk counts, too: the
// server may end the connection.
func (d postgres) connLost(err error) bool {
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

func (d postgres) diskFull(error) bool { return false } // connLost covers it

func (d postgres) statement(query string) string { return query }

func (d postgres) pipelines() bool { return true }

func (d postgres) run(ctx context.Context, conn any, statements []statement) error {
	c, err := pgxConn(conn)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for _, s := range statements {
		batch.Queue(s.query, s.args...)
	}
	results := c.SendBatch(ctx, batch)
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

func (d postgres) Apart() string { return "" }

// Members returns an object with a NUL in it unchanged, because PostgreSQL refuses to parse it.
func (d postgres) Members(column string, names ...string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = "'" + name + "', CAST(" + column + " AS JSON) -> '" + name + "'"
	}
	return "CASE WHEN position('\\u0000' IN " + column + ") > 0 THEN " + column +
		" ELSE CAST(json_build_object(" + strings.Join(parts, ", ") + ") AS TEXT) END"
}

func (d postgres) list(texts []string) any { return texts }

func (d postgres) unstorable(err error) bool {
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
	// Each schema has its own lock. Ask for it every second for ten minutes: migrating a large
	// table takes time.
	place := crc32.ChecksumIEEE([]byte("holdfast " + d.config.Database + " " + d.config.RuntimeParams["search_path"]))
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(int64(place)), lock.WithLockTimeout(1, 600))
	if err != nil {
		return "", nil, fmt.Errorf("prepare the lock for migrations: %w", err)
	}
	return goose.DialectPostgres, []goose.ProviderOption{goose.WithSessionLocker(locker)}, nil
}
