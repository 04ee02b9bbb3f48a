package sqlstore_test

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/reportfile"
)

// BenchmarkReport closes the report of a batch whose jobs ended in all ways, and writes it as JSON
// and CSV. It requeues a tenth of the failed jobs and writes the next report with its difference.
// Meanwhile another item renews its lease; its longest wait is that of the longest transaction
// (R25). The growth of this process must not depend on the number of jobs; it needs Linux.
func BenchmarkReport(b *testing.B) {
	for _, database := range []struct {
		name string
		url  func(testing.TB) string
	}{{"sqlite", sqlstoretest.SQLite}, {"postgres", sqlstoretest.Postgres}} {
		for _, jobs := range []int64{1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/jobs=%d", database.name, jobs), func(b *testing.B) {
				for b.Loop() {
					benchReport(b, database.url(b), jobs)
				}
			})
		}
	}
}

func benchReport(b *testing.B, url string, jobs int64) {
	b.Helper()
	ctx := b.Context()
	b.StopTimer()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
	must(err)
	defer func() { must(s.Close()) }()
	expand := expandingBatch(b, s)
	profile := registry.Profile{Owner: "ark:/99999/fk4owner", Description: strings.Repeat("What a profile says of a collection. ", 30)}
	for row := int64(0); row < jobs; {
		var more []registry.NewJob
		for range min(400, jobs-row) {
			row++
			name := fmt.Sprintf("f%07d.tif", row)
			more = append(more, registry.NewJob{Line: row, Name: name, Priority: 99, Spec: registry.Spec{
				Type: registry.FileType, URL: "https://data.example.org/collection/2026/" + name, Filename: name, SizeBytes: 1024,
				LocalIDs: []string{fmt.Sprintf("local-%07d", row)}, Title: "A photograph", Creator: "Unknown", Profile: profile,
			}})
		}
		_, err := s.AddJobs(ctx, expand, more)
		must(err)
	}
	_, err = s.Settle(ctx, registry.Settlement{Lease: expand, Outcome: registry.OutcomeDone})
	must(err)
	change(b, url, endings, expand.ItemID)
	left, err := s.Items(ctx, registry.ItemQuery{ParentID: expand.ItemID, Limit: 1})
	must(err)
	_, err = s.Command(ctx, registry.Command{ItemID: left.Rows[0].ID, Act: registry.ActCancel, Actor: "admin"})
	must(err)

	other := otherLease(b, s)
	var longest atomic.Int64
	done, ended := make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(done); <-ended })
	defer stop()
	go func() {
		defer close(ended)
		for {
			begun := time.Now()
			_, err := s.Renew(ctx, registry.RenewRequest{Worker: registry.WorkerInfo{ID: "w"}, Lease: time.Hour, Beats: []registry.Beat{{Lease: other}}})
			if err != nil {
				b.Error(err)
			}
			longest.Store(max(longest.Load(), int64(time.Since(begun))))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	before := memory(b, "VmRSS:")
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the most so far is what is used now
		b.Skip(err)
	}
	b.StartTimer()
	begun := time.Now()
	first := closeReport(b, s, expand.ItemID, 1)
	b.ReportMetric(time.Since(begun).Seconds(), "s-close")
	written := time.Now()
	must(reportfile.JSON(ctx, io.Discard, s, first, registry.ReportQuery{}))
	must(reportfile.CSV(io.Discard, reportfile.Jobs(ctx, s, registry.ReportQuery{BatchID: first.BatchID, Closing: first.Closing})))
	b.ReportMetric(time.Since(written).Seconds(), "s-write")

	b.StopTimer()
	change(b, url, []string{runAgain}, expand.ItemID)
	_, err = s.Command(ctx, registry.Command{ItemID: expand.ItemID, Act: registry.ActUpdateReport, Actor: "admin"})
	must(err)
	b.StartTimer()
	again := time.Now()
	second := closeReport(b, s, expand.ItemID, 2)
	difference := registry.ReportQuery{BatchID: second.BatchID, Closing: second.Closing, Changes: []registry.JobChange{
		registry.ChangeCompleted, registry.ChangeStillFailed, registry.ChangeNewlyFailed, registry.ChangeStopped,
	}}
	must(reportfile.JSON(ctx, io.Discard, s, second, difference))
	b.ReportMetric(time.Since(again).Seconds(), "s-update")
	b.StopTimer()
	stop()
	b.ReportMetric(float64(memory(b, "VmHWM:")-before)/(1<<20), "growth-MiB")
	b.ReportMetric(time.Duration(longest.Load()).Seconds()*1000, "ms-longest-wait")
	if first.Jobs != jobs || first.Completed != jobs*7/10-1 || first.Stopped != jobs*2/10+1 || first.Content != jobs*5/100 {
		b.Errorf("first report %+v", first)
	}
	if d := second.Difference; d == nil || d.NowCompleted != jobs/100 || d.StillFailed != jobs*9/100 || d.Unchanged != jobs*9/10 {
		b.Errorf("second report %+v", d)
	}
	b.StartTimer()
}

// endings are how the jobs of a batch ended, as if they had been worked at. Of ten seven completed
// and one failed, every other one of these because of the deposit; two were stopped. The first job
// is left, so that the store sees the last one end.
var endings = []string{
	`INSERT INTO attempt (item_id, n, request_id, stage, worker, version, started_at, lease_until, stuck_after, progress_at, max_attempts, finished_at, outcome, error, remedy)
	SELECT id, 1, id, 'process', 'w', '1', 1, 1, 1, 1, 5, 2, 'failed', 'it could not be stored', 'free some room' FROM work_item WHERE parent_id = $1 AND row_no > 1`,
	`UPDATE work_item SET attempt = 1, stage = CASE WHEN row_no % 10 < 7 THEN 'notify' ELSE 'process' END, ready = 0, nudge_at = NULL, finished_at = 2,
	status = CASE WHEN row_no % 10 < 7 THEN 'completed' WHEN row_no % 10 = 7 THEN 'failed' WHEN row_no % 20 = 8 THEN 'cancelled'
		WHEN row_no % 20 = 9 THEN 'aborted' ELSE 'deleted' END,
	error_class = CASE WHEN row_no % 20 = 7 THEN 'content' WHEN row_no % 20 = 17 THEN 'system' ELSE '' END,
	note = CASE WHEN row_no % 10 < 7 THEN '' ELSE 'it could not be stored: f' || row_no || '.tif' END,
	state = '{"ark":{"ark":"ark:/99999/fk4' || row_no || '","minted":true,"head":0},"version":1,"plan":"items/x/1/plan.json"}'
	WHERE parent_id = $1 AND row_no > 1`,
	`UPDATE work_dep SET satisfied_at = 2 WHERE item_id = $1 AND requires_id IN (SELECT id FROM work_item WHERE parent_id = $1 AND row_no > 1)`,
	`UPDATE work_item SET blocker_count = 1 WHERE id = $1`,
}

// runAgain is a tenth of the jobs that failed, run again.
const runAgain = `UPDATE work_item SET status = 'completed', error_class = '', note = '' WHERE parent_id = $1 AND status = 'failed' AND row_no % 100 = 7`

// change runs statements on a batch, past the store.
func change(b *testing.B, url string, statements []string, batch string) {
	b.Helper()
	driver, address := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, address = "sqlite", "file:"+path+"?_pragma=synchronous(OFF)&_pragma=busy_timeout(60000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(b.Context(), statement, batch); err != nil {
			b.Fatal(err)
		}
	}
	if driver == "pgx" {
		if _, err := db.ExecContext(b.Context(), `VACUUM ANALYZE`); err != nil {
			b.Fatal(err)
		}
	}
}

// closeReport closes a batch's next report as its worker does.
func closeReport(b *testing.B, s *sqlstore.Store, batch string, closing int64) registry.BatchReport {
	b.Helper()
	c, err := s.Claim(b.Context(), registry.ClaimRequest{RequestID: fmt.Sprint("report-", closing), Stage: registry.Report, Hint: batch, Worker: "w", Lease: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	r, err := s.CloseReport(b.Context(), c.Lease)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Settle(b.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone}); err != nil {
		b.Fatal(err)
	}
	return r
}

// otherLease is an item that runs beside.
func otherLease(b *testing.B, s *sqlstore.Store) registry.Lease {
	b.Helper()
	if _, err := s.Submit(b.Context(), registry.Submission{Collection: "own", Spec: registry.Spec{URL: "http://h/other", Type: registry.FileType}}); err != nil {
		b.Fatal(err)
	}
	c, err := s.Claim(b.Context(), registry.ClaimRequest{RequestID: "other", Stage: registry.Expand, Worker: "w", Lease: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	return c.Lease
}
