package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/internal/powerloss"
	"github.com/holdfast/holdfast/internal/proctest"
)

// TestPowerLoss: the power fails at every file operation of two jobs; the second updates the
// first's object. The disk then has what was synced, and an arbitrary part of the rest. All
// promised data is there, the jobs complete without a person, and the result is a valid OCFL
// storage root with the right bytes.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		proctest.Absent(t, "strace", err)
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "payload")
	write := func(name string, text []byte) {
		t.Helper()
		must(t, os.MkdirAll(folder, 0o755))
		must(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	random := rand.New(rand.NewPCG(1, uint64(looptest.Number(t, 1<<30))))
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	env := []string{"HOLDFAST_NET_ALLOW=127.0.0.1", "HOLDFAST_LEASE=1s", "HOLDFAST_MAX_ATTEMPTS=100"}
	h := &holdfast{t: t, dir: filepath.Join(dir, "data"), env: env, trace: filepath.Join(dir, "trace")}
	h.start()

	// promise is what the service has said of one job, and what must be true from then on.
	type promise struct {
		batch, item         string
		accepted, completed int // points
		version             int
		payload             []byte
	}
	var promises []*promise
	var ark string
	for version, args := range [][]string{{"--local-id", "one"}, {"--local-id", "one", "--update"}} {
		p := &promise{version: version + 1, payload: bytesOf(64<<10 + version)}
		write("a.bin", p.payload)
		s, code := h.submit(append([]string{"-q", filepath.Join(folder, "a.bin")}, args...)...)
		if code != 0 || len(s.Jobs) != 1 {
			t.Fatalf("exit %d: %+v", code, s)
		}
		p.batch, p.item, ark = s.BatchID, s.Jobs[0].ItemID, s.Jobs[0].ARK
		h.becomes(p.item, "Completed")
		promises = append(promises, p)
	}
	h.stop()
	history, err := powerloss.Read(h.trace, h.dir)
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
	for _, p := range promises {
		var ok, done bool
		p.accepted, ok = history.Sent("HTTP/1.1 202 ", p.batch)
		p.completed, done = history.Sent(p.item, `"Completed"`)
		if !ok || !done || p.accepted >= p.completed {
			t.Fatalf("batch %s: accepted at %d (%t), completed at %d (%t)", p.batch, p.accepted, ok, p.completed, done)
		}
	}
	t.Logf("%d operations, %d syncs", history.Len(), len(history.Syncs())-1)

	check := func(t *testing.T, point int, image *powerloss.Image) {
		t.Helper()
		after := &holdfast{t: t, dir: filepath.Join(t.TempDir(), "data"), env: env}
		must(t, image.Write(after.dir))
		after.start()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("holdfast's log:\n%s", after.log)
			}
		})
		for _, p := range promises {
			if point >= p.completed {
				if it := after.item(p.item); it.State != "Completed" {
					t.Errorf("the job of version %d had completed, and is %s", p.version, it.State)
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
			if point >= p.completed && it.ObjectID != ark {
				t.Errorf("the object of version %d was %s, and is %s", p.version, ark, it.ObjectID)
			}
			out := filepath.Join(t.TempDir(), "out")
			after.must(0, "object", "export", it.ObjectID, "--version", fmt.Sprint(p.version), "--out", out)
			if got := files(t, out); len(got) != 1 || !bytes.Equal([]byte(got["a.bin"]), p.payload) {
				t.Errorf("version %d came out as %d files, or with other bytes", p.version, len(got))
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
	visit := looptest.Some(t, 12)
	for i, point := range history.Syncs() {
		if !visit() {
			continue
		}
		t.Run(fmt.Sprintf("sync %d, the worst", i), func(t *testing.T) {
			t.Parallel()
			image, err := history.Worst(point)
			must(t, err)
			check(t, point, image)
		})
		if i == 0 {
			continue
		}
		before := history.Syncs()[i-1]
		at := before + random.IntN(point-before+1)
		t.Run(fmt.Sprintf("operation %d, anything", at), func(t *testing.T) {
			t.Parallel()
			image, err := history.Some(at, rand.New(rand.NewPCG(2, uint64(at))))
			must(t, err)
			check(t, at, image)
		})
	}
}
