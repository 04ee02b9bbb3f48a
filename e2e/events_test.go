package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"reflect"
	"sync"
	"syscall"
	"testing"
)

// event is a line of `events --json`.
type event struct {
	Seq    int64           `json:"seq"`
	ItemID string          `json:"item_id"`
	Type   string          `json:"type"`
	Actor  string          `json:"actor"`
	Data   json.RawMessage `json:"data"`
}

// TestEvents_Killed follows the feed while the service is killed and restarted: each event comes
// exactly once.
func TestEvents_Killed(t *testing.T) {
	t.Parallel()
	h := up(t, fourSlots, "HOLDFAST_MAX_ATTEMPTS=100")
	followKilled(t, h)
}

// TestPostgreSQL_Events repeats TestEvents_Killed on PostgreSQL, where events commit out of order.
func TestPostgreSQL_Events(t *testing.T) {
	t.Parallel()
	h, _ := onPostgreSQL(t, fourSlots, "HOLDFAST_MAX_ATTEMPTS=100", "HOLDFAST_LEASE=1s")
	followKilled(t, h)
}

func followKilled(t *testing.T, h *holdfast) {
	t.Helper()
	h.restartOn(freeAddress(t))
	f := h.follow("--after", "0")
	s := serveSlowly(t)
	batch := h.begin(s.server + "/batch.checkm")
	for kill := range int64(3) {
		h.until("some downloads have begun", func() bool { return s.asked.Load() > (kill+1)*slowFiles/4 })
		if err := h.signal(syscall.SIGKILL); err == nil {
			t.Fatal("holdfast ended cleanly when it was killed")
		}
		h.start()
	}
	h.watch(batch)
	want := rows[event](h, "events", "--limit", "0")
	h.until("the follower has the last event", func() bool { return len(f.events()) >= len(want) })
	f.stop()
	got := f.events()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("event %d differs: %d were followed, %d are listed\n%+v\n%+v", i, len(got), len(want), got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
	if len(want) < 6*slowFiles {
		t.Errorf("only %d events", len(want))
	}
}

// restartOn restarts the service on the same address, which followers need.
func (h *holdfast) restartOn(address string) {
	h.t.Helper()
	h.stop()
	h.listen = address
	h.start()
}

// follower is a running `events --follow`.
type follower struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	out  bytes.Buffer
	errs bytes.Buffer
}

func (h *holdfast) follow(args ...string) *follower {
	h.t.Helper()
	f := &follower{t: h.t, cmd: exec.Command(binary, append([]string{"events", "--follow", "--json", "--dir", h.dir}, args...)...)}
	f.cmd.Env, f.cmd.Stdout, f.cmd.Stderr = h.environment(), f, &f.errs
	if err := f.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { f.cmd.Process.Kill() })
	return f
}

// Write takes what the command prints.
func (f *follower) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Write(b)
}

// events returns the events printed so far.
func (f *follower) events() (all []event) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	d := json.NewDecoder(bytes.NewReader(f.out.Bytes()))
	for d.More() {
		var e event
		if d.Decode(&e) != nil {
			break // the last is not whole yet
		}
		all = append(all, e)
	}
	return all
}

// stop interrupts the command, which prints how to continue.
func (f *follower) stop() {
	f.t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGINT); err != nil {
		f.t.Fatal(err)
	}
	f.cmd.Wait()
	if code := f.cmd.ProcessState.ExitCode(); code != 130 {
		f.t.Errorf("the follower ended with %d: %s", code, &f.errs)
	}
	says(f.t, "the follower", f.errs.String(), "--after")
}
