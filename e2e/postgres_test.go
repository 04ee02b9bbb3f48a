package e2e

import (
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// onPostgreSQL starts Holdfast with its Registry on a PostgreSQL server of the test's own, whose tables
// it makes.
func onPostgreSQL(t *testing.T, env ...string) (*holdfast, *postgrestest.Server) {
	t.Helper()
	server := postgrestest.Start(t)
	env = append([]string{"HOLDFAST_DATABASE_URL=" + server.Schema(t)}, env...)
	return up(t, env...), server
}

// TestPostgreSQL_Killed repeats TestKilled_GoesOn on PostgreSQL. Here leases must expire first,
// because another process might live.
func TestPostgreSQL_Killed(t *testing.T) {
	h, _ := onPostgreSQL(t, fourSlots, "HOLDFAST_MAX_ATTEMPTS=100", "HOLDFAST_LEASE=1s")
	killedGoesOn(t, h)
}

// TestPostgreSQL_ServerKilled kills the database in the middle of a batch: Holdfast waits for it,
// and no job fails.
func TestPostgreSQL_ServerKilled(t *testing.T) {
	h, server := onPostgreSQL(t, fourSlots)
	s := serveSlowly(t)
	outage := func() {
		server.Kill()
		if r := h.run("batch", "list"); r.code != 5 || !strings.Contains(r.stderr, "not available") {
			t.Errorf("a command during the outage ended with %d: %s", r.code, r.stderr)
		}
		server.Restart(t)
	}
	s.inTurns(h.until, func() { h.run("submit", s.server+"/batch.checkm") }, outage, outage)
	h.finishUncharged("an outage of the database")
}

// TestPostgreSQL_NotMigrated: up refuses a database that has tables and not its schema, and says what to
// run.
func TestPostgreSQL_NotMigrated(t *testing.T) {
	address := postgrestest.Shared(t).Schema(t)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE of_another_program (id INT)"); err != nil {
		t.Fatal(err)
	}
	h := &holdfast{t: t, env: []string{"HOLDFAST_DATABASE_URL=" + address}}
	if r := h.runIn("", "up", "--dir", t.TempDir(), "--listen", "127.0.0.1:0"); r.code == 0 || !strings.Contains(r.stderr, "run: holdfast migrate") {
		t.Errorf("up ended with %d: %s", r.code, r.stderr)
	}
	for _, says := range []string{"migrated from version 0", "nothing to do"} {
		if r := h.runIn("", "migrate"); r.code != 0 || !strings.Contains(r.stdout, says) {
			t.Errorf("migrate ended with %d, want that it says %q: %s%s", r.code, says, r.stdout, r.stderr)
		}
	}
}

// TestPostgreSQL_Restored backs up the database and restores it into a new one with the commands of
// docs/operating.md: the record is complete there, its files verify, and deposits go on.
func TestPostgreSQL_Restored(t *testing.T) {
	t.Parallel()
	inSchema := postgrestest.Shared(t).Schema(t)
	db, err := sql.Open("pgx", inSchema)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	address := func(name string) string {
		if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(inSchema)
		if err != nil {
			t.Fatal(err)
		}
		of := u.Query()
		of.Del("search_path") // which PostgreSQL's programs do not know
		u.Path, u.RawQuery = "/"+name, of.Encode()
		return u.String()
	}
	lost, restored := address("lost"), address("restored")
	h := up(t, "HOLDFAST_DATABASE_URL="+lost)
	file := filepath.Join(t.TempDir(), "a.txt")
	deposit := func(text string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(file, "--local-id", "id 1")
		if code != 0 || len(s.Jobs) != 1 {
			t.Fatalf("exit=%d summary=%+v", code, s)
		}
		return s.Jobs[0].ObjectID
	}
	object := deposit("one")

	doc, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("```\n(pg_dump [^`]*)```").FindSubmatch(doc)
	if commands == nil || !strings.Contains(string(commands[1]), "--dbname=NEW ") {
		t.Fatal("docs/operating.md has no block with pg_dump and --dbname=NEW")
	}
	folder, err := postgrestest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-ec", strings.Replace(string(commands[1]), "--dbname=NEW ", `--dbname="$NEW" `, 1))
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "HOLDFAST_DATABASE_URL="+lost, "NEW="+restored)
	if said, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands[1], err, said)
	}

	h.stop()
	h.env = append(h.env, "HOLDFAST_DATABASE_URL="+restored)
	if r := h.runIn("", "reconcile", "--dir", h.dir, "--database", restored, "--apply", "--restored"); r.code != 0 {
		t.Fatalf("reconcile ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	h.start()
	h.must(0, "object", "verify", "--all")
	if again := deposit("one more"); again != object {
		t.Errorf("an update made %s, not %s", again, object)
	}
	h.must(0, "object", "verify", "--all")
}
