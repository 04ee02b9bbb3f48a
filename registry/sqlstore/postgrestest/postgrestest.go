// Package postgrestest starts a real PostgreSQL for tests: one server for a test binary, as a child
// process of another user than root, on a socket in a folder of its own, and gives each test a
// schema or a database of its own. Its locale is C, or that of ICU which POSTGRES_ICU_LOCALE names,
// such as de-DE.
package postgrestest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/holdfast/holdfast/internal/proctest"
)

// Server is a running PostgreSQL. Its methods may be called concurrently, except Kill and Restart.
type Server struct {
	dir   string // data and socket
	bin   string
	owner *syscall.SysProcAttr // who runs it
	proc  *proctest.Server     // nil when none runs

	mu   sync.Mutex
	made int // schemas and databases

	template    sync.Once // fills the database that Copy copies
	templateErr error
}

// shared is the server of this test binary.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs a package's tests and then stops the shared server, if one was started. To be called by
// TestMain with what it exits with.
func Main(m *testing.M) int {
	defer Stop()
	return m.Run()
}

// Stop ends the shared server, if there is one, and removes its folder.
func Stop() {
	if shared.server != nil {
		shared.server.Kill()
		_ = os.RemoveAll(shared.server.dir) // a folder below the temporary one
	}
}

// Shared returns this test binary's server, started on first use. Without PostgreSQL on the machine
// the test is skipped, or fails when REQUIRE_SERVICES is 1, as in CI. Its durability is off: what a
// test kills must have a server of its own.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = start(inMemory(), "off") })
	require(t, shared.err)
	return shared.server
}

// Start starts a server of the test's own that survives being killed, and stops it when the test
// ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := start("", "on")
	require(t, err)
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(s.dir) // as in Stop
	})
	return s
}

func require(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, exec.ErrNotFound):
		proctest.Absent(t, "PostgreSQL (apt-get install postgresql)", err)
	default:
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

// Schema makes an empty schema, which goes when the test ends, and returns the address of the
// database in it.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := s.name()
	s.exec(t, "CREATE SCHEMA "+name)
	s.cleanup(t, "DROP SCHEMA "+name+" CASCADE")
	return s.address("postgres", name+",public")
}

// Copy makes a database that goes when the test ends, and returns its address. It is a copy of one
// that fill was called with the address of: once, by the first call, for all calls on this server.
func (s *Server) Copy(t testing.TB, fill func(address string) error) string {
	t.Helper()
	const template = "filled"
	s.template.Do(func() {
		s.exec(t, "CREATE DATABASE "+template)
		s.templateErr = fill(s.address(template, "public"))
	})
	if s.templateErr != nil {
		t.Fatal(s.templateErr)
	}
	name := s.name()
	// Written to the log a copy costs three times as much as files do.
	s.exec(t, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy")
	s.cleanup(t, "DROP DATABASE "+name+" WITH (FORCE)")
	return s.address(name, "public")
}

// name returns one that nothing on this server has.
func (s *Server) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return fmt.Sprintf("test_%d", s.made)
}

// cleanup has a statement executed when the test ends, unless the server was killed.
func (s *Server) cleanup(t testing.TB, statement string) {
	t.Cleanup(func() {
		if s.proc != nil {
			s.exec(t, statement)
		}
	})
}

func (s *Server) address(database, path string) string {
	q := url.Values{"host": {s.dir}, "user": {"postgres"}, "search_path": {path}}
	return "postgres:///" + database + "?" + q.Encode()
}

func (s *Server) exec(t testing.TB, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", s.address("postgres", "public"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

// Kill ends the server at once, as a power cut would end its processes, and waits for it.
func (s *Server) Kill() {
	if s.proc == nil {
		return
	}
	s.proc.End(syscall.SIGQUIT) // PostgreSQL's immediate shutdown: no checkpoint, recovery at the next start, and no child is left
	s.proc = nil
}

// Restart starts the server again, after Kill, on its old data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	require(t, s.run())
}

// Binaries finds the folder of PostgreSQL's programs; Debian keeps them out of the path.
func Binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return filepath.Dir(slices.Max(found)), nil
	}
	path, err := exec.LookPath("initdb")
	return filepath.Dir(path), err
}

// Owner is whom PostgreSQL runs as, and the user's number: it refuses root.
func Owner() (*syscall.SysProcAttr, int, error) {
	if os.Getuid() != 0 {
		return nil, os.Getuid(), nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, 0, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, 0, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, 0, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, uid, nil
}

// inMemory is a folder in memory for a server without durability, "" when there is none or little
// room in it. Copying a database is mostly work of the file system, which is a third of it there.
func inMemory() string {
	const folder, room = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil || uint64(fs.Bsize)*fs.Bavail < room { //nolint:gosec // a size is not negative
		return ""
	}
	return folder
}

// start starts a server with its folder in parent, "" for the usual temporary one.
func start(parent, durable string) (*Server, error) {
	bin, err := Binaries()
	if err != nil {
		return nil, err
	}
	attr, uid, err := Owner()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "holdfast-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, owner: attr}
	if err := s.create(uid, durable); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Server) create(uid int, durable string) error {
	if err := os.Chown(s.dir, uid, -1); err != nil {
		return err
	}
	locale := []string{"--locale", "C"}
	if name := os.Getenv("POSTGRES_ICU_LOCALE"); name != "" {
		locale = []string{"--locale", "C.UTF-8", "--locale-provider", "icu", "--icu-locale", name}
	}
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), append([]string{
		"--pgdata", s.data(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--no-sync",
	}, locale...)...)
	initdb.SysProcAttr, initdb.Dir = s.owner, s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	settings := fmt.Sprintf("fsync = %[1]s\nsynchronous_commit = %[1]s\nfull_page_writes = %[1]s\nlisten_addresses = ''\n"+
		"unix_socket_directories = '%[2]s'\nmax_connections = 300\nshared_buffers = 64MB\nmax_wal_size = 128MB\n", durable, s.dir)
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(settings); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return s.run()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) run() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data())
	cmd.SysProcAttr, cmd.Dir, cmd.Stdout, cmd.Stderr = s.owner, s.dir, log, log
	db, err := sql.Open("pgx", s.address("postgres", "public"))
	if err != nil {
		return err
	}
	defer db.Close()
	s.proc, err = proctest.Start(cmd, func(ctx context.Context) bool { return db.PingContext(ctx) == nil })
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(s.dir, "log")) // what there is of it
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}
