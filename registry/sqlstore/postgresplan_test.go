package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqldb"
)

var (
	explained  = regexp.MustCompile(`^\s*(SELECT|UPDATE|INSERT|DELETE|WITH)`)
	anyTable   = regexp.MustCompile(`Seq Scan on (work_item|work_detail|work_dep|event|attempt)\b`)
	byIndex    = regexp.MustCompile(`Index (Only )?Scan using \w+ on (work_item|work_detail|work_dep|event|attempt)\b`)
	wholeTable = regexp.MustCompile(`Seq Scan on (work_item|event|attempt)\b`)
	sortsFound = regexp.MustCompile(`Sort Key: \w+\.seq( DESC)?\n\s+->  Nested Loop`)
)

// TestQueryPlans_PostgreSQL checks PostgreSQL's plans in a database of thousands of items with
// statistics: no statement for an item, and no list by one field, may scan a whole table. A list by
// text in the order of the text index must be able to stop at a full page.
func TestQueryPlans_PostgreSQL(t *testing.T) {
	address := migrated(t)
	l := &life{clock: &clock{at: time.Now().UTC().Truncate(time.Microsecond)}}
	l.s = openURL(t, address, l.clock.now)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// While somebody looks at the database as it was, VACUUM cannot mark pages as seen by all, and
	// no index is read alone: plans must do without, since in a busy cluster there is always
	// somebody.
	onlooker, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer onlooker.Rollback()
	if _, err := onlooker.ExecContext(t.Context(), `SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	if err := registrybench.Seed(t.Context(), address, registrybench.Seeding{Items: 20_000, Collections: 30, Jobs: 50, History: true, Seed: 1}); err != nil {
		t.Fatal(err)
	}

	written := l.housekeeping(t)
	rec := &recorder{real: db.Driver(), dsn: address, queries: map[string]bool{}, args: map[string][]any{}}
	if err := l.s.SetReader(sql.OpenDB(rec)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(search.SetSampleSizes(100, 60))
	l.readLists(t)

	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	looked, byText := 0, 0
	for _, queries := range []map[string]bool{written, rec.queries} {
		for query := range queries {
			if !explained.MatchString(query) || strings.Contains(query, "pg_advisory") {
				continue
			}
			looked++
			if strings.Contains(query, "ORDER BY found.seq") {
				byText++
			}
			plan := explainPostgres(t, conn, looked, query, rec.args[query])
			if text := strings.Join(plan, "\n"); sortsFound.MatchString(text) {
				t.Errorf("%s\nin %s", text, query)
			}
			for _, step := range plan {
				if wholeTable.MatchString(step) {
					t.Errorf("%s\nin %s", step, query)
				}
			}
		}
	}
	if looked < 60 || byText < 5 {
		t.Errorf("only %d statements were seen, %d lists in the order of the text index", looked, byText)
	}
}

// TestQueryPlans_SmallTables checks that no statement of a claim, a settlement or the relay reads a
// whole table even if it was planned while the tables were small: the plan is kept when they grow.
func TestQueryPlans_SmallTables(t *testing.T) {
	used, small := migrated(t), migrated(t)
	l := &life{clock: &clock{at: time.Now().UTC().Truncate(time.Microsecond)}}
	l.s = openURL(t, used, l.clock.now)
	for address, items := range map[string]int{used: 2000, small: 40} {
		if err := registrybench.Seed(t.Context(), address, registrybench.Seeding{Items: items, Collections: 2, Jobs: 10, History: true, Seed: 1}); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("pgx", small)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	written := l.housekeeping(t)
	looked := 0
	for query := range written {
		sweeps := strings.Contains(query, "ORDER BY a.lease_until") // looks at all live attempts
		if !explained.MatchString(query) || strings.Contains(query, "pg_advisory") || sweeps {
			continue
		}
		looked++
		plan := explainPostgres(t, conn, looked, query, nil)
		for i, step := range plan {
			wholeIndex := byIndex.MatchString(step) && (i+1 == len(plan) || !strings.Contains(plan[i+1], "Index Cond"))
			if wholeIndex || anyTable.MatchString(step) {
				t.Errorf("%s\nin %s\n%s", step, query, strings.Join(plan, "\n"))
			}
		}
	}
	if looked < 40 {
		t.Errorf("only %d statements were seen", looked)
	}
}

// housekeeping brings items through stages and does what a relay does meanwhile. It returns the
// statements of its writes.
func (l *life) housekeeping(t *testing.T) (written map[string]bool) {
	t.Helper()
	ctx := t.Context()
	var mu sync.Mutex
	written = map[string]bool{}
	l.s.SetFault(func(query string) error {
		mu.Lock()
		defer mu.Unlock()
		written[query] = true
		return nil
	})
	defer l.s.SetFault(nil)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.s.Due(ctx, registry.DueRequest{Window: 2, Renudge: time.Minute, RenudgeMax: time.Hour}))
	for i, outcome := range []registry.Outcome{registry.OutcomeDone, registry.OutcomeRetry, registry.OutcomeSnooze, registry.OutcomeFailed} {
		for _, stage := range []registry.Stage{registry.Estimate, registry.Notify} {
			c, err := l.s.Claim(ctx, registry.ClaimRequest{
				RequestID: fmt.Sprintf("%s-%d", stage, i), Stage: stage, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Hour,
			})
			must(c, err)
			must(l.s.Renew(ctx, registry.RenewRequest{
				Worker: registry.WorkerInfo{ID: "w", Capacity: map[registry.Stage]int{stage: 1}}, Lease: time.Minute,
				Beats: []registry.Beat{{Lease: c.Lease, Advanced: true, DoneBytes: 1, DoneFiles: 1}},
			}))
			if outcome == registry.OutcomeFailed && stage == registry.Notify {
				outcome = registry.OutcomeDone // it never fails
			}
			must(l.s.Settle(ctx, registry.Settlement{
				Lease: c.Lease, Outcome: outcome, MaxAttempts: 5, Error: "timeout", Class: registry.SystemFault, Delay: time.Minute,
				Reason: map[bool]registry.Reason{true: registry.ReasonNoSpace}[outcome == registry.OutcomeSnooze],
			}))
		}
	}
	l.clock.pass(2 * time.Minute)
	must(l.s.Sweep(ctx, time.Minute))
	must(l.s.Reclaim(ctx))
	must(l.s.Due(ctx, registry.DueRequest{Window: 2, Renudge: time.Minute, RenudgeMax: time.Hour}))
	return written
}

// readLists asks for lists by each field, for a later page of some, and for what pages show beside
// them.
func (l *life) readLists(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var some registry.WorkItem
	for _, text := range []string{
		"", "state:failed", "state:pending", "state:held", "-state:completed", "status:running", "status:failed", "stage:download", "action:batch", "collection:collection_00",
		"collection:collection_19", "class:content", "cause:0f0f0f0f0f0f0f0f", "by:\"depositor 7\"", "by:nobody", "held:yes", "held:no", "retries:>0", "older:1h", "newer:1h", "name:thesis",
		"name:nowhere", "title:nowhere", "title:letters -title:nowhere", "error:timeout", "error:nowhere", "error:timeout state:completed", "error:timeout state:failed", "thesis", "nowhere", "thesis glaciers",
		"manuscript collection:collection_00", "graph:g", "pd collection:collection_19", "x4 stage:download",
	} {
		match, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		q := registry.ItemQuery{Match: match}
		if _, err := l.s.Failures(ctx, q); err != nil {
			t.Fatalf("failures of %s: %v", text, err)
		}
		for range 2 {
			page, err := l.s.Items(ctx, q)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if len(page.Rows) > 0 {
				some = page.Rows[0]
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	for _, text := range []string{"id:" + some.ID, "id:" + some.ID[:9], "batch:" + some.ParentID, "batch:" + some.ParentID + " state:failed", some.ID} {
		match, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if page, err := l.s.Items(ctx, registry.ItemQuery{Match: match}); err != nil || len(page.Rows) == 0 && !strings.Contains(text, "state") {
			t.Errorf("%s: %d rows, %v", text, len(page.Rows), err)
		}
	}
	if _, err := l.s.Why(ctx, some.ID); err != nil {
		t.Error(err)
	}
	if _, err := l.s.QueueStatus(ctx); err != nil {
		t.Error(err)
	}
	if _, err := l.s.Events(ctx, some.ID, 0, 10); err != nil {
		t.Error(err)
	}
	if _, err := l.s.Feed(ctx, registry.FeedQuery{After: 19_000}); err != nil {
		t.Error(err)
	}
}

// explainPostgres returns the steps of a query's plan: of a read with the arguments that it had, of
// a statement of a write for whatever arguments.
func explainPostgres(t *testing.T, conn *sql.Conn, nth int, query string, args []any) (steps []string) {
	t.Helper()
	explain := "EXPLAIN " + query
	if args == nil {
		statements := []string{fmt.Sprintf("PREPARE looked%d AS %s", nth, query)}
		for name, value := range sqldb.WriterSettings() {
			statements = append([]string{fmt.Sprintf("SET %s = '%s'", name, value)}, statements...)
		}
		for _, statement := range statements {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		explain = fmt.Sprintf("EXPLAIN EXECUTE looked%d", nth)
		if n := parameters(query); n > 0 {
			explain += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
		}
	}
	rows, err := conn.QueryContext(t.Context(), explain, args...)
	if err != nil {
		t.Fatalf("%s: %v", explain, err)
	}
	defer rows.Close()
	for rows.Next() {
		var step string
		if err := rows.Scan(&step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// parameters counts the parameters of a query.
func parameters(query string) (n int) {
	for _, found := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(query, -1) {
		if i, err := strconv.Atoi(found[1]); err == nil {
			n = max(n, i)
		}
	}
	return n
}
