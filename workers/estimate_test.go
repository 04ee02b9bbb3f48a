package workers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// Estimate never fails, and fetches nothing.
func TestEstimate(t *testing.T) {
	tests := []struct {
		name     string
		rows     []checkm.Row
		head     func(w http.ResponseWriter, r *http.Request) bool
		size     int64
		files    int64
		priority int
	}{
		{"sizes by HEAD", []checkm.Row{{URL: "a"}, {URL: "b"}}, nil, 30, 2, 5},
		{"missing, size said", []checkm.Row{{URL: "a"}, {URL: "none", Size: 7}}, nil, 17, 2, 5},
		{"missing, size not said", []checkm.Row{{URL: "a"}, {URL: "none"}}, nil, -1, 2, 15},
		{"HEAD refused", []checkm.Row{{URL: "a"}}, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
			return r.Method == http.MethodHead
		}, 10, 1, 5},
		{"server down", []checkm.Row{{URL: "a"}}, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/m" {
				return false
			}
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}, -1, 1, 15},
		{"very large", []checkm.Row{{URL: "a"}}, sized(200 << 30), 200 << 30, 1, 15},
		{"cannot be true", []checkm.Row{{URL: "a"}, {URL: "b"}}, sized(1<<63 - 1), -1, 2, 15},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.site.put("a", "0123456789")
			r.site.put("b", "01234567890123456789")
			for i := range tt.rows {
				tt.rows[i].URL = r.site.url + tt.rows[i].URL
			}
			job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: r.site.manifest("m", checkm.Object, tt.rows...), Filename: "m"})
			r.site.break_(tt.head)
			v, err := r.run(job)
			it := r.item(job)
			if err != nil || v.Stage != registry.Provision {
				t.Fatalf("verdict %+v, %v", v, err)
			}
			if it.SizeBytes != tt.size || it.Files != tt.files || it.Priority != tt.priority {
				t.Errorf("size=%d files=%d priority=%d, want %d %d %d", it.SizeBytes, it.Files, it.Priority, tt.size, tt.files, tt.priority)
			}
		})
	}
}

func sized(n int64) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		}
		return r.Method == http.MethodHead
	}
}

// A manifest that cannot be fetched leaves the size unknown; Download reports the fault.
func TestEstimate_ManifestMissing(t *testing.T) {
	r := newRig(t, nil)
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: r.site.url + "none", Filename: "m"})
	it := r.advance(job, registry.Download)
	if it.Stage != registry.Download || it.SizeBytes != -1 {
		t.Fatalf("stage=%s size=%d", it.Stage, it.SizeBytes)
	}
	isContent(t, r.fails(job), "404")
}

// A job is deferred once, however often it is estimated.
func TestEstimate_DefersOnce(t *testing.T) {
	r := newRig(t, nil)
	job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.url + "none", Filename: "f"})
	isContent(t, r.fails(job))
	_, err := r.registry.Command(t.Context(), registry.Command{ItemID: job, Act: registry.ActRequeue, From: registry.Estimate, Actor: "tester"})
	must(t, err)
	r.advance(job, registry.Provision)
	if it := r.item(job); it.Priority != 15 {
		t.Errorf("priority=%d, want 15", it.Priority)
	}
}

// A manifest that changes at its source while a job runs does not change the job.
func TestPayload_ManifestIsFrozen(t *testing.T) {
	r := newRig(t, nil)
	r.site.put("a", "alpha")
	r.site.put("b", "beta")
	url := r.site.manifest("m", checkm.Object, checkm.Row{URL: r.site.url + "a", Name: "a"})
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: url, Filename: "m"})
	r.advance(job, registry.Provision)
	r.site.manifest("m", checkm.Object, checkm.Row{URL: r.site.url + "b", Name: "b"})
	o := r.complete(job)
	if got := r.producer(o, 1); len(got) != 1 || got["a"] != "alpha" {
		t.Errorf("files %v", got)
	}
	if got := r.content(o, 1, "system/mrt-submission-manifest.txt"); got == r.site.files["m"] {
		t.Error("the changed manifest was kept")
	}
}

// A batch that is expanded again after its manifest has changed makes the original jobs (R22).
func TestR22_ExpandsWhatItBegan(t *testing.T) {
	r := newRig(t, nil)
	row := func(name string) checkm.Row { return checkm.Row{URL: r.site.put(name, name), Name: name} }
	url := r.site.manifest("m", checkm.FileBatch, row("one"), row("two"))
	batch := r.submit(registry.Spec{Type: registry.AutoType, URL: url})
	broken := &failingJobs{ForWorkers: r.registry}
	r.deps.Registry = broken
	if _, err := r.run(batch); err == nil {
		t.Fatal("expanded")
	}
	if n := len(r.jobs(batch)); n != 2 {
		t.Fatalf("%d jobs before the answer was lost", n)
	}
	r.deps.Registry = r.registry
	r.site.manifest("m", checkm.FileBatch, row("x"), row("y"), row("z"))
	r.wait(2 * 60e9)
	jobs := r.expand(batch)
	if len(jobs) != 2 || jobs[0].Name != "one" || jobs[1].Name != "two" {
		t.Errorf("jobs %+v", jobs)
	}
}

// A worker killed between two portions of a batch, before or after the Registry has the next one,
// loses no row and makes none twice. Its successor sends only rows that are no jobs yet, and knows
// the earlier rows.
func TestR22_GoesOnBehindTheLastRow(t *testing.T) {
	t.Parallel()
	const rows, portions = 1300, 4
	for _, dieAt := range []int{1, 2, portions} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("portion %d after=%t", dieAt, after), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, nil)
				all := make([]checkm.Row, rows)
				for i := range all {
					all[i] = checkm.Row{URL: r.site.url + fmt.Sprint(i), Name: fmt.Sprint(i)}
				}
				all[700], all[1299] = all[3], all[3]
				batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: r.site.manifest("m", checkm.FileBatch, all...)})
				counted := &countedJobs{ForWorkers: r.registry, dieAt: dieAt, after: after}
				r.deps.Registry = counted
				if _, err := r.run(batch); !errors.Is(err, errTest) {
					t.Fatalf("error %v, want the death", err)
				}
				r.wait(time.Hour)
				if v, err := r.run(batch); err != nil || v.Stage != registry.Report {
					t.Fatalf("expand: %+v, %v", v, err)
				}
				if counted.rows != rows {
					t.Errorf("%d rows were sent, want %d", counted.rows, rows)
				}
				it := r.item(batch)
				if counts, err := r.registry.CountItems(t.Context(), registry.ItemQuery{ParentID: batch}); err != nil ||
					counts[registry.StatePending] != rows || it.BlockerCount != rows {
					t.Errorf("jobs %v (%v), blocker_count %d, want %d", counts, err, it.BlockerCount, rows)
				}
				names, repeats := map[string]bool{}, map[int64]registry.RowPlace{}
				q := registry.ItemQuery{ParentID: batch, Limit: 500}
				for {
					page, err := r.registry.Items(t.Context(), q)
					must(t, err)
					for _, j := range page.Rows {
						names[j.Name] = true
						var spec registry.Spec
						must(t, json.Unmarshal(j.Spec, &spec))
						if spec.Repeats != nil {
							repeats[j.Row] = *spec.Repeats
						}
					}
					if q.After = page.Next; q.After == "" {
						break
					}
				}
				if len(names) != rows-2 {
					t.Errorf("jobs of %d different rows, want %d", len(names), rows-2)
				}
				fourth := registry.RowPlace{Row: 4, Line: 9}
				if diff := cmp.Diff(map[int64]registry.RowPlace{701: fourth, 1300: fourth}, repeats); diff != "" {
					t.Errorf("rows that repeat others (-want +got):\n%s", diff)
				}
				wantRepeats(t, r, batch, "row 701, line 706 repeats row 4, line 9", "row 1,300, line 1,305 repeats row 4, line 9")
			})
		}
	}
}
