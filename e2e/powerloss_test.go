package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/internal/powerloss"
	"github.com/holdfast/holdfast/internal/proctest"
)

// TestPowerLoss: the power fails at every file operation of two jobs; the second updates the
// first's object. The disk then has what was synced, and an arbitrary part of the rest. All
// promised data is there, the jobs complete without a person, and the result is a valid OCFL
// storage root with the right bytes.
func TestPowerLoss(t *testing.T) { testPowerLoss(t, false) }

// TestPowerLossBesideWriter is TestPowerLoss where each syncfs takes so long that most files and
// folders are synced by themselves.
func TestPowerLossBesideWriter(t *testing.T) { testPowerLoss(t, true) }

func testPowerLoss(t *testing.T, slow bool) {
	t.Helper()
	t.Parallel()
	o := newOutage(t)
	history, promises := o.run(t, nil, 0, slow)
	visit := looptest.Some(t, 24)
	for i, point := range history.Syncs() {
		if !visit() {
			continue
		}
		t.Run(fmt.Sprintf("sync %d, the worst", i), func(t *testing.T) {
			t.Parallel()
			image, err := history.Worst(point)
			must(t, err)
			o.check(t, point, image, promises)
		})
		if i == 0 {
			continue
		}
		before := history.Syncs()[i-1]
		at := before + o.random.IntN(point-before+1)
		t.Run(fmt.Sprintf("operation %d, anything", at), func(t *testing.T) {
			t.Parallel()
			image, err := history.Some(at, rand.New(rand.NewPCG(2, uint64(at))))
			must(t, err)
			o.check(t, at, image, promises)
		})
	}
}

// TestPowerLossAfterKill: Holdfast is killed at every file operation of the same two jobs, before
// and after each sync. It is started again and finds all that the killed process saw, durable or
// not. It completes the jobs, and then the power fails: when the depositor has just been told so, or
// at another moment.
func TestPowerLossAfterKill(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	first, _ := o.run(t, nil, 0, false)
	visit := looptest.Some(t, 50)
	for i, point := range first.Syncs()[1:] {
		if !visit() {
			continue
		}
		before := first.Syncs()[i]
		seed := uint64(looptest.Number(t, 1<<30))
		for _, killed := range slices.Compact([]int{before + 1 + o.random.IntN(point-before), point}) {
			t.Run(fmt.Sprintf("killed at operation %d", killed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, uint64(killed)))
				history, promises := o.run(t, first, killed, random.IntN(2) == 0)
				lost := []int{random.IntN(history.Len() + 1)}
				for _, p := range promises {
					lost = append(lost, p.accepted, p.completed)
				}
				for _, at := range lost {
					image, err := history.Worst(at)
					must(t, err)
					o.check(t, at, image, promises)
					if t.Failed() {
						t.Fatalf("the power failed at operation %d of %d after the kill", at, history.Len())
					}
				}
			})
		}
	}
}

// outage is what the tests of losses of power have in common: two submissions, the second of which
// updates the first's object.
type outage struct {
	env      []string
	random   *rand.Rand
	payloads [2]string // files
}

// TestRestart_SyncsTheLogFirst: the Registry may read a commit that a killed process wrote and did
// not sync. So the next process syncs the write-ahead log before it does anything else with it.
func TestRestart_SyncsTheLogFirst(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		proctest.Absent(t, "strace", err)
	}
	h := up(t)
	h.signal(syscall.SIGKILL)
	h.trace = filepath.Join(t.TempDir(), "trace")
	h.start()
	h.signal(syscall.SIGKILL)
	text, err := os.ReadFile(h.trace)
	if err != nil {
		t.Fatal(err)
	}
	h.trace = ""
	h.start() // the test's end stops it
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "registry.db-wal>") {
			continue
		}
		if strings.Contains(line, " fsync(") {
			return
		}
		if strings.Contains(line, " pwrite64(") {
			t.Fatalf("before a sync of the log comes %.200s", line)
		}
	}
	t.Error("the log was not synced")
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		proctest.Absent(t, "strace", err)
	}
	o := &outage{
		env:    []string{"HOLDFAST_NET_ALLOW=127.0.0.1", "HOLDFAST_LEASE=1s", "HOLDFAST_MAX_ATTEMPTS=100"},
		random: rand.New(rand.NewPCG(1, uint64(looptest.Number(t, 1<<30)))),
	}
	dir := t.TempDir()
	for i := range o.payloads {
		payload := make([]byte, 64<<10+i)
		for j := range payload {
			payload[j] = byte(o.random.Uint32())
		}
		o.payloads[i] = filepath.Join(dir, fmt.Sprint(i), "a.bin")
		must(t, os.Mkdir(filepath.Dir(o.payloads[i]), 0o755))
		must(t, os.WriteFile(o.payloads[i], payload, 0o600))
	}
	return o
}

// promise is what the service has said of one job, and what must be true from then on.
type promise struct {
	batch, item, ark    string
	accepted, completed int // points
}

// run starts Holdfast under strace, where each syncfs may be slow, and makes both submissions.
// Holdfast begins on an empty disk, or on the one that a process left that was killed at a point of
// an earlier history. A submission that had been made is repeated then, and gets the same batch.
func (o *outage) run(t *testing.T, before *powerloss.History, killed int, slow bool) (*powerloss.History, []promise) {
	t.Helper()
	dir := t.TempDir()
	h := &holdfast{t: t, dir: filepath.Join(dir, "data"), env: o.env, trace: filepath.Join(dir, "trace"), slow: slow}
	if before != nil {
		image, err := before.Seen(killed)
		must(t, err)
		must(t, image.Write(h.dir))
	}
	h.start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("holdfast's log:\n%s", h.log)
		}
	})
	promises := make([]promise, len(o.payloads))
	for i, file := range o.payloads {
		args := []string{"-q", file, "--local-id", "one", "--idempotency-key", fmt.Sprint(i)}
		if i > 0 {
			args = append(args, "--update")
		}
		s, code := h.submit(args...)
		if code != 0 || len(s.Jobs) != 1 {
			t.Fatalf("exit %d: %+v", code, s)
		}
		promises[i] = promise{batch: s.BatchID, item: s.Jobs[0].ItemID, ark: s.Jobs[0].ARK}
		h.becomes(promises[i].item, "Completed")
	}
	h.stop()
	var history *powerloss.History
	var err error
	if before == nil {
		history, err = powerloss.Read(h.trace, h.dir)
	} else {
		history, err = before.Continue(killed, h.trace, h.dir)
	}
	must(t, err)
	seen, err := history.Seen(history.Len())
	must(t, err)
	model := filepath.Join(dir, "seen")
	must(t, seen.Write(model))
	if got, want := files(t, model), files(t, h.dir); !maps.Equal(got, want) {
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("the model of the disk is wrong about %s: %d bytes, want %d", name, len(got[name]), len(want[name]))
			}
		}
		t.Fatalf("the model of the disk has %d files, the disk %d", len(got), len(want))
	}
	for i := range promises {
		p := &promises[i]
		var ok, done bool
		p.accepted, ok = history.Sent("HTTP/1.1 202 ", p.batch)
		p.completed, done = history.Sent(p.item, `"Completed"`)
		if !ok || !done || p.accepted > p.completed {
			t.Fatalf("batch %s: accepted at %d (%t), completed at %d (%t)", p.batch, p.accepted, ok, p.completed, done)
		}
	}
	t.Logf("%d operations, %d syncs", history.Len(), len(history.Syncs())-1)
	return history, promises
}

// check starts Holdfast on what is left of the disk after the power failed at a point, and looks for
// all that had been promised by then.
func (o *outage) check(t *testing.T, point int, image *powerloss.Image, promises []promise) {
	t.Helper()
	after := &holdfast{t: t, dir: filepath.Join(t.TempDir(), "data"), env: o.env}
	must(t, image.Write(after.dir))
	after.start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("holdfast's log:\n%s", after.log)
		}
	})
	for i, p := range promises {
		if point >= p.completed {
			if it := after.item(p.item); it.State != "Completed" {
				t.Errorf("the job of version %d had completed, and is %s", i+1, it.State)
			}
		}
		if point < p.accepted {
			continue
		}
		// Only what the depositor has been told is settled: the batch, and at last the ARK.
		id := after.job(p.batch).ID
		after.becomes(id, "Completed")
		it := rows[struct {
			Results struct {
				Plan struct {
					ObjectID string `json:"object_id"`
				} `json:"plan"`
			} `json:"results"`
		}](after, "item", "show", id)[0].Results.Plan
		if point >= p.completed && it.ObjectID != p.ark {
			t.Errorf("the object of version %d was %s, and is %s", i+1, p.ark, it.ObjectID)
		}
		payload, err := os.ReadFile(o.payloads[i])
		must(t, err)
		out := filepath.Join(t.TempDir(), "out")
		after.must(0, "object", "export", it.ObjectID, "--version", fmt.Sprint(i+1), "--out", out)
		if got := files(t, out); len(got) != 1 || !bytes.Equal([]byte(got["a.bin"]), payload) {
			t.Errorf("version %d came out as %d files, or with other bytes", i+1, len(got))
		}
	}
	// It serves as ever.
	more := filepath.Join(t.TempDir(), "more.txt")
	must(t, os.WriteFile(more, []byte("after the power came back"), 0o600))
	if s, code := after.submit("-q", more); code != 0 {
		t.Errorf("a submission afterwards ended with %d: %+v", code, s)
	}
	for _, it := range after.list() {
		if it.State == "Failed" || strings.HasPrefix(it.State, "Needs") {
			t.Errorf("item %s is %s: %+v", it.ID, it.State, it)
		}
	}
	after.stop()
	if r := after.runIn("", "check", after.place("storage")); r.code != 0 {
		t.Errorf("the storage root is not valid: %s%s", r.stdout, r.stderr)
	}
}
