package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// slow serves many files, each after a moment, and counts the requests for each.
type slow struct {
	server string
	asked  atomic.Int64
	gate   atomic.Pointer[gate] // nil: answers do not wait
}

// gate is where answers wait until it is open.
type gate struct {
	open    chan struct{}
	waiting atomic.Int64 // how many have come to wait
}

// halt lets further answers wait until the returned function is called.
func (s *slow) halt() (goOn func()) {
	g := &gate{open: make(chan struct{})}
	s.gate.Store(g)
	return func() {
		s.gate.CompareAndSwap(g, nil)
		close(g.open)
	}
}

// inTurns has each act begin while a download is under way, whose answer goes out meanwhile, and
// lets further answers wait until the next one. begin starts the downloads.
func (s *slow) inTurns(until func(what string, met func() bool), begin func(), acts ...func()) {
	goOn := s.halt()
	begin()
	for _, act := range acts {
		g := s.gate.Load()
		until("a download is under way", func() bool { return g.waiting.Load() > 0 })
		let := goOn
		goOn = s.halt()
		let()
		act()
	}
	goOn()
}

const slowFiles = 24

// fourSlots leaves jobs to start after the first ones, for tests that act in the middle of a batch.
const fourSlots = "HOLDFAST_CONCURRENCY=4"

func serveSlowly(t *testing.T) *slow {
	t.Helper()
	s := &slow{}
	answers := map[string]http.HandlerFunc{}
	for i := range slowFiles {
		answers[fmt.Sprintf("/%d.txt", i)] = func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				s.asked.Add(1)
				if g := s.gate.Load(); g != nil {
					g.waiting.Add(1)
					select {
					case <-g.open:
					case <-r.Context().Done():
						return
					}
				}
				select {
				case <-time.After(20 * time.Millisecond):
				case <-r.Context().Done():
					return
				}
			}
			content(fmt.Sprintf("file %d", i))(w, r)
		}
	}
	answers["/batch.checkm"] = func(w http.ResponseWriter, r *http.Request) {
		var rows []string
		for i := range slowFiles {
			rows = append(rows, fmt.Sprintf("%s/%d.txt | | | | | %d.txt", self(r), i, i))
		}
		content(manifest("mrt-single-file-batch-manifest", rows...))(w, r)
	}
	s.server = serve(t, answers)
	return s
}

// TestKilled_GoesOn kills the whole process again and again during a batch. In the end every job
// has completed exactly once, every object is there once, and nothing is left over (I4, I10).
func TestKilled_GoesOn(t *testing.T) {
	// None may fail: an item that every kill happens to hit is not to be suspected here.
	killedGoesOn(t, up(t, fourSlots, "HOLDFAST_MAX_ATTEMPTS=100"))
}

func killedGoesOn(t *testing.T, h *holdfast) {
	t.Helper()
	s := serveSlowly(t)
	var submitted struct {
		BatchID string `json:"batch_id"`
	}
	for _, line := range rows[struct {
		MessageType string `json:"message_type"`
		BatchID     string `json:"batch_id"`
	}](h, "submit", s.server+"/batch.checkm") {
		submitted.BatchID = line.BatchID
	}
	for kills := 1; kills <= 6; kills++ {
		// Each life gets a little further than the one before, so that the kills hit different
		// stages.
		before := s.asked.Load()
		deadline := time.Now().Add(patience)
		for s.asked.Load() < before+int64(kills) && s.asked.Load() < slowFiles && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		if err := h.signal(syscall.SIGKILL); err == nil {
			t.Fatal("holdfast ended cleanly when it was killed")
		}
		h.start()
	}
	h.watch(submitted.BatchID)
	sixStages(t, h)
	objects := rows[struct {
		ID string `json:"object_id"`
	}](h, "object", "list", "--limit", "500")
	if len(objects) != slowFiles {
		t.Errorf("%d objects, want %d", len(objects), slowFiles)
	}
	if r := h.run("object", "verify", "--all"); r.code != 0 {
		t.Errorf("verify ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	// What a life before left under way is swept with its item.
	for name := range files(t, filepath.Join(h.dir, "staging")) {
		if strings.HasPrefix(name, "items/") {
			t.Errorf("left behind: %s", name)
		}
	}
}

// watch waits until a batch has completed, and otherwise says what its jobs wait for.
func (h *holdfast) watch(batch string) {
	h.t.Helper()
	r := h.run("watch", batch)
	if r.code == 0 {
		return
	}
	for _, it := range rows[struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}](h, "item", "list", "--limit", "500") {
		if it.Status != "completed" {
			h.t.Logf("%s", h.run("item", "why", it.ID).stdout)
			h.t.Logf("%s", h.run("item", "history", it.ID).stdout)
		}
	}
	h.t.Fatalf("watch ended with %d: %s%s", r.code, r.stdout, r.stderr)
}

// finishUncharged waits for the end of the only batch and checks that no item was charged with a
// try.
func (h *holdfast) finishUncharged(event string) {
	h.t.Helper()
	batches := rows[struct {
		ID string `json:"id"`
	}](h, "batch", "list")
	if len(batches) != 1 {
		h.t.Fatalf("%d batches after %s, want 1", len(batches), event)
	}
	h.watch(batches[0].ID)
	items := rows[struct {
		ID    string `json:"id"`
		Tries int    `json:"tries"`
	}](h, "item", "list", "--limit", "500")
	if len(items) == 0 {
		h.t.Fatal("no items are listed")
	}
	for _, it := range items {
		if it.Tries != 0 {
			h.t.Errorf("item %s was charged with %d tries for %s", it.ID, it.Tries, event)
		}
	}
}

// TestStopped_GoesOn stops the process cleanly during a batch: no attempt is counted, and the next
// process resumes it.
func TestStopped_GoesOn(t *testing.T) {
	s := serveSlowly(t)
	h := up(t, fourSlots)
	h.run("submit", s.server+"/batch.checkm")
	deadline := time.Now().Add(patience)
	for s.asked.Load() < 3 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := h.signal(syscall.SIGTERM); err != nil {
		t.Fatalf("holdfast ended with %v after SIGTERM\n%s", err, h.log)
	}
	h.start()
	h.finishUncharged("a clean stop")
}

// TestDamageIsFound flips one bit of a stored file: verify must name it.
func TestDamageIsFound(t *testing.T) {
	server := serve(t, map[string]http.HandlerFunc{"/a.txt": content("precious")})
	h := up(t)
	s, code := h.submit(server + "/a.txt")
	if code != 0 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	if r := h.run("object", "verify", s.Jobs[0].ObjectID); r.code != 0 {
		t.Fatalf("verify of a sound object ended with %d: %s", r.code, r.stderr)
	}
	var stored []string
	for name := range files(t, filepath.Join(h.dir, "storage")) {
		if strings.HasSuffix(name, "content/producer/a.txt") {
			stored = append(stored, name)
		}
	}
	if len(stored) != 1 {
		t.Fatalf("stored as %v", stored)
	}
	damage(t, filepath.Join(h.dir, "storage", stored[0]))
	r := h.run("object", "verify", s.Jobs[0].ObjectID)
	if r.code != 1 || !slices.ContainsFunc([]string{r.stdout, r.stderr}, func(out string) bool { return strings.Contains(out, "a.txt") }) {
		t.Errorf("verify of a damaged object ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
