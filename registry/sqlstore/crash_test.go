package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

var errFault = errors.New("the disk said no")

// TestFaultAtEachStatement makes each statement of each write fail once. The call must fail and
// change nothing at all; then it is made again and must succeed.
func TestFaultAtEachStatement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	l := &life{clock: newClock()}
	l.s = open(t, path, l.clock.now)
	look := reader(t, path)
	look.SetMaxOpenConns(1)
	// It changes when anybody else has committed, be it the same pages again.
	version := func() string { return column(t, look, `PRAGMA data_version`)[0] }
	faults := 0
	for _, c := range l.script() {
		before, seen := dump(t, look), version()
		for n := range looptest.Steps(t) {
			asked := 0
			l.s.SetFault(func(string) error {
				if asked++; asked == n {
					return errFault
				}
				return nil
			})
			err := c.run(t.Context())
			if asked < n {
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				break
			}
			faults++
			if !errors.Is(err, errFault) {
				t.Errorf("%s: fault at statement %d was answered with %v", c.name, n, err)
			}
			if now := version(); now != seen {
				seen = now
				after := dump(t, look)
				for _, table := range c.portions {
					delete(before, table)
					delete(after, table)
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Fatalf("%s: fault at statement %d left a change:\n%s", c.name, n, diff)
				}
			}
		}
		l.s.SetFault(nil)
		registrytest.CheckInvariants(t, l.s)
		checkReady(t.Context(), t, l.s)
	}
	l.check(t, l.s)
	t.Logf("%d faults", faults)
}

// check looks at how the story ends.
func (l *life) check(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	it, err := s.Item(t.Context(), l.batch)
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.ReportOf(t.Context(), l.batch, 0)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Object(t.Context(), l.ark)
	if err != nil {
		t.Fatal(err)
	}
	if it.Status != registry.Failed || it.Closing != 2 || report.Closing != 2 || report.Completed != 1 || report.Failed != 2 ||
		o.Head != 1 || o.Files != 2 {
		t.Errorf("batch %s closing %d, report %+v, object %+v", it.Status, it.Closing, report, o)
	}
	if d := o.Deletion; o.Gone != registry.DeletionDeleted || d == nil || d.AskedBy != "asker" || d.ApprovedBy != "approver" || d.DeletedAt == nil {
		t.Errorf("object %s, its deletion %+v", o.Gone, d)
	}
	if kept, err := s.Items(t.Context(), registry.ItemQuery{Collection: "short"}); err != nil || len(kept.Rows) > 0 {
		t.Errorf("%d items are left of what was kept for a day, %v", len(kept.Rows), err)
	}
	for key, want := range map[string]registry.Status{
		"a": registry.Completed, "b": registry.Aborted, "c": registry.Aborted, "d": registry.Pending, "e": registry.Pending,
	} {
		it, err := s.Item(t.Context(), l.graph.Items[key])
		if err != nil {
			t.Fatal(err)
		}
		if it.Status != want {
			t.Errorf("%s of the graph is %s, want %s", key, it.Status, want)
		}
	}
}

// reader opens a database for looking at it.
func reader(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=query_only(1)&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// dump returns all rows of all tables.
func dump(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range column(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'goose%'
		AND name NOT LIKE 'sqlite%' ORDER BY name`) {
		columns := column(t, db, fmt.Sprintf(`SELECT 'quote("' || name || '")' FROM pragma_table_info('%s')`, table))
		all[table] = column(t, db, fmt.Sprintf(`SELECT %s AS line FROM "%s" ORDER BY line`, strings.Join(columns, "||'|'||"), table))
	}
	return all
}

func column(t *testing.T, db *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKillAtEachStatement copies the database's files before each statement that follows a change,
// as a SIGKILL would leave them. It opens each copy: acknowledged writes must be there, and all
// work must continue to its end.
func TestKillAtEachStatement(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "registry.db")
	l := &life{clock: newClock()}
	l.s = open(t, path, l.clock.now)
	look := reader(t, path)
	type state struct {
		path      string
		committed map[string][]string
	}
	var states []state
	var last string
	l.s.SetFault(func(string) error {
		if now := stamp(t, path); now != last {
			last = now
			copied := copyFiles(t, path, filepath.Join(dir, fmt.Sprint(len(states))))
			states = append(states, state{copied, dump(t, look)})
		}
		return nil
	})
	for _, c := range l.script() {
		if err := c.run(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	l.s.SetFault(nil)
	for i, st := range states {
		s := open(t, st.path, l.clock.now)
		if diff := cmp.Diff(st.committed, dump(t, reader(t, st.path))); diff != "" {
			t.Errorf("state %d came back changed:\n%s", i, diff)
		}
		registrytest.CheckInvariants(t, s)
		if i%5 == 0 {
			finishAll(t, s, l.clock)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d states", len(states))
}

// stamp tells whether the files are as they were. The index beside the log is rebuilt by whoever
// opens it.
func stamp(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	for _, p := range []string{path, path + "-wal"} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(&b, info.Size(), info.ModTime().UnixNano(), " ")
	}
	return b.String()
}

func copyFiles(t *testing.T, from, to string) string {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// finishAll does what a fresh process does after the kill: take back the leases and let every item
// do its steps.
func finishAll(t *testing.T, s *sqlstore.Store, c *clock) {
	t.Helper()
	if _, err := s.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, idle := 0, 0; idle < 2; {
		c.pass(2 * time.Hour)
		idle++
		for _, stage := range registry.Stages() {
			n++
			claim, err := s.Claim(t.Context(), registry.ClaimRequest{
				RequestID: fmt.Sprintf("after-%d", n), Stage: stage, Worker: "w2", Lease: time.Minute, MaxAttempts: 5,
			})
			var refused *registry.NotClaimable
			if errors.As(err, &refused) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			idle = 0
			if stage == registry.Report {
				if _, err := s.CloseReport(t.Context(), claim.Lease); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Settle(t.Context(), registry.Settlement{Lease: claim.Lease, Outcome: registry.OutcomeDone}); err != nil {
				t.Fatal(err)
			}
		}
	}
	registrytest.CheckInvariants(t, s)
	page, err := s.Items(t.Context(), registry.ItemQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range page.Rows {
		holds, err := s.Holds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !it.Status.Settled() && len(holds) == 0 && it.Status != registry.Prepare {
			w, err := s.Why(t.Context(), it.ID)
			if failed := slices.ContainsFunc(page.Rows, func(o registry.WorkItem) bool { return o.Status == registry.Failed }); failed && w.Reason == registry.ReasonBlocked {
				continue // it waits for the success of one that failed, as it should
			}
			t.Errorf("item %s stays %s at %s: %s (%v)", it.ID, it.Status, it.Stage, w.Sentence, err)
		}
	}
}
