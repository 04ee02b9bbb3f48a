package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// stalling sends half of each file and then nothing, until it is told to behave.
type stalling struct {
	url     string
	healed  atomic.Bool
	stalled atomic.Int64 // answers that are held
	files   int
}

const stalledBody = 3 << 20

func newStalling(t *testing.T, files int) *stalling {
	t.Helper()
	s := &stalling{files: files}
	server, url := listen(t, s)
	s.url = url
	server.Start()
	return s
}

// ServeHTTP answers at once for the manifest, and half for the rest.
func (s *stalling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/batch.checkm" {
		var rows []string
		for i := range s.files {
			rows = append(rows, fmt.Sprintf("%s/%d.bin | | | | | %d.bin", s.url, i, i))
		}
		fmt.Fprint(w, manifest("mrt-single-file-batch-manifest", rows...))
		return
	}
	raw := strings.Repeat(r.URL.Path, stalledBody)[:stalledBody]
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	if r.Method == http.MethodHead || s.healed.Load() {
		fmt.Fprint(w, raw)
		return
	}
	fmt.Fprint(w, raw[:len(raw)/2])
	w.(http.Flusher).Flush()
	s.stalled.Add(1)
	<-r.Context().Done()
}

// TestHandOver stops the process while every slot of a stage waits for a silent source. The process
// ends by itself and cleanly, no attempt is counted, every step ends in time, and the next process
// completes everything (I5).
func TestHandOver(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			source := newStalling(t, 12)
			h := up(t)
			batch := rows[struct {
				BatchID string `json:"batch_id"`
			}](h, "submit", source.url+"/batch.checkm")[0].BatchID
			const slots = 4 // of each stage
			source.await(t, slots)
			begun := time.Now()
			if err := h.signal(s); err != nil {
				t.Errorf("holdfast ended with %v", err)
			}
			t.Logf("it ended %v after the signal", time.Since(begun).Round(time.Millisecond))
			if strings.Contains(h.log.String(), "abandoned") {
				t.Error("a step did not end when it was told to")
			}
			h.checkHandedOver(slots)
			source.healed.Store(true)
			h.start()
			h.watch(batch)
			h.stop()
			h.checkInvariants()
			h.start()
		})
	}
}

// checkHandedOver checks the stopped steps: no attempt is live, counted or lost, and their progress
// is kept.
func (h *holdfast) checkHandedOver(atLeast int) {
	h.t.Helper()
	for name, violations := range map[string]string{
		"live attempts":              `SELECT item_id, n FROM attempt WHERE finished_at IS NULL`,
		"attempts that were counted": `SELECT id, stage, tries FROM work_item WHERE tries > 0`,
		"attempts that were lost":    `SELECT item_id, n, outcome FROM attempt WHERE outcome NOT IN ('done', 'cancelled', 'snooze')`,
		"items that cannot run now":  `SELECT id, stage, status FROM work_item WHERE stage = 'download' AND (status <> 'pending' OR run_at > updated_at)`,
	} {
		if found := h.query("registry.db", violations); len(found) > 0 {
			h.t.Errorf("%s: %v", name, found)
		}
	}
	if n := h.count(`SELECT COUNT(*) FROM attempt WHERE outcome = 'cancelled'`); n < atLeast {
		h.t.Errorf("%d attempts were released, want %d at least", n, atLeast)
	}
}

// await waits until so many answers are held.
func (s *stalling) await(t *testing.T, answers int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); s.stalled.Load() < answers; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d downloads are under way, want %d", s.stalled.Load(), answers)
		}
	}
}

// TestSecondSignal ends the process at once during its drain. Nothing is lost.
func TestSecondSignal(t *testing.T) {
	source := newStalling(t, 12)
	h := up(t)
	batch := rows[struct {
		BatchID string `json:"batch_id"`
	}](h, "submit", source.url+"/batch.checkm")[0].BatchID
	source.await(t, 1)
	if err := h.proc.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // it is caught until the first one was heard
		select {
		case err := <-h.done:
			h.done <- err
		default:
			if time.Now().After(deadline) {
				t.Fatal("signals do not end it")
			}
			if h.proc.Process.Signal(syscall.SIGTERM) == nil {
				continue
			}
			err := <-h.done
			h.done <- err
		}
		break
	}
	source.healed.Store(true)
	h.start()
	h.watch(batch)
	h.stop()
	h.checkInvariants()
	h.start()
}
