package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestChaos_TriesAreBounded has a source fail for good while workers are killed and paused: each
// job is tried exactly MAX_ATTEMPTS times and then waits for an admin (I11). Requeued after the
// source is repaired, all complete.
func TestChaos_TriesAreBounded(t *testing.T) {
	const jobs, most = 12, 2
	var broken atomic.Bool
	broken.Store(true)
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".checkm"):
			var rows []string
			for i := range jobs {
				rows = append(rows, fmt.Sprintf("%s/%d.bin | | | | | %d.bin", self(r), i, i))
			}
			content(manifest("mrt-single-file-batch-manifest", rows...))(w, r)
		case broken.Load():
			time.Sleep(20 * time.Millisecond) // a moment in which the worker can be hit
			w.WriteHeader(http.StatusInternalServerError)
		default:
			content("content of "+r.URL.Path)(w, r)
		}
	}))
	server.Start()
	f := newFleet(t, fleetSpec{
		workers: []string{"download", "download", strings.Join(slices.DeleteFunc(slices.Clone(everyStage), func(s string) bool { return s == "download" }), ",")},
		env:     []string{fmt.Sprint("HOLDFAST_MAX_ATTEMPTS=", most), "HOLDFAST_LEASE=" + chaosLease.String()},
	})
	rng := rand.New(rand.NewPCG(1, 1))
	if r := f.run("submit", url+"/batch.checkm"); r.code != 0 {
		t.Fatalf("submit ended with %d: %s", r.code, r.stderr)
	}
	deadline := time.Now().Add(patience)
	for f.count(`SELECT COUNT(*) FROM work_item WHERE action = 'ingest' AND status = 'failed'`) < jobs && time.Now().Before(deadline) {
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond) // the moment of the fault
		f.proc("download", rng.IntN(2)).restart()
		f.hurry(0)
	}
	wrong := f.query("registry.db", fmt.Sprintf(`SELECT i.id, i.status, i.error_class, i.tries, i.note,
			(SELECT COUNT(*) FROM attempt a WHERE a.item_id = i.id AND a.stage = 'download' AND a.outcome IN ('retry', 'failed'))
		FROM work_item i WHERE i.action = 'ingest' AND (i.status <> 'failed' OR i.error_class <> 'system' OR i.stage <> 'download' OR i.tries <> %[1]d
			OR (SELECT COUNT(*) FROM attempt a
				WHERE a.item_id = i.id AND a.stage = 'download' AND a.outcome IN ('retry', 'failed')) > %[1]d)`, most))
	if len(wrong) > 0 {
		t.Errorf("%d jobs did not fail after %d tries:\n%s", len(wrong), most, strings.Join(wrong, "\n"))
	}
	broken.Store(false)
	if r := f.run("item", "requeue", "--match", "state:failed action:ingest", "--yes"); r.code != 0 {
		t.Fatalf("requeue ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for f.count(`SELECT COUNT(*) FROM work_item WHERE action = 'ingest' AND status = 'completed'`) < jobs && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond) // polls
	}
	if r := f.run("object", "verify", "--all", "--json"); r.code != 0 || f.count(`SELECT COUNT(*) FROM object WHERE head = 1`) != jobs {
		t.Errorf("verify ended with %d: %s%s%s", r.code, r.stdout, r.stderr, f.run("item", "list").stdout)
	}
	twice := f.query("registry.db", `SELECT item_id, stage, COUNT(*) FROM attempt WHERE outcome = 'done' GROUP BY item_id, stage HAVING COUNT(*) > 1`)
	if len(twice) > 0 {
		t.Errorf("done more than once: %v", twice)
	}
}
