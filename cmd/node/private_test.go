package node_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/cmd/node"
)

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestUp_Private: no other user of the machine can read the database, its logs, interim data, keys
// or staging, whatever their permissions were before. Preserved files keep theirs.
func TestUp_Private(t *testing.T) {
	dir := t.TempDir()
	chmod := func(name string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod("", 0o755)
	run := func(log *lines) {
		t.Helper()
		o := options(t, dir)
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		n, err := node.Up(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}()
		var seen []string
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(dir, path)
			if name == "storage" {
				return fs.SkipDir
			}
			if strings.Contains(name, string(filepath.Separator)) {
				return nil // below a folder that is judged itself
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			seen = append(seen, name)
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%s has mode %o, want %o", name, got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			".", "client.json", "interim.db", "interim.db-shm", "interim.db-wal", "lock", "receipt.key", "registry.db", "registry.db-shm", "registry.db-wal",
			"registry.db.lock", "secret.key", "staging",
		} {
			if !slices.Contains(seen, want) {
				t.Errorf("%s is not there: %v", want, seen)
			}
		}
	}
	var log lines
	run(&log)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		mode := fs.FileMode(0o666)
		if e.IsDir() {
			mode = 0o777
		}
		chmod(e.Name(), mode)
	}
	chmod("", 0o777)
	for _, left := range []string{"registry.db-wal", "interim.db-shm"} { // as a killed process leaves them
		if err := os.WriteFile(filepath.Join(dir, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		chmod(left, 0o666)
	}
	chmod("storage", 0o755)
	run(&log)
	if info, err := os.Stat(filepath.Join(dir, "storage")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("storage: %v, %v, want it left as it was", info.Mode(), err)
	}
	if text := log.String(); strings.Contains(text, "other users of this machine") {
		t.Errorf("warned although all is ours: %s", text)
	}

	// What is another user's is left, and told.
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := filepath.Join(dir, "staging")
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	chmod("staging", 0o755)
	o := options(t, dir)
	log = lines{}
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	n, err := node.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "other users of this machine") != 1 || !strings.Contains(text, "path="+path) || !strings.Contains(text, "another user") {
		t.Errorf("log %s, want one warning, of staging", text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("staging of another user: %v, %v", info.Mode(), err)
	}
}
