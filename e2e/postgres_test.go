package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// onPostgreSQL starts Holdfast with its Registry on a PostgreSQL server of the test's own, migrated
// by the command.
func onPostgreSQL(t *testing.T, env ...string) (*holdfast, *postgrestest.Server) {
	t.Helper()
	server := postgrestest.Start(t)
	env = append([]string{"HOLDFAST_DATABASE_URL=" + server.Schema(t)}, env...)
	h := &holdfast{t: t, env: env}
	if r := h.runIn("", "migrate"); r.code != 0 || !strings.Contains(r.stdout, "migrated from version 0") {
		t.Fatalf("migrate ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.runIn("", "migrate"); r.code != 0 || !strings.Contains(r.stdout, "nothing to do") {
		t.Errorf("a second migrate ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
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

// TestPostgreSQL_NotMigrated: a process refuses a database without its schema, and says what to
// run.
func TestPostgreSQL_NotMigrated(t *testing.T) {
	server := postgrestest.Shared(t)
	h := &holdfast{t: t, env: []string{"HOLDFAST_DATABASE_URL=" + server.Schema(t)}}
	r := h.runIn("", "up", "--dir", t.TempDir(), "--listen", "127.0.0.1:0")
	if r.code == 0 || !strings.Contains(r.stderr, "run: holdfast migrate") {
		t.Errorf("up ended with %d: %s", r.code, r.stderr)
	}
}
