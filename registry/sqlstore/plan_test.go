package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// recorder is a driver that notes the queries that go through it.
type recorder struct {
	real driver.Driver
	dsn  string

	mu      sync.Mutex
	queries map[string]bool
	args    map[string][]any // of each query, those of its last run
}

func (r *recorder) note(query string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queries[query] = true
}

// Connect implements driver.Connector.
func (r *recorder) Connect(context.Context) (driver.Conn, error) {
	c, err := r.real.Open(r.dsn)
	return recordingConn{c, r}, err
}

// Driver implements driver.Connector.
func (r *recorder) Driver() driver.Driver { return r.real }

type recordingConn struct {
	driver.Conn
	r *recorder
}

// QueryContext implements driver.QueryerContext.
func (c recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.r.note(query)
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a.Value
	}
	c.r.mu.Lock()
	c.r.args[query] = values
	c.r.mu.Unlock()
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// CheckNamedValue implements driver.NamedValueChecker: PostgreSQL's driver takes lists.
func (c recordingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Tables that grow without bound, with the aliases they have in queries, and h: a condition of a row
// must not read all holds. lock_wait, worker and the like stay small.
var scanned = regexp.MustCompile(`SCAN (work_item|attempt|event|object|object_version|stored_file|file|identifier|lock|work_dep|reservation|i|a|h|o|v|f|m|r|l|s)\b`)

// Indexes that lists are read by.
var listed = regexp.MustCompile(`INDEX work_item_(new|list|collection|place|collection_place|by|class|requeued|noted) `)

// What waits, which is counted.
var waiting = regexp.MustCompile(`SCAN (i USING (COVERING )?INDEX work_item_(ready|kept|later)|work_item USING COVERING INDEX work_item_offered)$`)

// Indexes that hold few rows: attempts that live, files whose check waits, runs or failed, or that
// are damaged. Of open lanes there may be many, but the first of another collection ends the search.
// v are values of the statement itself.
var few = regexp.MustCompile(`USING (COVERING )?INDEX (attempt_live|lane_turn|stored_file_item|stored_file_damaged)|^SCAN v$`)

// All reservations of a volume: only the search for another item that holds room reads them, and it
// ends with the first.
var ofVolume = regexp.MustCompile(`INDEX reservation_volume `)

// All objects, or all of a collection: a search that knows which may match reads only those.
var allObjects = regexp.MustCompile(`INDEX object_(collection_)?list `)

// A search for no more than the tenant finds everything.
var everything = regexp.MustCompile(`INDEX work_item_new \(tenant=\?\)`)

// TestQueryPlans checks SQLite's plans for every statement in a batch's life and for every list:
// each must use an index, however large the table is. Without statistics, an empty database has the
// plans of a full one.
func TestQueryPlans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	l := &life{clock: newClock()}
	l.s = open(t, path, l.clock.now)
	plain := reader(t, path)
	rec := &recorder{real: plain.Driver(), dsn: "file:" + path + "?_pragma=query_only(1)", queries: map[string]bool{}, args: map[string][]any{}}
	if err := l.s.SetReader(sql.OpenDB(rec)); err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	l.s.SetFault(func(query string) error { rec.note(query); written[query] = true; return nil })
	for _, c := range l.script() {
		if err := c.run(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if l.batch != "" {
			if _, err := l.s.Why(t.Context(), l.batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.readAll(t)
	l.s.SetFault(nil)
	for query := range rec.queries {
		if !regexp.MustCompile(`^\s*(SELECT|UPDATE|INSERT|DELETE)`).MatchString(query) {
			continue
		}
		for _, step := range explain(t, plain, query) {
			if everything.MatchString(step) && !strings.Contains(query, " LIMIT ") && !strings.Contains(query, "COUNT(*)") {
				t.Errorf("%s\nin %s", step, query)
			}
			if written[query] && waiting.MatchString(step) {
				t.Errorf("%s\nin %s, which is part of a write", step, query)
			}
			if scanned.MatchString(step) && !waiting.MatchString(step) && !few.MatchString(step) {
				t.Errorf("%s\nin %s", step, query)
			}
			if ofVolume.MatchString(step) && !strings.Contains(query, "EXISTS (SELECT 1 FROM reservation r JOIN work_item i") {
				t.Errorf("%s\nin %s, which adds up what others hold", step, query)
			}
			if allObjects.MatchString(step) && strings.Contains(query, "o.id IN (") {
				t.Errorf("%s\nin %s, which names the objects", step, query)
			}
			// The indexes of lists hold all that waits at a stage, which may be nearly everything.
			if written[query] && listed.MatchString(step) && !strings.HasPrefix(query, "INSERT INTO hold") { // which are set one by one, rarely
				t.Errorf("%s\nin %s, which is part of a write", step, query)
			}
		}
	}
	if len(rec.queries) < 100 {
		t.Errorf("only %d queries were seen", len(rec.queries))
	}
}

// explain returns the steps of a query's plan.
func explain(t *testing.T, db *sql.DB, query string) (steps []string) {
	t.Helper()
	var args []any
	for n := 1; strings.Contains(query, fmt.Sprintf("$%d", n)); n++ {
		args = append(args, 1)
	}
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("explain %s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// readAll asks everything that a page asks.
func (l *life) readAll(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := l.s.Items(ctx, registry.ItemQuery{Limit: 1})
	must(first, err)
	for _, q := range []registry.ItemQuery{
		{},
		{After: first.Next},
		{Action: registry.Batch, After: first.Next},
		{Action: registry.Ingest, Status: registry.Failed},
		{Status: registry.Failed, After: first.Next},
		{Collection: "c"},
		{Stage: registry.Download},
		{Text: "x"},
		{ParentID: l.batch},
		{ParentID: l.batch, Status: registry.Failed},
		{ParentID: l.batch, Stage: registry.Download},
	} {
		must(l.s.Items(ctx, q))
	}
	for _, text := range []string{
		"state:failed", "state:pending,held", "-state:completed", "status:running", "stage:download", "action:batch", "action:batch state:failed",
		"collection:c", "collection:c state:failed", "collection:c,d stage:download", "batch:" + l.batch, "batch:" + l.batch + " state:failed", "batch:a,b", "graph:g",
		"id:" + l.batch, "id:" + l.batch[:9], "name:thesis", "title:thesis", "error:timeout", "error:timeout state:failed", "class:content", "cause:0f0f0f0f0f0f0f0f", "cause:0f0f0f0f0f0f0f0f batch:" + l.batch, "by:a", "held:yes", "held:no",
		"priority:<3", "storage:s state:failed", "retries:>0", "older:1h", "newer:1h", "older:1h state:failed", "thesis letters", l.batch, "x",
	} {
		match, err := query.Parse(text)
		must(match, err)
		must(l.s.Items(ctx, registry.ItemQuery{Match: match}))
		must(l.s.Items(ctx, registry.ItemQuery{Match: match, Within: []string{"c"}}))
		must(l.s.CountItems(ctx, registry.ItemQuery{Match: match}))
		must(l.s.CountItems(ctx, registry.ItemQuery{Match: match, Most: 1000}))
		must(l.s.CountItems(ctx, registry.ItemQuery{Match: match, Within: []string{"c"}, Most: 1000}))
		must(l.s.Failures(ctx, registry.ItemQuery{Match: match, After: "MSA"}))
		must(l.s.Failures(ctx, registry.ItemQuery{Match: match, Within: []string{"c"}}))
	}
	for _, q := range []registry.ObjectQuery{{}, {Collection: "c"}, {LocalID: "x"}, {Text: "t"}, {Text: l.ark}, {Collection: "c", Text: l.ark}} {
		must(l.s.Objects(ctx, q))
	}
	for _, id := range append(l.jobs, l.batch) {
		must(l.s.Why(ctx, id))
		must(l.s.Events(ctx, id, 0, 10))
		must(l.s.Attempts(ctx, id))
		must(l.s.BatchProgress(ctx, id))
	}
	must(l.s.Graph(ctx, l.graph.GraphID))
	must(l.s.GraphNodes(ctx, l.graph.GraphID, "", 10))
	must(l.s.Around(ctx, l.batch, 10))
	for _, id := range l.graph.Items {
		must(l.s.Around(ctx, id, 10))
		must(l.s.Why(ctx, id))
		_, _, err := l.s.Edges(ctx, id)
		must(nil, err)
	}
	l.readHeld(t)
	must(l.s.QueueStatus(ctx))
	must(l.s.Events(ctx, "", 0, 10))
	must(l.s.Feed(ctx, registry.FeedQuery{Types: []string{"submit", "claim"}, Within: []string{"c", "d"}}))
	must(l.s.Audit(ctx, registry.AuditQuery{}))
	must(l.s.Audit(ctx, registry.AuditQuery{Actor: "a", Types: []string{"submit"}, After: "MSA"}))
	must(l.s.ReportJobs(ctx, registry.ReportQuery{BatchID: l.batch, List: registry.ListFailed, Changes: []registry.JobChange{registry.ChangeNew}}))
	must(l.s.Object(ctx, l.ark))
	must(l.s.Files(ctx, l.ark, 0, "", 10))
	must(l.s.PremisEvents(ctx, l.ark, registry.AfterSeq(0), 10))
	must(l.s.FileHistory(ctx, l.ark, registry.FilePlace{Path: "a", Version: 1}, 10))
	must(l.s.ReceiptKeys(ctx))
	must(l.s.WaitingEvidence(ctx, registry.WaitingQuery{Limit: 10}))
	_, err = l.s.EvidencePlaces(ctx, l.ark)
	must(nil, err)
	must(l.s.BegunEvidence(ctx, l.ark))
	must(l.s.SignEvents(ctx, l.ark, 1, 1))
	must(l.s.TokenByHash(ctx, "h"))
	must(l.s.UploadByID(ctx, "u"))
	must(l.s.BatchesOf(ctx, "u"))
	must(l.s.KnowsObject(ctx, l.ark))
	must(l.s.IncomingOf(ctx, "n"))
	must(l.s.Reclaim(ctx))
}

// readHeld asks what is asked of held items, and of a collection that is released one by one.
func (l *life) readHeld(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	held := registry.Hold{Scope: registry.HoldCollection, Key: "careful", Reason: "r", Actor: "admin"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.s.PutCollection(ctx, registry.Collection{Mnemonic: held.Key, Profile: registry.Profile{ReleaseOneByOne: true}}, "admin"))
	r, err := l.s.Submit(ctx, registry.Submission{Collection: held.Key})
	must(err)
	must(l.s.AddHold(ctx, held))
	must(l.s.AddHold(ctx, registry.Hold{Scope: registry.HoldWorker, Key: "w", Reason: "r", Actor: "admin"}))
	it, err := l.s.Item(ctx, r.BatchID)
	must(err)
	if it.HeldBy == nil || it.HeldBy.Scope != held.Scope {
		t.Errorf("held by %+v", it.HeldBy)
	}
	_, err = l.s.Items(ctx, registry.ItemQuery{})
	must(err)
	must(l.s.RemoveHold(ctx, held.Scope, held.Key, "admin"))
	must(l.s.SetAccepting(ctx, registry.Accepting{On: true, Reason: "r", Actor: "admin"}))
}
