package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// TestR22_ReportInPortions: a report that is copied in several transactions shows the jobs as they
// are in the last one, whatever changed in between. Before that there is no report. After a kill
// the next attempt copies only the missing jobs.
func TestR22_ReportInPortions(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) { reportInPortions(t, database(t)) })
	}
}

func reportInPortions(t *testing.T, url string) {
	t.Helper()
	const rows = 1_200 // three portions
	ctx := t.Context()
	c := newClock()
	s := openURL(t, url, c.now)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.PutCollection(ctx, registry.Collection{Mnemonic: "c"}, "admin"))
	r, err := s.Submit(ctx, registry.Submission{Collection: "c"})
	must(err)
	claims := 0
	take := func(stage registry.Stage) registry.Lease {
		t.Helper()
		claims++
		claim, err := s.Claim(ctx, registry.ClaimRequest{RequestID: fmt.Sprint("r", claims), Stage: stage, Hint: r.BatchID, Worker: fmt.Sprint("w", claims), Lease: time.Minute})
		must(err)
		return claim.Lease
	}
	l := take(registry.Expand)
	for row := 0; row < rows; {
		var jobs []registry.NewJob
		for range 400 {
			row++
			jobs = append(jobs, registry.NewJob{Line: int64(row), Name: fmt.Sprint(row), Fault: "it is bad", Spec: registry.Spec{LocalIDs: []string{fmt.Sprint("l", row), "nul\x00"}}})
		}
		_, err := s.AddJobs(ctx, l, jobs)
		must(err)
	}
	_, err = s.Settle(ctx, registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
	must(err)
	ids := map[int64]string{}
	for after := ""; ; {
		page, err := s.Items(ctx, registry.ItemQuery{ParentID: r.BatchID, Limit: 500, After: after})
		must(err)
		for _, it := range page.Rows {
			ids[it.Row] = it.ID
		}
		if after = page.Next; after == "" {
			break
		}
	}
	remove := func(row int64) {
		t.Helper()
		_, err := s.Command(ctx, registry.Command{ItemID: ids[row], Act: registry.ActAbort, Actor: "admin", Confirmed: true})
		must(err)
	}
	copied := 0
	breakAt := func(n int) {
		copied = 0
		s.SetFault(func(query string) error {
			if strings.HasPrefix(query, "INSERT INTO report_job") {
				if copied++; copied == n {
					return errFault
				}
			}
			return nil
		})
	}

	l = take(registry.Report)
	breakAt(2)
	if _, err := s.CloseReport(ctx, l); !errors.Is(err, errFault) {
		t.Fatalf("a fault in the second portion: %v", err)
	}
	s.SetFault(nil)
	if _, err := s.ReportOf(ctx, r.BatchID, 0); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("there is half a report: %v", err)
	}
	remove(7) // in the first portion, which is copied
	_, err = s.Settle(ctx, registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	must(err)
	if _, err := s.CloseReport(ctx, l); !errors.Is(err, registry.ErrClaimLost) {
		t.Errorf("an attempt that is over goes on: %v", err)
	}
	l = take(registry.Report)
	breakAt(2)
	if _, err := s.CloseReport(ctx, l); !errors.Is(err, errFault) {
		t.Fatalf("a fault in the last portion: %v", err)
	}
	s.SetFault(nil)
	remove(8)    // copied by the attempt before
	remove(600)  // copied by this one
	remove(1100) // not copied
	breakAt(0)
	report, err := s.CloseReport(ctx, l)
	must(err)
	s.SetFault(nil)
	if copied != 1+3+1 { // the last portion, and the three rows that had been copied; the last one is looked at once more, since it changed after the draft began
		t.Errorf("%d copies, want the last portion and what changed: 5", copied)
	}
	remove(9) // after the report
	again, err := s.CloseReport(ctx, l)
	must(err)
	if again != report || report.Jobs != rows || report.Failed != rows || report.Stopped != 4 || report.Content != rows-4 {
		t.Errorf("report %+v, again %+v", report, again)
	}
	var next int64
	for after := int64(0); ; after = next {
		jobs, err := s.ReportJobs(ctx, registry.ReportQuery{BatchID: r.BatchID, AfterRow: after, Limit: 500})
		must(err)
		for _, j := range jobs {
			next++
			want := registry.StateFailed
			if next == 7 || next == 8 || next == 600 || next == 1100 {
				want = registry.StateAborted
			}
			if j.Row != next || j.ItemID != ids[next] || j.State != want || len(j.LocalIDs) != 2 || j.LocalIDs[0] != fmt.Sprint("l", next) {
				t.Fatalf("row %d is told as %+v", next, j)
			}
		}
		if len(jobs) < 500 {
			break
		}
	}
	if next != rows {
		t.Errorf("%d rows, want %d", next, rows)
	}
	_, err = s.Settle(ctx, registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
	must(err)
	registrytest.CheckInvariants(t, s)
}
