package sqlstore_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// TestMigrate_FilledReports: reports that programs of schema 27 have made are counted anew: what failed at its last step was recorded before, and is preserved.
// Jobs from before rows were counted have their line for a row. What is migrated can be read, paged, and added to.
func TestMigrate_FilledReports(t *testing.T) {
	t.Parallel()
	for driver, address := range map[string]func(*testing.T) string{
		"sqlite": func(t *testing.T) string { return sqlstoretest.SQLite(t) },
		"pgx":    func(t *testing.T) string { return postgrestest.Shared(t).Schema(t) },
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := sqldb.Migrate(t.Context(), at)
			must(err)
			must(sqldb.MigrateTo(t.Context(), at, 27))
			const report = `INSERT INTO report (batch_id, closing, created_at, since, jobs, completed, failed, content, stopped, now_completed, still_failed, newly_failed, now_stopped, new_jobs)
				VALUES ('b', %d, 1, 0, 4, 1, 3, 1, 1, 0, 0, 0, 0, 0)`
			const job = `INSERT INTO report_job (batch_id, closing, row_no, item_id, name, status, stage, state, spec, error, error_class, cause, code, remedy, change)
				VALUES ('b', %d, %d, '%s', 'job', '%s', '%s', '{}', '{}', '', '%s', '', '', '', '')`
			for closing := 1; closing <= 2; closing++ {
				execute(t, driver, strings.TrimPrefix(at, "sqlite:"), fmt.Sprintf(report, closing))
				for i, j := range [][3]string{
					{"completed", "notify", ""}, {"failed", "notify", "system"}, {"failed", "download", "content"}, {"cancelled", "notify", ""},
				} {
					execute(t, driver, strings.TrimPrefix(at, "sqlite:"), fmt.Sprintf(job, closing, 5+2*i, fmt.Sprint("job-", i), j[0], j[1], j[2]))
				}
			}
			_, _, err = sqldb.Migrate(t.Context(), at)
			must(err)
			s := openURL(t, at, nil)
			for closing := int64(1); closing <= 2; closing++ {
				r, err := s.ReportOf(t.Context(), "b", closing)
				must(err)
				if r.Jobs != 4 || r.Completed != 1 || r.Preserved != 1 || r.Failed != 2 || r.Content != 1 || r.Stopped != 1 {
					t.Errorf("report %d: %+v", closing, r)
				}
				lists := map[registry.ReportList][]int64{}
				for _, list := range registry.ReportLists() {
					for after := int64(0); ; {
						jobs, err := s.ReportJobs(t.Context(), registry.ReportQuery{BatchID: "b", Closing: closing, List: list, AfterRow: after, Limit: 1})
						must(err)
						if len(jobs) == 0 {
							break
						}
						if after = jobs[0].Row; jobs[0].Line != after || jobs[0].Preserved != (list == registry.ListPreserved) {
							t.Errorf("%s: %+v", list, jobs[0])
						}
						lists[list] = append(lists[list], after)
					}
				}
				want := map[registry.ReportList][]int64{registry.ListCompleted: {5}, registry.ListPreserved: {7}, registry.ListFailed: {9, 11}}
				if diff := cmp.Diff(want, lists); diff != "" {
					t.Errorf("report %d (-want +got):\n%s", closing, diff)
				}
			}
			must(s.Close())
			must(sqldb.MigrateTo(t.Context(), at, 27))
			_, _, err = sqldb.Migrate(t.Context(), at)
			must(err)
			if r, err := openURL(t, at, nil).ReportOf(t.Context(), "b", 1); err != nil || r.Failed != 2 || r.Preserved != 1 {
				t.Errorf("there and back: %+v, %v", r, err)
			}
		})
	}
}

// TestMigrate_OwnItems: of items from before there were spare slots it is said as of new ones whether all that they name lies here.
func TestMigrate_OwnItems(t *testing.T) {
	t.Parallel()
	for driver, address := range map[string]func(*testing.T) string{
		"sqlite": func(t *testing.T) string { return sqlstoretest.SQLite(t) },
		"pgx":    func(t *testing.T) string { return postgrestest.Shared(t).Schema(t) },
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := sqldb.Migrate(t.Context(), at)
			must(err)
			s := openURL(t, at, nil)
			must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "own"}, "admin"))
			_, err = s.BeginUpload(t.Context(), registry.NewUpload{ID: "u", Keep: time.Hour})
			must(err)
			must(s.FinishUpload(t.Context(), registry.Upload{ID: "u"}))
			for i, address := range []string{registry.UploadURL("u"), "https://example.org/x"} {
				made, err := s.Submit(t.Context(), registry.Submission{Collection: "own", Spec: registry.Spec{Type: registry.BatchManifest, URL: address}})
				must(err)
				claimed, err := s.Claim(t.Context(), registry.ClaimRequest{
					RequestID: fmt.Sprint(i), Stage: registry.Expand, Hint: made.BatchID, Worker: "w", Lease: time.Hour,
				})
				must(err)
				var jobs []registry.NewJob
				for _, kind := range registry.PayloadTypes() {
					n := int64(len(jobs) + 1)
					jobs = append(jobs, registry.NewJob{Line: n, Row: n, Spec: registry.Spec{Type: kind, URL: address}})
				}
				_, err = s.AddJobs(t.Context(), claimed.Lease, jobs)
				must(err)
			}
			must(s.Close())
			owned := func() (ids []string) {
				db, err := sql.Open(driver, strings.TrimPrefix(at, "sqlite:"))
				must(err)
				defer db.Close()
				return column(t, db, `SELECT id FROM work_item WHERE own = 1 ORDER BY id`)
			}
			want := owned()
			if len(want) != len(registry.PayloadTypes()) { // the batch, and the jobs of all types but one
				t.Errorf("%d items are our own, want %d", len(want), len(registry.PayloadTypes()))
			}
			must(sqldb.MigrateTo(t.Context(), at, 30))
			_, _, err = sqldb.Migrate(t.Context(), at)
			must(err)
			if diff := cmp.Diff(want, owned()); diff != "" {
				t.Errorf("(-new +migrated):\n%s", diff)
			}
		})
	}
}
