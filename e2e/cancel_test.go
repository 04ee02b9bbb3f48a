package e2e

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// itemsInStaging counts an item's files in staging.
func (h *holdfast) itemsInStaging(id string) (n int) {
	for name := range files(h.t, filepath.Join(h.dir, "staging")) {
		if strings.Contains(name, id) {
			n++
		}
	}
	return n
}

// gone waits until the worker drops a held answer. It fails the test unless that is soon after the
// act, long before the worker's next lease renewal.
func (d *dribble) gone(h *holdfast, asked time.Time) {
	h.t.Helper()
	h.until("the source sees the connection closed", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.left
	})
	const soon = 5 * time.Second
	if took := time.Since(asked); took > soon {
		h.t.Errorf("the download went on for %v", took)
	}
}

// TestCancel_Running cancels a stalled download. A requeue resumes it where it was.
func TestCancel_Running(t *testing.T) {
	t.Parallel()
	const size, hold = 24 << 20, 21 << 20
	d := newDribble(t, size, hold, nil)
	h := up(t)
	batch := h.begin(d.url, "--type", "file")
	d.arrived(h, hold)
	job := h.job(batch).ID
	asked := time.Now()
	h.must(0, "item", "cancel", job, "--reason", "wrong box")
	d.gone(h, asked)
	it := h.becomes(job, "Cancelled")
	if it.Tries != 0 || it.RetryCount != 0 {
		t.Errorf("cancelling was counted: %+v", it)
	}
	says(t, "history", h.run("item", "history", job).stdout, "cancel", "wrong box")
	h.must(0, "item", "requeue", job)
	it = h.becomes(job, "Completed")
	if it.RetryCount != 1 || it.Tries != 0 {
		t.Errorf("after it was requeued and has completed it is %+v", it)
	}
	says(t, "watch of a batch whose job was requeued", h.must(3, "watch", batch).stderr, "all its jobs have completed since", "batch update-report "+batch)
	h.must(0, "batch", "update-report", batch)
	h.watch(batch)
	d.check(t, size, hold, true)
	d.stored(t, h, d.content)
	says(t, "cancel of what has completed", h.must(8, "item", "cancel", job).stderr, "Completed")
}

// TestAbort_Running aborts a download. Its staged data is removed once its worker can write no
// more, which the test brings about by the clock.
func TestAbort_Running(t *testing.T) {
	t.Parallel()
	const size, hold = 24 << 20, 21 << 20
	d := newDribble(t, size, hold, nil)
	h := up(t)
	batch := h.begin(d.url, "--type", "file", "--digest", fmt.Sprintf("sha256:%x", sha256.Sum256(d.content)))
	d.arrived(h, hold)
	job := h.job(batch).ID
	asked := time.Now()
	h.must(0, "item", "abort", job, "--yes", "--reason", "not ours")
	d.gone(h, asked)
	h.becomes(job, "Aborted")
	h.must(8, "item", "requeue", job)
	tidy := h.list("action:tidy")
	if len(tidy) != 1 || tidy[0].State != "Pending" || tidy[0].RunAt.Sub(asked).Round(time.Second) < 2*time.Minute {
		t.Fatalf("what sees to its staging is %+v, want one item that is due in two minutes", tidy)
	}
	if h.itemsInStaging(job) == 0 {
		t.Error("nothing was in staging, so nothing is seen of its removal")
	}
	h.stop()
	h.query("registry.db", `UPDATE work_item SET run_at = $1, nudge_at = $1 WHERE id = $2 RETURNING id`, time.Now().UnixMicro(), tidy[0].ID)
	h.start()
	h.becomes(tidy[0].ID, "Completed")
	if n := h.itemsInStaging(job); n > 0 {
		t.Errorf("%d files of the aborted job are still in staging", n)
	}
	if n := h.count(`SELECT COUNT(*) FROM reservation WHERE item_id = $1`, job); n > 0 {
		t.Error("its room in staging is still reserved")
	}
}
