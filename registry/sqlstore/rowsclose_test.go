package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/registry/sqlstore"
)

var errRowsClose = errors.New("the connection broke while the rows were closed")

// brokenRows is a database that answers every query with one unreadable row and an error on Close.
type brokenRows struct{ driver.Conn }

func (b brokenRows) Connect(context.Context) (driver.Conn, error) { return b, nil }
func (b brokenRows) Driver() driver.Driver                        { return nil }
func (brokenRows) Close() error                                   { return nil }
func (brokenRows) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return brokenAnswer{}, nil
}

type brokenAnswer struct{}

func (brokenAnswer) Columns() []string         { return []string{"one"} }
func (brokenAnswer) Close() error              { return errRowsClose }
func (brokenAnswer) Next([]driver.Value) error { return nil }

// TestErrorsOfClosingRowsAreTold: readers get the error of closing rows beside other errors.
func TestErrorsOfClosingRowsAreTold(t *testing.T) {
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "registry.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SetReader(sql.OpenDB(brokenRows{})); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"deliveries": func() error { _, err := s.Deliveries(t.Context(), "item"); return err },
		"holds":      func() error { _, err := s.Holds(t.Context()); return err },
		"tokens":     func() error { _, err := s.Tokens(t.Context()); return err },
	} {
		if err := read(); !errors.Is(err, errRowsClose) {
			t.Errorf("%s: %v, want %v in it", name, err, errRowsClose)
		}
	}
}
