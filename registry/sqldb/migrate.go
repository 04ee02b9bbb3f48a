package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/holdfast/holdfast/registry"
)

//go:embed migration/*.sql
var migrations embed.FS

// SchemaError is the error for a database whose schema this program does not work on (R27).
type SchemaError struct {
	Have  int64 // the database's version; 0: it has no schema
	Needs int64 // the version that this program needs; it works on later ones that say so
}

// Error says which versions differ, and what to run.
func (e *SchemaError) Error() string {
	if e.Have > e.Needs {
		return fmt.Sprintf("the database's schema is version %d, which no longer works with this program (it knows version %d); run a newer holdfast", e.Have, e.Needs)
	}
	if e.Have == 0 {
		return "the database has no tables of Holdfast yet; run: holdfast migrate"
	}
	return fmt.Sprintf("the database's schema is version %d, but this program needs version %d; run: holdfast migrate", e.Have, e.Needs)
}

// Migrate migrates a database's schema to the newest version. It returns the versions before and
// after. If several processes call it at once, one migrates and the others wait.
func Migrate(ctx context.Context, address string) (from, to int64, err error) {
	d, err := dialectOf(address)
	if err != nil {
		return 0, 0, err
	}
	write, read, err := d.open()
	if err != nil {
		return 0, 0, fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, write.Close(), read.Close()) }()
	return migrate(ctx, d, write)
}

func migrate(ctx context.Context, d Dialect, db *sql.DB) (from, to int64, err error) {
	p, err := provider(d, db)
	if err != nil {
		return 0, 0, err
	}
	if from, err = p.GetDBVersion(ctx); err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	if from > newest(p) {
		return from, from, stillServes(ctx, db, from, newest(p))
	}
	if _, err := p.Up(ctx); err != nil {
		return from, 0, fmt.Errorf("migrate schema: %w", err)
	}
	if to, err = p.GetDBVersion(ctx); err != nil {
		return from, 0, fmt.Errorf("read schema version: %w", err)
	}
	return from, to, nil
}

// checkSchema returns a *SchemaError unless this program works on the database's schema.
func checkSchema(ctx context.Context, d Dialect, db *sql.DB) error {
	p, err := provider(d, db)
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	switch {
	case have < newest(p):
		return &SchemaError{Have: have, Needs: newest(p)}
	case have > newest(p):
		return stillServes(ctx, db, have, newest(p))
	}
	return nil
}

// isEmpty reports whether a PostgreSQL database of which checkSchema said err has no table, not even one
// of another program.
func isEmpty(ctx context.Context, db *sql.DB, err error) bool {
	var wrong *SchemaError
	if !errors.As(err, &wrong) || wrong.Have != 0 {
		return false
	}
	var tables int
	err = db.QueryRowContext(ctx, `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name <> 'goose_db_version'`).Scan(&tables)
	return err == nil && tables == 0
}

// stillServes checks whether a schema newer than this program still works with it. Migrations that
// only add leave the setting unchanged; a migration that removes something raises it.
func stillServes(ctx context.Context, db *sql.DB, have, known int64) error {
	var oldest int64
	err := db.QueryRowContext(ctx, `SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'schema-serves'`).Scan(&oldest)
	if err != nil {
		return fmt.Errorf("read which programs work with schema %d: %w", have, err)
	}
	if known < oldest {
		return &SchemaError{Have: have, Needs: known}
	}
	return nil
}

func provider(d Dialect, db *sql.DB) (*goose.Provider, error) {
	files, err := migrationsFor(d.Name())
	if err != nil {
		return nil, err
	}
	dialect, options, err := d.goose()
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider(dialect, db, files, options...)
	if err != nil {
		return nil, fmt.Errorf("prepare migrations: %w", err)
	}
	return p, nil
}

func newest(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

// migrationsFor returns the migrations in one dialect.
func migrationsFor(dialect string) (fs.FS, error) {
	names, err := fs.Glob(migrations, "migration/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	files := fstest.MapFS{}
	for _, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		files[strings.TrimPrefix(name, "migration/")] = &fstest.MapFile{Data: []byte(inDialect(string(text), dialect))}
	}
	return files, nil
}

// inDialect removes the lines between the marker lines of other dialects, and uses the dialect's
// type for bytes.
func inDialect(text, dialect string) string {
	const marker = "-- +dialect "
	var out []string
	current := "all"
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), marker); ok {
			current = strings.TrimSpace(name)
			continue
		}
		if current == "all" || current == dialect {
			out = append(out, line)
		}
	}
	text = strings.Join(out, "")
	if dialect == "postgres" {
		text = strings.ReplaceAll(text, " BLOB ", " BYTEA ")
	}
	return text
}

var _ error = (*SchemaError)(nil)

// unavailable marks an error of a database that does not answer, or not in time.
func unavailable(err error) error { return fmt.Errorf("%w: %w", registry.ErrUnavailable, err) }
