package e2e

import (
	"database/sql"
	"strings"
	"testing"
	"time"

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
	h.run("submit", s.server+"/batch.checkm")
	for kill := 1; kill <= 2; kill++ {
		before := s.asked.Load()
		deadline := time.Now().Add(patience)
		for s.asked.Load() < before+3 && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		server.Kill()
		if r := h.run("batch", "list"); r.code != 5 || !strings.Contains(r.stderr, "not available") {
			t.Errorf("a command during the outage ended with %d: %s", r.code, r.stderr)
		}
		server.Restart(t)
	}
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
