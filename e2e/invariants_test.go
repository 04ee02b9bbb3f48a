package e2e

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the Registry's file is looked into as it lies on the disk, not through our own code
)

// query reads rows of one of the databases of a Holdfast that is stopped, as text with "|" between
// columns. On PostgreSQL it need not be stopped.
func (h *holdfast) query(file, statement string, args ...any) []string {
	h.t.Helper()
	driver, address := "sqlite", "file:"+filepath.Join(h.dir, file)+"?_pragma=busy_timeout(10000)"
	if h.database != "" && file == "registry.db" {
		driver, address = "pgx", h.database
		statement = jsonField.ReplaceAllString(statement, `CAST($1 AS json) ->> '$2'`)
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		h.t.Fatal(err)
	}
	defer db.Close()
	found, err := db.QueryContext(h.t.Context(), statement, args...)
	if err != nil {
		h.t.Fatalf("%s: %v", statement, err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for found.Next() {
		values, cells := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			cells[i] = &values[i]
		}
		if err := found.Scan(cells...); err != nil {
			h.t.Fatal(err)
		}
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = v.String
		}
		out = append(out, strings.Join(row, "|"))
	}
	if err := found.Err(); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// jsonField is a field of JSON as SQLite reads it.
var jsonField = regexp.MustCompile(`json_extract\(([\w.]+), '\$\.(\w+)'\)`)

// late is true for the items that tidy up staging once more, long after the others' end (R26).
const late = `action = 'tidy' AND status = 'pending'`

// invariants are statements about a Registry in which everything has settled and completed. Each
// must find nothing.
var invariants = []struct{ name, violations string }{
	{"items that did not complete", `SELECT id, action, stage, status, tries, note FROM work_item
		WHERE status <> 'completed' AND NOT (` + late + `)`},
	{"stages that were not done exactly once", `SELECT i.id, i.action, a.stage, COUNT(*) FILTER (WHERE a.outcome = 'done') FROM work_item i
		JOIN attempt a ON a.item_id = i.id GROUP BY i.id, a.stage HAVING COUNT(*) FILTER (WHERE a.outcome = 'done') <> 1`},
	{"jobs that skipped a stage", `SELECT i.id, COUNT(DISTINCT a.stage) FROM work_item i LEFT JOIN attempt a ON a.item_id = i.id
		AND a.outcome = 'done' WHERE i.action = 'ingest' GROUP BY i.id HAVING COUNT(DISTINCT a.stage) <> 6`},
	{"two attempts of an item at a time", `SELECT a.item_id, a.n, b.n FROM attempt a JOIN attempt b ON b.item_id = a.item_id
		AND b.n > a.n WHERE b.started_at < a.finished_at`},
	{"live attempts", `SELECT item_id, n, stage FROM attempt WHERE finished_at IS NULL`},
	{"attempts beyond the item's own count", `SELECT i.id, i.attempt, MAX(a.n) FROM work_item i JOIN attempt a ON a.item_id = i.id
		GROUP BY i.id HAVING MAX(a.n) > i.attempt`},
	{"blocker counts that differ from a recount (I9)", `SELECT i.id, i.blocker_count FROM work_item i WHERE i.blocker_count <>
		(SELECT COUNT(*) FROM work_dep d WHERE d.item_id = i.id AND d.satisfied_at IS NULL)`},
	{"edges left open", `SELECT item_id, requires_id FROM work_dep WHERE satisfied_at IS NULL`},
	{"locks", `SELECT key, item_id FROM lock UNION ALL SELECT key, item_id FROM lock_wait`},
	{"reservations", `SELECT item_id, bytes FROM reservation`},
	{"wake-ups for what is settled", `SELECT id, nudge_at FROM work_item WHERE nudge_at IS NOT NULL AND NOT (` + late + `)`},
	{"open intents", `SELECT object_id, version, item_id FROM object_version WHERE status <> 'recorded'`},
	{"objects that were named and never made (I10)", `SELECT id, minted_for FROM object WHERE head = 0`},
	{"objects whose head is not their number of versions", `SELECT o.id, o.head, COUNT(*) FROM object o
		JOIN object_version v ON v.object_id = o.id GROUP BY o.id HAVING COUNT(*) <> o.head OR MAX(v.version) <> o.head`},
	{"jobs that did not make exactly one version", `SELECT i.id, COUNT(v.version) FROM work_item i LEFT JOIN object_version v
		ON v.item_id = i.id WHERE i.action = 'ingest' GROUP BY i.id HAVING COUNT(v.version) <> 1`},
	{"versions without a job", `SELECT object_id, version FROM object_version WHERE item_id NOT IN (SELECT id FROM work_item)`},
	{"identifiers of no object", `SELECT local_id, ark FROM identifier WHERE ark NOT IN (SELECT id FROM object)`},
	{"items that completed more or less than once", `SELECT item_id, COUNT(*) FROM event
		WHERE json_extract(data, '$.status') = 'completed' GROUP BY item_id HAVING COUNT(*) <> 1`},
	{"jobs that were given more or less than one identifier (I10)", `SELECT i.id, COUNT(e.id) FROM work_item i LEFT JOIN event e
		ON e.item_id = i.id AND e.type = 'identifier-assignment' WHERE i.action = 'ingest' GROUP BY i.id HAVING COUNT(e.id) <> 1`},
	{"jobs that were recorded more or less than once", `SELECT i.id, COUNT(e.id) FROM work_item i LEFT JOIN event e
		ON e.item_id = i.id AND e.type = 'recorded' WHERE i.action = 'ingest' GROUP BY i.id HAVING COUNT(e.id) <> 1`},
	{"events without a place in the feed", `SELECT id, type FROM event WHERE feed_seq IS NULL`},
	{"batches without exactly one report", `SELECT i.id, COUNT(r.closing) FROM work_item i LEFT JOIN report r ON r.batch_id = i.id
		WHERE i.action = 'batch' GROUP BY i.id HAVING COUNT(r.closing) <> 1`},
	{"reports that miss jobs", `SELECT r.batch_id, r.jobs FROM report r WHERE r.jobs <> r.completed OR r.jobs <>
		(SELECT COUNT(*) FROM work_item i WHERE i.parent_id = r.batch_id)`},
	{"versions whose files the inventory does not know", `SELECT v.object_id, v.version FROM object_version v WHERE NOT EXISTS
		(SELECT 1 FROM file f WHERE f.object_id = v.object_id AND f.version = v.version)`},
}

// checkInvariants runs the invariants on a stopped Holdfast without open work.
func (h *holdfast) checkInvariants() {
	h.t.Helper()
	const shown = 10
	report := func(name string, found []string) {
		if len(found) > 0 {
			h.t.Errorf("%s: %d\n\t%s", name, len(found), strings.Join(found[:min(len(found), shown)], "\n\t"))
		}
	}
	for _, i := range invariants {
		report(i.name, h.query("registry.db", i.violations))
	}
	watched := h.query("registry.db", `SELECT json_extract(w.spec, '$.subject') FROM work_item JOIN work_detail w ON w.item_id = id WHERE `+late)
	if h.redis != "" {
		report("keys left in Redis", slices.DeleteFunc(h.redisKeys(), func(key string) bool {
			return slices.ContainsFunc(watched, func(id string) bool { return strings.Contains(key, id) })
		}))
	} else {
		report("entries left in the interim store", h.query("interim.db", `SELECT attempt_id, key FROM entry`))
	}
	if h.database == "" {
		report("damage to registry.db", slices.DeleteFunc(h.query("registry.db", `PRAGMA integrity_check`), func(s string) bool { return s == "ok" }))
	}
	var left []string
	for name := range files(h.t, h.place("staging")) {
		// An upload that was sent and acknowledged is kept until its sender submits it or takes it
		// back; one that was killed between the two sends another one.
		if slices.ContainsFunc(watched, func(id string) bool { return strings.HasPrefix(name, "items/"+id+"/") }) {
			continue
		}
		// A kill between the two names of a complete upload leaves both.
		id, upload := strings.CutPrefix(strings.TrimPrefix(name, "extensions/holdfast-scratch/pending/"), "uploads/")
		id, _, _ = strings.Cut(id, "/")
		if name == "extensions/holdfast-scratch/config.json" {
			continue // says what the folder is; it comes with the first checkpoint and stays
		}
		if !upload || h.count(`SELECT COUNT(*) FROM work_detail WHERE json_extract(spec, '$.url') = $1`, "upload:"+id) > 0 {
			left = append(left, name)
		}
	}
	report("left in staging", left)
	if h.bucket != nil {
		report("uploads in parts that nobody ended", h.bucket.Uploads(h.t))
	}
}

// redisKeys lists what is in Redis.
func (h *holdfast) redisKeys() []string {
	h.t.Helper()
	options, err := redis.ParseURL(h.redis)
	if err != nil {
		h.t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	keys, err := client.Keys(h.t.Context(), "*").Result()
	if err != nil {
		h.t.Fatal(err)
	}
	return keys
}

// count returns a number that a statement finds.
func (h *holdfast) count(statement string, args ...any) (n int) {
	h.t.Helper()
	for _, row := range h.query("registry.db", statement, args...) {
		if _, err := fmt.Sscan(row, &n); err != nil {
			h.t.Fatalf("%s: %v", statement, err)
		}
	}
	return n
}

// TestInvariantsHold proves that the statements are valid, and that they have rows to look at.
func TestInvariantsHold(t *testing.T) {
	s := newChaosSource(t, 1)
	h := up(t)
	if _, code := h.submit(s.url + "/files.checkm"); code != 0 {
		t.Fatalf("submit ended with %d", code)
	}
	h.stop()
	h.checkInvariants()
	for _, table := range []string{"work_item", "attempt", "work_dep", "object", "object_version", "identifier", "event", "report", "file"} {
		if n := h.count(`SELECT COUNT(*) FROM ` + table); n == 0 {
			t.Errorf("table %s is empty", table)
		}
	}
}
