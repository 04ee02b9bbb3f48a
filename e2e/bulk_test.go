package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestBulk_Killed requeues many failed jobs in one act, and kills the process meanwhile.
func TestBulk_Killed(t *testing.T) {
	t.Parallel()
	bulkKilled(t, up(t), 150)
}

// TestPostgreSQL_Bulk repeats TestBulk_Killed on PostgreSQL, where the killed worker's lease must
// expire first. A lease is long enough that a busy machine renews it in time.
func TestPostgreSQL_Bulk(t *testing.T) {
	t.Parallel()
	h, _ := onPostgreSQL(t, "HOLDFAST_LEASE=6s")
	bulkKilled(t, h, 110)
}

func bulkKilled(t *testing.T, h *holdfast, jobs int) {
	t.Helper()
	var mended atomic.Bool
	manifest := filesBatch(jobs, "f")
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/batch.checkm":
			manifest(w, r)
		case !mended.Load() && strings.HasPrefix(r.URL.Path, "/f"):
			w.WriteHeader(http.StatusInternalServerError)
		default:
			content(r.URL.Path)(w, r)
		}
	}))
	server.Start()
	attempts := func(n string) { // one failure is enough, but a kill must not count as one
		h.stop()
		h.env = append(h.env, "HOLDFAST_MAX_ATTEMPTS="+n)
		h.start()
	}
	attempts("1")
	s, code := h.submit("-q", url+"/batch.checkm")
	if code != 1 || s.Failed != jobs {
		t.Fatalf("exit=%d, %d failed, want %d", code, s.Failed, jobs)
	}
	attempts("100")
	mended.Store(true)
	const which = "state:failed error:500 action:ingest"
	says(t, "a bulk act without a yes", h.must(7, "item", "requeue", "--match", which).stderr, "Failed", "--yes")
	r := h.must(0, "item", "requeue", "--match", which, "--yes", "--reason", "the source is mended")
	bulk := strings.TrimSpace(r.stdout)
	for life := range 3 {
		if life > 0 { // once right after it was asked for, then while it gets on
			h.until("it has begun", func() bool { return len(rows[item](h, "item", "list", "retries:>0", "--limit", "1")) > 0 })
		}
		if err := h.signal(syscall.SIGKILL); err == nil {
			t.Fatal("holdfast ended cleanly when it was killed")
		}
		h.start()
		t.Logf("%d of %d were requeued at a kill", len(h.list("retries:>0")), jobs)
	}
	h.becomes(bulk, "Completed")
	says(t, "item show of a bulk act", h.run("item", "show", bulk).stdout, fmt.Sprintf("%d items", jobs), which, "the source is mended")
	h.until("all jobs have completed", func() bool { return len(h.list("state:completed", "batch:"+s.BatchID)) == jobs })
	all := h.list("batch:" + s.BatchID)
	for _, it := range all {
		if it.State != "Completed" || it.RetryCount != 1 {
			t.Errorf("job %s is %s, and was requeued %d times", it.ID, it.State, it.RetryCount)
		}
	}
	if len(all) != jobs {
		t.Errorf("%d jobs, want %d", len(all), jobs)
	}
	if log := h.run("audit", "list").stdout; strings.Count(log, "the source is mended") != 1 || strings.Count(log, "requeue") != 1 {
		t.Errorf("the audit log has not one entry for it:\n%s", log)
	}
	h.must(10, "item", "requeue", "--match", which, "--yes")
	if it := h.item(s.BatchID); it.State != "Failed" {
		t.Errorf("before anybody asks for another report the batch is %s", it.State)
	}
	h.must(0, "batch", "update-report", s.BatchID)
	h.watch(s.BatchID)
}
