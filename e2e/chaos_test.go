package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The environment variables of a chaos run: the seed to replay, and the number of faults.
const (
	seedVariable   = "CHAOS_SEED"
	faultsVariable = "CHAOS_FAULTS"
	defaultFaults  = 12
)

// chaosLease is short, so that a process that was paused for longer has lost its leases.
const chaosLease = 2 * time.Second

// TestChaos submits payloads of every kind while the process is killed, stopped once and twice, and
// paused for longer than a lease, at moments chosen by the seed, and while the source misbehaves.
// In the end everything has completed exactly once, every byte is there, and nothing is left over
// (I1 to I10).
func TestChaos(t *testing.T) {
	seed, faults := uint64(time.Now().UnixNano()), uint64(defaultFaults)
	fromEnvironment(t, map[string]*uint64{seedVariable: &seed, faultsVariable: &faults})
	t.Logf("replay with %s=%d %s=%d", seedVariable, seed, faultsVariable, faults)
	s := newChaosSource(t, seed)
	// At one address, as a service is: a command that sends a file waits for it there.
	h := upAt(t, freeAddress(t), "HOLDFAST_MAX_ATTEMPTS=1000", "HOLDFAST_LEASE="+chaosLease.String())
	c := &chaos{holdfast: h, source: s, rng: rand.New(rand.NewPCG(seed, 3)), injected: map[string]int{}, next: make(chan struct{}, payloads)}
	// The object that is updated must be there: which of two submissions gets to its locks first is
	// not what is looked at.
	if first, code := h.submit(s.url+"/update0.bin", "--local-id", "updated", "--type", "file"); code != 0 {
		t.Fatalf("exit=%d summary=%+v", code, first)
	}
	c.underFaults(3*patience, faults, c.fault)
	c.restart(syscall.SIGTERM)
	begun := time.Now()
	for _, batch := range c.batches {
		h.watch(batch)
	}
	recovery := time.Since(begun).Round(time.Millisecond)
	c.checkObjects()
	h.stop()
	h.checkInvariants()
	c.checkVersions()
	t.Logf("faults: %v; source: %v of %d answers; attempts: %v; settled %v after the last start", c.injected, s.wrong, s.asked,
		h.query("registry.db", `SELECT outcome, COUNT(*) FROM attempt GROUP BY outcome`), recovery)
}

// fromEnvironment replaces numbers with the values of environment variables that are set.
func fromEnvironment(t *testing.T, numbers map[string]*uint64) {
	t.Helper()
	for name, v := range numbers {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*v = n
		}
	}
}

// chaos is a run.
type chaos struct {
	*holdfast
	source   *chaosSource
	rng      *rand.Rand
	injected map[string]int
	next     chan struct{} // a payload may be submitted
	batches  []string
	refused  string // what the last submission without an answer said
}

// payloads is the number of submissions during the faults.
const payloads = 8

// underFaults submits all payloads while the source misbehaves and strike injects faults. It
// returns when all are accepted.
func (c *chaos) underFaults(limit time.Duration, faults uint64, strike func()) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	c.source.behave(0.03)
	var submitting sync.WaitGroup
	submitting.Go(func() { c.submitAll(ctx) })
	for n := range faults {
		if n%max(1, faults/payloads) == 0 && n/max(1, faults/payloads) < payloads {
			c.next <- struct{}{} // so that there is work to be hit until the end
		}
		strike()
	}
	close(c.next)
	c.source.behave(0)
	submitting.Wait()
	if err := ctx.Err(); err != nil {
		c.t.Fatalf("not all was submitted: %v; the last refusal: %s", err, c.refused)
	}
}

// submitAll submits each payload until it gets an answer. The idempotency key makes only one batch
// of each.
func (c *chaos) submitAll(ctx context.Context) {
	upload := filepath.Join(c.t.TempDir(), "upload.bin")
	if err := os.WriteFile(upload, []byte(strings.Repeat("sent, not fetched ", 40_000)), 0o600); err != nil {
		c.t.Error(err)
		return
	}
	local := []string{"--local-id", "updated", "--type", "file"}
	for i, args := range [payloads][]string{
		{c.source.url + "/files.checkm"},
		{c.source.url + "/manifests.checkm"},
		{upload},
		append([]string{c.source.url + "/update1.bin", "--update"}, local...),
		{c.source.url + "/containers.checkm"},
		append([]string{c.source.url + "/update2.bin", "--update"}, local...),
		{c.source.url + "/bag.zip"},
		{c.source.url + bigBatch},
	} {
		<-c.next
		args = append([]string{"submit", "--json", "--dir", c.dir, "--idempotency-key", fmt.Sprint("chaos-", i)}, args...)
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, binary, args...)
			cmd.Env = c.environment()
			out, err := cmd.Output()
			var answer struct {
				BatchID string `json:"batch_id"`
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if err == nil && json.Unmarshal([]byte(lines[len(lines)-1]), &answer) == nil && answer.BatchID != "" {
				c.batches = append(c.batches, answer.BatchID)
				break
			}
			c.refused = fmt.Sprintf("submit %s: %v: %s", args[len(args)-1], err, out)
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				c.refused += string(exit.Stderr)
			}
		}
	}
}

// fault waits a moment, injects a fault into the process, and makes sure that it runs again.
func (c *chaos) fault() {
	time.Sleep(time.Duration(c.rng.IntN(300)) * time.Millisecond) // the moment of the fault: whatever it hits must stand it
	kinds := []string{"kill", "kill", "kill", "stop", "stop twice", "pause"}
	kind := kinds[c.rng.IntN(len(kinds))]
	c.injected[kind]++
	switch kind {
	case "kill":
		c.restart(syscall.SIGKILL)
	case "stop":
		c.restart(syscall.SIGTERM)
	case "stop twice":
		if err := c.proc.Process.Signal(syscall.SIGTERM); err != nil {
			c.t.Fatal(err)
		}
		time.Sleep(time.Duration(c.rng.IntN(20)) * time.Millisecond) // the second signal comes anywhere within the drain
		c.restart(syscall.SIGTERM)
	case "pause":
		for _, s := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := c.proc.Process.Signal(s); err != nil {
				c.t.Fatal(err)
			}
			if s == syscall.SIGSTOP {
				time.Sleep(chaosLease + chaosLease/4) // longer than any lease
			}
		}
	}
}

// restart ends the process and starts it again. It skips the backoff of items, which these tests
// are not about.
func (c *chaos) restart(s os.Signal) {
	err := c.signal(s)
	if s == syscall.SIGKILL && err == nil {
		c.t.Fatal("holdfast ended cleanly when it was killed")
	}
	c.hurry(0)
	c.start()
}

// hurry makes items due that wait for a retry. ahead is how far the Registry's clock is ahead.
func (h *holdfast) hurry(ahead time.Duration) {
	h.t.Helper()
	now := time.Now().Add(ahead)
	h.query("registry.db", `UPDATE work_item SET run_at = $1, nudge_at = $1
		WHERE status = 'pending' AND ready = 0 AND run_at > $2 AND NOT (`+late+`) RETURNING id`, now.UnixMicro(), now.Add(time.Second).UnixMicro())
}

// checkObjects compares what is stored with what was submitted.
func (c *chaos) checkObjects() {
	c.t.Helper()
	if r := c.run("object", "verify", "--all"); r.code != 0 {
		c.t.Errorf("verify ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	stored := map[string]bool{}
	for _, raw := range files(c.t, c.place("storage")) {
		stored[raw] = true
	}
	for name, raw := range c.source.body {
		if strings.HasSuffix(name, ".bin") && !stored[string(raw)] {
			c.t.Errorf("%s is not stored", name)
		}
	}
}

// checkVersions compares the number of objects with each number of versions.
func (c *chaos) checkVersions() {
	c.t.Helper()
	n := c.source.scale
	got := c.query("registry.db", `SELECT head, COUNT(*) FROM object GROUP BY head ORDER BY head`)
	want := []string{
		fmt.Sprintf("1|%d", n*(chaosFiles/2+chaosManifests+chaosZips)+chaosBig+2), // with the upload and the bag
		fmt.Sprintf("3|%d", n*sharedIDs+1),                                        // with the one that was updated
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("objects by number of versions are %v, want %v", got, want)
	}
}
