package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// any file that is asked for is there; /batch.checkm are n of them.
func serveAny(t *testing.T, n int) string {
	t.Helper()
	batch := filesBatch(n, "f")
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".checkm") {
			batch(w, r)
			return
		}
		content(self(r)+r.URL.Path)(w, r)
	}))
	server.Start()
	return url
}

// TestFairTurns submits ten jobs of one collection behind four hundred of another. They do not wait
// for those.
func TestFairTurns(t *testing.T) {
	t.Parallel()
	const many, few = 400, 10
	h := up(t, fourSlots)
	h.collection("big")
	h.collection("small")
	big := h.begin(serveAny(t, many)+"/batch.checkm", "--collection", "big")
	h.until("the big batch is under way", func() bool { return len(h.list("batch:"+big, "state:completed")) > 0 })
	s, code := h.submit(serveAny(t, few)+"/batch.checkm", "--collection", "small")
	if code != 0 || s.Completed != few {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	var begun, ended time.Time
	for _, it := range h.list("batch:" + s.BatchID) {
		begun = it.CreatedAt
		if it.FinishedAt.After(ended) {
			ended = *it.FinishedAt
		}
	}
	meanwhile := 0
	for _, it := range h.list("batch:"+big, "state:completed") {
		if it.FinishedAt.After(begun) && it.FinishedAt.Before(ended) {
			meanwhile++
		}
	}
	t.Logf("%d jobs of the big batch ended while the %d of the small one came and went", meanwhile, few)
	// One of the other for each of ours, and in each of the six stages as many as are offered at a
	// time.
	const window = 6 * 2 * 4
	if meanwhile > few+window {
		t.Errorf("%d jobs of the big batch went before the %d of the small one", meanwhile, few)
	}
}

// TestPriority_Raised: an item with raised priority is the next to start.
func TestPriority_Raised(t *testing.T) {
	t.Parallel()
	const jobs = 8
	h := up(t, "HOLDFAST_CONCURRENCY=1")
	h.must(0, "hold", "add", "--scope", "stage", "--key", "estimate", "--reason", "let them gather")
	batch := h.begin(serveAny(t, jobs) + "/batch.checkm")
	var queue []item
	h.until("all wait", func() bool {
		queue = h.list("batch:"+batch, "state:held")
		return len(queue) == jobs
	})
	first, second := queue[jobs-1].ID, queue[jobs/2].ID
	h.must(0, "item", "priority", second, "--to", "-1", "--reason", "for the exhibition")
	h.must(0, "item", "priority", first, "--to", "-2")
	h.must(0, "item", "priority", queue[0].ID, "--to", "500")
	h.must(0, "hold", "remove", "--scope", "stage", "--key", "estimate")
	h.watch(batch)
	h.stop()
	// The spare slot takes another one in the same transaction as the first.
	got := h.query("registry.db", `SELECT a.item_id FROM attempt a JOIN work_item i ON i.id = a.item_id WHERE a.stage = 'estimate'
		ORDER BY a.started_at, i.priority, i.id`)
	h.start()
	want := []string{first, second}
	for i, it := range queue {
		if i != 0 && it.ID != first && it.ID != second {
			want = append(want, it.ID)
		}
	}
	if want = append(want, queue[0].ID); !slices.Equal(got, want) {
		t.Errorf("started in the order\n%v, want\n%v", got, want)
	}
}
