package sqlstore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/cputest"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// prefill is a registry that has been in use: most items are settled; of a tenth that is pending,
// in 20 collections, two collections are held, and of every ten items one is in a held batch, two
// are not due and one is blocked.
const prefill = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d),
	f AS (SELECT i, 'c' || ((i / 10) %% 20) AS collection, i %% 10 = 0 AS pending, (i / 200) %% 10 AS kind FROM n)
INSERT INTO work_item (seq, id, tenant, collection, parent_id, row_no, action, stage, status, priority, rank, name, blocker_count,
	run_at, nudge_at, created_at, updated_at, finished_at, ready)
SELECT i, printf('00000000-0000-7000-8000-%%012d', i), 'default', collection, CASE WHEN kind = 1 THEN 'held' ELSE 'batch' END, i, 'ingest',
	CASE WHEN pending THEN 'estimate' ELSE 'notify' END, CASE WHEN pending THEN 'pending' ELSE 'completed' END, 5,
	1700000000000000 + i, 'item ' || i, CASE WHEN pending AND kind = 4 THEN 1 ELSE 0 END,
	CASE WHEN kind IN (2, 3) THEN 4000000000000000 ELSE 1700000000000000 END,
	CASE WHEN NOT pending OR kind = 4 THEN NULL WHEN kind IN (2, 3) THEN 4000000000000000 ELSE 1700000000000000 END,
	1700000000000000 + i, 1700000000000000 + i, CASE WHEN pending THEN NULL ELSE 1700000000000000 + i END,
	CASE WHEN NOT pending OR kind IN (2, 3) THEN 0 WHEN kind = 4 THEN 2 ELSE 1 END
FROM f;
INSERT INTO work_detail (item_id, spec) SELECT id, '{"type":"file","url":"https://example.org/' || seq || '"}' FROM work_item WHERE true
	ON CONFLICT DO NOTHING;
INSERT INTO lane (stage, collection, served, active) SELECT DISTINCT stage, collection, 0, 1 FROM work_item WHERE ready = 1
	ON CONFLICT DO NOTHING;
INSERT INTO attempt (item_id, n, request_id, stage, worker, version, started_at, lease_until, stuck_after, progress_at, max_attempts,
	finished_at, outcome, response)
SELECT id, 1, 'prefill-' || id, 'notify', 'w', 'v', created_at, created_at, 0, created_at, 5, created_at, 'done', '{}' FROM work_item
	WHERE status = 'completed';
INSERT INTO event (id, feed_seq, item_id, attempt, type, actor, at, data)
SELECT 'prefill-' || id, 1000 + ROW_NUMBER() OVER (), id, 1, 'complete', 'worker', created_at, '{}' FROM work_item WHERE status = 'completed';
INSERT INTO hold (scope, key, reason, actor, created_at) VALUES ('batch', 'held', 'look', 'admin', 0), ('collection', 'c5', 'look', 'admin', 0),
	('collection', 'c15', 'look', 'admin', 0);`

// BenchmarkClaimSettle claims and settles items: by one caller, with an fsync for each transaction,
// and by 64 callers, whose transactions are grouped so that the work on rows shows.
func BenchmarkClaimSettle(b *testing.B) {
	for _, items := range []int{0, 100_000, 1_000_000} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("items=%d/callers=%d", items, callers), func(b *testing.B) {
				if items > 100_000 && testing.Short() {
					b.Skip("a million items take a minute")
				}
				s := filled(b, items)
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(callers, runtime.GOMAXPROCS(0))))
				b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
				var calls atomic.Int64
				for range 200 { // what is held is set aside now
					claimSettle(b, s, calls.Add(1))
				}
				runtime.GC()
				before := cputest.Used(b)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						claimSettle(b, s, calls.Add(1))
					}
				})
				b.ReportMetric(float64((cputest.Used(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

func claimSettle(b *testing.B, s *sqlstore.Store, call int64) {
	c, err := s.Claim(b.Context(), registry.ClaimRequest{
		RequestID: fmt.Sprint(call), Stage: registry.Estimate, Worker: "w", Lease: time.Hour, MaxAttempts: 5,
	})
	if err != nil {
		b.Error(err)
		return
	}
	_, err = s.Settle(b.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	if err != nil {
		b.Error(err)
	}
}

// filled returns a store with some items to claim beside the prefilled ones.
func filled(b *testing.B, items int) *sqlstore.Store {
	b.Helper()
	path := filepath.Join(b.TempDir(), "registry.db")
	s, err := sqlstore.Open(b.Context(), sqlstore.Options{URL: "sqlite:" + path})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if items > 0 {
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := db.ExecContext(b.Context(), fmt.Sprintf(prefill, items)); err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
	slots := map[registry.Stage]int{registry.Estimate: 256} // of which more are spare than callers ask for
	_, err = s.Renew(b.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "w", Capacity: slots, Spare: map[registry.Stage]int{registry.Estimate: 128}}})
	if err != nil {
		b.Fatal(err)
	}
	batch := expandingBatch(b, s)
	jobs := make([]registry.NewJob, 500)
	for i := range jobs {
		jobs[i] = registry.NewJob{Line: int64(i + 1), Spec: registry.Spec{Type: registry.FileType, URL: "https://example.org/x"}}
	}
	if _, err := s.AddJobs(b.Context(), batch, jobs); err != nil {
		b.Fatal(err)
	}
	return s
}
