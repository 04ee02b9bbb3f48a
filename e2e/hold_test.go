package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestHolds adds a hold of every scope in the middle of a batch. Nothing more starts, the reason is
// shown everywhere, and after the release everything completes.
func TestHolds(t *testing.T) {
	t.Parallel()
	s := serveSlowly(t)
	h := up(t, fourSlots)
	h.collection("maps")
	h.collection("letters")
	goOn := s.halt() // until the hold is there, so that jobs are left for it
	batch := h.begin(s.server+"/batch.checkm", "--collection", "maps")
	h.until("downloads are under way", func() bool { return s.asked.Load() > 2 })

	t.Log("a collection")
	h.must(0, "collection", "hold", "maps", "--reason", "stocktaking")
	goOn()
	held := h.heldJob(batch, "collection", "maps", "stocktaking")
	says(t, "the hold list", h.must(0, "hold", "list").stdout, "collection", "maps", "holdfast up", "stocktaking")
	says(t, "the item list", h.must(0, "item", "list", "held:yes").stdout, held, "held: collection maps", "stocktaking")
	h.must(7, "watch", batch)
	if _, code := h.submit(s.server+"/0.txt", "--collection", "letters"); code != 0 {
		t.Errorf("submit to a collection that is not held ended with %d", code)
	}
	goOn = s.halt()
	h.must(0, "collection", "release", "maps")
	h.must(4, "collection", "release", "maps")

	t.Log("everything")
	drained := make(chan result)
	go func() { drained <- h.run("queue", "drain", "--reason", "new disks") }()
	h.until("the queue is paused", func() bool { return strings.Contains(h.must(0, "queue", "status").stdout, "paused since") })
	goOn()
	if r := <-drained; r.code != 0 {
		t.Errorf("the drain ended with %d: %s", r.code, r.stderr)
	}
	if n := len(h.list("status:running")); n > 0 {
		t.Errorf("%d items run after the drain", n)
	}
	h.heldJob(batch, "all", "", "new disks")
	says(t, "the queue's status", h.must(0, "queue", "status").stdout, "paused since", "holdfast up", "new disks")
	before := s.asked.Load()
	h.must(0, "hold", "add", "--scope", "volume", "--key", "staging", "--reason", "disk is full")
	h.must(0, "queue", "resume")

	t.Log("a volume")
	h.heldJob(batch, "volume", "staging", "disk is full")
	if n := s.asked.Load(); n != before {
		t.Errorf("%d files were fetched to a held volume", n-before)
	}

	t.Log("submissions")
	h.must(0, "queue", "accept", "off", "--reason", "moving house")
	says(t, "a refused submission", h.must(5, "submit", s.server+"/1.txt", "--collection", "letters").stderr, "moving house")
	says(t, "the queue's status", h.must(0, "queue", "status").stdout, "moving house")
	h.must(0, "queue", "accept", "on", "--reason", "moved")
	h.must(0, "hold", "remove", "--scope", "volume", "--key", "staging")
	h.watch(batch)
	if _, code := h.submit(s.server+"/1.txt", "--collection", "letters"); code != 0 {
		t.Errorf("submit after the move ended with %d", code)
	}
}

// heldJob waits until nothing runs that the hold would keep from starting, and returns a covered
// job of the batch. The job must name the hold.
func (h *holdfast) heldJob(batch, scope, key, reason string) string {
	h.t.Helper()
	var found []item
	h.until("a job is held by "+scope+" "+key, func() bool {
		found = h.list("batch:"+batch, "held:yes", "state:held")
		return len(found) > 0 && len(h.list("batch:"+batch, "status:running")) == 0
	})
	it := found[0]
	if by := it.HeldBy; by == nil || by.Scope != scope || by.Key != key || by.Reason != reason || by.Actor != "holdfast up" {
		h.t.Errorf("item %s is held by %+v, want the hold on %s %s", it.ID, by, scope, key)
	}
	w := rows[why](h, "item", "why", it.ID)[0]
	if w.Reason != "held" {
		h.t.Errorf("why is %+v, want held", w)
	}
	says(h.t, "why", w.Sentence, key, reason)
	says(h.t, "item show", h.must(0, "item", "show", it.ID).stdout, "held by", scope, reason)
	return it.ID
}

// TestDrain_TooLong: a drain gives up after its timeout, and the queue stays paused.
func TestDrain_TooLong(t *testing.T) {
	t.Parallel()
	const size, hold = 4 << 20, 2 << 20
	d := newDribble(t, size, hold, nil)
	h := up(t)
	batch := h.begin(d.url, "--type", "file")
	d.arrived(h, hold)
	r := h.must(5, "queue", "drain", "--reason", "new disks", "--timeout", "300ms")
	says(t, "the drain", r.stderr, "1 item is still running", "queue resume")
	h.must(0, "item", "cancel", h.job(batch).ID)
	begun := time.Now()
	h.must(0, "queue", "drain", "--reason", "new disks", "--timeout", patience.String())
	t.Logf("drained %v after the cancel", time.Since(begun))
	says(t, "a requeued job in a drained queue", h.must(0, "item", "requeue", h.job(batch).ID).stdout, "Held")
	h.must(0, "queue", "resume")
	h.becomes(h.job(batch).ID, "Completed")
}
