package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/interim/interimtest"
	"github.com/holdfast/holdfast/interim/sqlstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	interimtest.Run(t, func(t *testing.T) interim.Store { return open(t, filepath.Join(t.TempDir(), "interim.db")) })
}

func TestR26_SupersededWorkerIsNotFollowed(t *testing.T) {
	interimtest.Superseded(t, open(t, filepath.Join(t.TempDir(), "interim.db")))
}

func TestReopenedFileKeepsEntries(t *testing.T) {
	// A path with what URLs and SQLite give a meaning.
	path := filepath.Join(t.TempDir(), "a b%41?c=d#e.db")
	s := open(t, path)
	put(t, s, 1, "k", "v")
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is not where it was asked for: %v", err)
	}
	if got, err := open(t, path).Get(t.Context(), attempt(1), "k"); err != nil || string(got) != "v" {
		t.Errorf("get after reopening=%q, %v, want v", got, err)
	}
}

// TestKilledProcessLeavesAUsableFile: a killed process leaves the file with a log that was not
// merged.
func TestKilledProcessLeavesAUsableFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "interim.db")
	s := open(t, path)
	put(t, s, 1, "k", "v")
	copied := filepath.Join(t.TempDir(), "interim.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := open(t, copied).Get(t.Context(), attempt(1), "k"); err != nil || string(got) != "v" {
		t.Errorf("get=%q, %v, want v", got, err)
	}
}

func TestR25_WritersAreNotHeldUpByReaders(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "interim.db"))
	for i := range 20 {
		put(t, s, 1, fmt.Sprint("k", i), "v")
	}
	// The walk is in the middle when its attempt is written to, adopted and dropped; none of it
	// waits for the walk.
	seen := 0
	err := s.Each(t.Context(), attempt(1), "", func(string, []byte) error {
		if seen++; seen != 5 {
			return nil
		}
		put(t, s, 1, "k1", "w")
		if _, err := s.Adopt(t.Context(), attempt(2)); err != nil {
			return err
		}
		return s.Drop(t.Context(), "item")
	})
	if err != nil || seen < 5 {
		t.Errorf("each: %v after %d entries", err, seen)
	}
}

func TestR27_UnusableFileIsBegunAnew(t *testing.T) {
	for _, test := range []struct {
		name string
		harm func(t *testing.T, path string)
	}{
		{"another format", func(t *testing.T, path string) { execute(t, path, `PRAGMA user_version = 99`) }},
		{"tables gone bad", func(t *testing.T, path string) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// All but the header, so that it is still known as ours.
			copy(content[100:], bytes.Repeat([]byte{0xa5}, len(content)-100))
			write(t, path, content)
		}},
		{"torn first write", func(t *testing.T, path string) { write(t, path, make([]byte, 8192)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "interim.db")
			s := open(t, path)
			put(t, s, 1, "k", "v")
			if err := s.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
			test.harm(t, path)

			var log bytes.Buffer
			s, err := sqlstore.Open(t.Context(), path, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			defer s.Close()
			if _, err := s.Get(t.Context(), attempt(1), "k"); !errors.Is(err, interim.ErrNotFound) {
				t.Errorf("get: %v, want ErrNotFound", err)
			}
			put(t, s, 2, "k", "w")
			if _, err := os.Stat(path + ".damaged"); err != nil {
				t.Errorf("the old file was not kept: %v", err)
			}
			if !strings.Contains(log.String(), "level=WARN") {
				t.Errorf("log=%q, want a warning", log.String())
			}
		})
	}
}

func TestForeignFileIsLeftAlone(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"a database of somebody else": func(t *testing.T, path string) { execute(t, path, `CREATE TABLE work_item (id TEXT)`) },
		"a text":                      func(t *testing.T, path string) { write(t, path, []byte("the only copy of a deposit")) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "interim.db")
			make(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var foreign *sqlstore.ForeignError
			if _, err := sqlstore.Open(t.Context(), path, discard()); !errors.As(err, &foreign) {
				t.Errorf("open: %v, want a ForeignError", err)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file changed: %v", err)
			}
		})
	}
}

func TestOpenWithoutFolder(t *testing.T) {
	if _, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "absent", "interim.db"), discard()); err == nil {
		t.Error("open in an absent folder: nil, want an error")
	}
}

// TestInterruptedDropIsFinishedByTheNext: the entries of an interrupted drop are invisible at once,
// and deleted by the next drop of any item.
func TestInterruptedDropIsFinishedByTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "interim.db")
	s := open(t, path)
	put(t, s, 1, "k", "v")
	execute(t, path, `UPDATE attempt SET item = NULL`)
	if _, err := s.Get(t.Context(), attempt(1), "k"); !errors.Is(err, interim.ErrNotFound) {
		t.Errorf("get: %v, want ErrNotFound", err)
	}
	if err := s.Drop(t.Context(), "another item"); err != nil {
		t.Fatalf("drop: %v", err)
	}
	if n := count(t, path, `SELECT (SELECT count(*) FROM entry) + (SELECT count(*) FROM attempt)`); n != 0 {
		t.Errorf("%d rows are left, want 0", n)
	}
}

func BenchmarkAdopt360000(b *testing.B) {
	s, err := sqlstore.Open(b.Context(), filepath.Join(b.TempDir(), "interim.db"), discard())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	value := make([]byte, 400)
	for from := 0; from < 360_000; from += 1000 {
		entries := map[string][]byte{}
		for i := range 1000 {
			entries[fmt.Sprintf("file/producer/folder/%08d.tiff", from+i)] = value
		}
		if err := s.Put(b.Context(), attempt(1), entries); err != nil {
			b.Fatal(err)
		}
	}
	for n := int64(2); b.Loop(); n++ {
		if _, err := s.Adopt(b.Context(), attempt(n)); err != nil {
			b.Fatal(err)
		}
	}
}

func attempt(n int64) interim.Attempt { return interim.Attempt{ItemID: "item", N: n} }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t *testing.T, path string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), path, discard())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func put(t *testing.T, s interim.Store, n int64, key, value string) {
	t.Helper()
	if err := s.Put(t.Context(), attempt(n), map[string][]byte{key: []byte(value)}); err != nil {
		t.Fatalf("put: %v", err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// execute changes the file behind the store's back.
func execute(t *testing.T, path, statement string) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(t *testing.T, path, query string) (n int) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	if err := db.QueryRowContext(context.WithoutCancel(t.Context()), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}
