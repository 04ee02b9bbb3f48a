package workers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// The warnings about an accepted manifest are in the history once, whichever stage read it first
// and however often a stage was repeated.
func TestWarnings_ToldOnce(t *testing.T) {
	odd := func(r *rig, kind checkm.Kind, n int) string {
		r.site.manifest("m", kind, checkm.Row{URL: r.site.put("f", "f"), Name: "f"})
		row := strings.Split(r.site.files["m"], "\n")[5]
		rows := ""
		for i := range n {
			rows += fmt.Sprintf("%s%d | | | | someday%d | f%d\n", strings.Fields(row)[0], i, i, i)
			r.site.put(fmt.Sprintf("f%d", i), "f")
		}
		return r.site.put("m", strings.Replace(r.site.files["m"], row+"\n", rows, 1))
	}
	t.Run("batch", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: odd(r, checkm.FileBatch, 13)})
		if jobs := r.expand(batch); len(jobs) != 13 || jobs[0].Status != registry.Pending {
			t.Fatalf("jobs %+v", jobs)
		}
		wantWarnings(t, r, batch, 13, 10)
	})
	t.Run("job", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: odd(r, checkm.Object, 2)})
		r.complete(job)
		wantWarnings(t, r, job, 2, 2)
	})
	t.Run("estimate could not read it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: odd(r, checkm.Object, 2)})
		r.site.break_(func(w http.ResponseWriter, req *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		})
		r.advance(job, registry.Download)
		r.site.break_(func(w http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path != "/f1" {
				return false
			}
			w.WriteHeader(http.StatusInternalServerError)
			return true
		})
		if _, err := r.run(job); err == nil {
			t.Fatal("download succeeded without f1")
		}
		r.site.break_(nil)
		r.wait(2 * 60e9)
		r.complete(job)
		wantWarnings(t, r, job, 2, 2)
	})
}

// wantWarnings checks that an item's history tells of so many warnings once, with the first of them
// in full.
func wantWarnings(t *testing.T, r *rig, id string, count, first int) {
	t.Helper()
	events, err := r.registry.Events(t.Context(), id, 0, 500)
	must(t, err)
	told := 0
	for _, e := range events {
		if e.Type != "manifest-warnings" {
			continue
		}
		told++
		var data struct {
			Count int      `json:"count"`
			First []string `json:"first"`
		}
		must(t, json.Unmarshal(e.Data, &data))
		if data.Count != count || len(data.First) != first || !strings.Contains(data.First[0], "line 6, column 5 (nfo:fileLastModified): modified") {
			t.Errorf("warnings %+v, want %d, the first %d of them in full", data, count, first)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
