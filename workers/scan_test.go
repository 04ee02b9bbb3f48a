package workers_test

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/clamd"
	"github.com/holdfast/holdfast/clamd/clamdtest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
)

const scannedCollection = "scanned"

// newScanRig has a collection that asks for scans.
func newScanRig(t *testing.T, addr string, change func(d *workers.Deps), p registry.Profile) *rig {
	t.Helper()
	r := newRig(t, func(d *workers.Deps) {
		if addr != "" {
			d.Clamd = clamd.New(addr)
		}
		if change != nil {
			change(d)
		}
	})
	p.Owner, p.Collections, p.Scan = "ark:/99999/owner", []string{"ark:/99999/test"}, true
	r.profile(scannedCollection, p)
	return r
}

func (r *rig) scannedJob(s registry.Spec) string {
	r.t.Helper()
	jobs := r.expand(r.submitTo(scannedCollection, s))
	if len(jobs) != 1 {
		r.t.Fatalf("%d jobs, want 1", len(jobs))
	}
	return jobs[0].ID
}

// nothingStored checks that no byte of any object is in storage.
func (r *rig) nothingStored() {
	r.t.Helper()
	for _, key := range keys(r.t, r.storage, "") {
		if strings.Contains(key, "/content/") || strings.HasSuffix(key, "inventory.json") {
			r.t.Errorf("stored: %s", key)
		}
	}
}

func TestAWorkerTakesLittle(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("scan.go")
	must(t, err)
	if n := strings.Count(string(source), "\n"); n >= 50 {
		t.Errorf("the worker has %d lines, want fewer than 50", n)
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	server := clamdtest.Start(t)
	large := strings.Repeat("x", clamdtest.MaxFile+1)
	infected := "a " + clamdtest.Virus
	manifest := func(r *rig, rows ...checkm.Row) registry.Spec {
		return registry.Spec{Type: registry.ObjectManifest, Filename: "m", URL: r.site.manifest("m", checkm.Object, rows...)}
	}
	for _, tt := range []struct {
		name    string
		profile registry.Profile
		spec    func(r *rig) registry.Spec
		detail  string              // of the event of one that completes
		stage   registry.Stage      // where another one fails
		class   registry.ErrorClass // and how
		words   []string
	}{
		{
			name: "clean", spec: func(r *rig) registry.Spec {
				return manifest(r, checkm.Row{URL: r.site.put("a", "alpha"), Name: "a.txt"}, checkm.Row{URL: r.site.put("b", ""), Name: "b.txt"})
			}, detail: "no virus found in 2 files",
		},
		{
			name: "one file of many", spec: func(r *rig) registry.Spec {
				return manifest(r, checkm.Row{URL: r.site.put("a", "alpha"), Name: "a.txt"}, checkm.Row{URL: r.site.put("b", infected), Name: "sub/b.txt"})
			}, stage: registry.Scan, class: registry.ContentFault, words: []string{"sub/b.txt", clamdtest.Signature},
		},
		{
			name: "in a container that clamd can open", spec: func(r *rig) registry.Spec {
				return registry.Spec{Type: registry.ContainerType, Filename: "c.zip", URL: r.site.put("c", zipOf(r.t, map[string]string{"a": "alpha", "b": infected}))}
			}, stage: registry.Scan, class: registry.ContentFault, words: []string{"c.zip", clamdtest.Signature},
		},
		{
			name: "in a container that is larger than clamd takes", spec: func(r *rig) registry.Spec {
				tar := tarOf(r.t, map[string]string{"a": infected, "b": strings.Repeat("x", clamdtest.MaxFile/2), "c": strings.Repeat("y", clamdtest.MaxFile/2)})
				return registry.Spec{Type: registry.ContainerType, Filename: "c.tar", URL: r.site.put("c", tar)}
			}, stage: registry.Process, class: registry.ContentFault, words: []string{"a contains " + clamdtest.Signature},
		},
		{
			name: "container's files one by one", spec: func(r *rig) registry.Spec {
				return registry.Spec{Type: registry.ContainerType, Filename: "c.zip", URL: r.site.put("c", zipOf(r.t, map[string]string{"a": "1", "b": "2", "c": "3"}))}
			}, detail: "no virus found in 3 files",
		},
		{
			name: "larger than clamd takes", spec: func(r *rig) registry.Spec {
				return registry.Spec{Type: registry.FileType, Filename: "big", URL: r.site.put("big", large)}
			}, stage: registry.Scan, class: registry.SystemFault, words: []string{"big", "scan_partly"},
		},
		{
			// Of files in an archive that are too large for it clamd itself says nothing.
			name: "file in a container that is larger than clamd takes", spec: func(r *rig) registry.Spec {
				return registry.Spec{Type: registry.ContainerType, Filename: "c.zip", URL: r.site.put("c", zipOf(r.t, map[string]string{"a": "1", "big": large}))}
			}, stage: registry.Process, class: registry.SystemFault, words: []string{"big", "scan_partly"},
		},
		{
			name: "larger than clamd takes, taken unseen", profile: registry.Profile{ScanPartly: true}, spec: func(r *rig) registry.Spec {
				return registry.Spec{Type: registry.ContainerType, Filename: "c.zip", URL: r.site.put("c", zipOf(r.t, map[string]string{"a": "1", "big": large}))}
			}, detail: "no virus found in 1 files; 1 files were not scanned, since they are too large for the engine: big",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newScanRig(t, server.Socket, nil, tt.profile)
			id := r.scannedJob(tt.spec(r))
			if tt.class == "" {
				o := r.complete(id)
				e := r.events(o, "virus check")
				if len(e) != 1 || e[0].Detail != tt.detail || !strings.HasPrefix(e[0].Agent, "ClamAV 1.") || e[0].Outcome != "success" {
					t.Errorf("events %+v, want one of %q", e, tt.detail)
				}
				return
			}
			it := r.fails(id)
			wantClass(t, it, tt.class, tt.words...)
			if it.Stage != tt.stage {
				t.Errorf("failed at %s, want %s", it.Stage, tt.stage)
			}
			r.nothingStored()
		})
	}
}

// If a scan finds the list of downloaded files damaged, Download writes it again (R6).
func TestR06_ScanGoesBack(t *testing.T) {
	t.Parallel()
	r := newScanRig(t, clamdtest.Start(t).Addr, nil, registry.Profile{})
	id := r.scannedJob(r.longList())
	r.advance(id, registry.Scan)
	for _, key := range keys(t, r.staging, "items/"+id) {
		if strings.HasSuffix(key, "files.jsonl") {
			must(t, r.staging.Replace(t.Context(), key, []byte("{}\n")))
		}
	}
	if v, _ := r.run(id); v.Stage != registry.Download {
		t.Errorf("it is at %q, want download", v.Stage)
	}
	if it := r.ends(id); it.Status != registry.Completed {
		t.Errorf("%s: %s", it.Status, it.Note)
	}
}

// Nothing passes unscanned because clamd is unavailable, not configured, or would report unscanned
// files as clean.
func TestScan_NeverPassesUnscanned(t *testing.T) {
	t.Parallel()
	gone := clamdtest.Start(t)
	gone.Kill()
	for name, tt := range map[string]struct{ addr, says string }{
		"not set": {"", "set HOLDFAST_CLAMD_ADDR"}, "down": {gone.Addr, "connection refused"},
		"passes what it does not see": {clamdtest.Start(t, "AlertExceedsMax no").Addr, "AlertExceedsMax yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newScanRig(t, tt.addr, nil, registry.Profile{})
			it := r.fails(r.scannedJob(registry.Spec{Type: registry.FileType, Filename: "a", URL: r.site.put("a", "alpha")}))
			wantClass(t, it, registry.SystemFault, tt.says)
			r.nothingStored()
		})
	}
}

// Without a collection's request nothing is scanned, and clamd is not needed.
func TestScan_OnlyWhereAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	o := r.complete(r.job(registry.Spec{Type: registry.FileType, Filename: "a", URL: r.site.put("a", clamdtest.Virus)}))
	if e := r.events(o, "virus check"); len(e) > 0 {
		t.Errorf("events %+v", e)
	}
}

func TestScan_GoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	ctx, kill := context.WithCancel(t.Context())
	tap := &tapped{word: ".files"}
	r := newScanRig(t, clamdtest.Start(t).Socket, func(d *workers.Deps) {
		tap.Store = d.Staging
		d.Staging = tap
	}, registry.Profile{})
	var rows []checkm.Row
	url := r.site.put("a", "alpha")
	for i := range manyFiles {
		rows = append(rows, checkm.Row{URL: url, Name: strings.Repeat("n", i+1)})
	}
	id := r.scannedJob(registry.Spec{Type: registry.ObjectManifest, Filename: "m", URL: r.site.manifest("m", checkm.Object, rows...)})
	r.advance(id, registry.Scan)
	tap.again()
	stopping := &stopAfter{Store: r.deps.Staging, reads: 150, stop: kill}
	r.deps.Staging = stopping
	if _, err := r.runAs(ctx, id); err == nil {
		t.Fatal("it was not interrupted")
	}
	r.deps.Staging = tap
	tap.again()
	it := r.advance(id, registry.Process)
	tap.mu.Lock()
	again := tap.read
	tap.mu.Unlock()
	if it.Stage != registry.Process || again == 0 || again > manyFiles-50 {
		t.Errorf("at %s; %d of %d files were scanned again", it.Stage, again, manyFiles)
	}
	if e := r.events(r.complete(id), "virus check"); len(e) != 1 || e[0].Detail != "no virus found in 250 files" {
		t.Errorf("events %+v", e)
	}
}

// stopAfter stops once so many files were opened.
type stopAfter struct {
	storage.Store
	reads int
	stop  func()

	mu sync.Mutex
}

func (s *stopAfter) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if strings.Contains(key, ".files") {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.reads--; s.reads < 0 {
			s.stop()
			<-ctx.Done() // the step hears of it before it fails
			return nil, errTest
		}
	}
	return s.Store.Open(ctx, key, offset, length)
}
