package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/pressly/goose/v3"
)

//go:embed migration/*.sql
var migrations embed.FS

// migrate brings the schema up to the newest version. The single writer connection is the lock.
func migrate(ctx context.Context, db *sql.DB) error {
	dir, err := migrationsFor("sqlite")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir)
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate schema: %w", err)
	}
	return nil
}

// migrationsFor is the migrations as one dialect reads them.
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

// inDialect leaves out what stands between marker lines of other dialects.
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
	return strings.Join(out, "")
}

// dialectName is the name of the store's dialect in the marker lines of the migrations.
func (s *Store) dialectName() string { return "sqlite" }
