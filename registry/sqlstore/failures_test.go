package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// failedJobs makes a batch of n jobs that failed at their download, as a worker says that tells
// nothing but a text.
func failedJobs(t *testing.T, s *sqlstore.Store, n int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Submit(t.Context(), registry.Submission{Collection: "c"})
	must(err)
	claim := registry.ClaimRequest{RequestID: "batch", Stage: registry.Expand, Hint: r.BatchID, Worker: "w", Lease: time.Minute, MaxAttempts: 5}
	c, err := s.Claim(t.Context(), claim)
	must(err)
	for begin := 0; begin < n; begin += 500 {
		jobs := make([]registry.NewJob, 0, 500)
		for row := begin; row < min(n, begin+500); row++ {
			jobs = append(jobs, registry.NewJob{
				Line: int64(row + 1), Class: registry.SystemFault,
				Fault: fmt.Sprintf("open https://h.example.org/%d.tif: the server answered 503 Service Unavailable", row),
			})
		}
		_, err := s.AddJobs(t.Context(), c.Lease, jobs)
		must(err)
	}
}

// TestCauses: failed items without a cause form one unnamed group until sweeps compute their
// causes. That includes items failed by a program that knows no causes, whatever their earlier
// failures.
func TestCauses(t *testing.T) {
	t.Parallel()
	const jobs = 12_500
	for name, address := range map[string]func(*testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "registry.db") },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.Shared(t).Schema(t) },
	} {
		t.Run(name, func(t *testing.T) {
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
			must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
			failedJobs(t, s, jobs)
			must(s.Exec(t.Context(), `UPDATE work_item SET cause = '', cause_code = '', cause_host = ''`))
			groups := func() []registry.FailureGroup {
				t.Helper()
				page, err := s.Failures(t.Context(), registry.ItemQuery{})
				must(err)
				return page.Rows
			}
			if got := groups(); len(got) != 1 || got[0].Fingerprint != "" || got[0].Count != jobs {
				t.Fatalf("before any sweep: %+v", got)
			}
			// A sweep does a bounded part of it; each part stays done.
			_, err = s.Sweep(t.Context(), time.Minute)
			must(err)
			if got := groups(); len(got) != 2 || got[0].Count != 10_000 || got[1].Fingerprint != "" || got[1].Count != jobs-10_000 {
				t.Fatalf("after one sweep: %+v", got)
			}
			must(s.Close())
			s = openURL(t, at, nil)
			_, err = s.Sweep(t.Context(), time.Minute)
			must(err)
			want := registry.CauseOf(registry.Estimate, registry.SystemFault, "http-503", "h.example.org", "")
			got := groups()
			if len(got) != 1 || got[0].Count != jobs || got[0].Fingerprint != want.Fingerprint() || got[0].Host != want.Host {
				t.Fatalf("after two sweeps: %+v, want %s", got, want.Fingerprint())
			}
			if name == "SQLite" {
				return // which has one process
			}
			// As a program writes it that knows nothing of causes.
			for _, status := range []string{"pending", "failed"} {
				execute(t, "pgx", at, `UPDATE work_item SET status = '`+status+`', note = 'out of cheese 12', ready = 0 WHERE id = '`+got[0].ItemID+`'`)
			}
			if now := groups(); len(now) != 2 || now[1].Fingerprint != "" || now[1].Count != 1 {
				t.Errorf("failed anew by such a program: %+v", now)
			}
			_, err = s.Sweep(t.Context(), time.Minute)
			must(err)
			if now := groups(); len(now) != 2 || now[1].Text != "out of cheese <n>" || now[1].Fingerprint != now[1].Cause.Fingerprint() {
				t.Errorf("looked at: %+v", now)
			}
		})
	}
}
