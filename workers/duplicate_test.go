package workers_test

import (
	"net/http"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// again submits an address without force, and expands it.
func (r *rig) again(s registry.Spec) (batch string, jobs []registry.WorkItem) {
	r.t.Helper()
	s.SizeBytes, s.Mode = -1, registry.Add
	receipt, err := r.registry.Submit(r.t.Context(), registry.Submission{Collection: collection, Name: s.Filename, Spec: s, Actor: "tester"})
	must(r.t, err)
	return receipt.BatchID, r.expand(receipt.BatchID)
}

// The same address with the same strong validator is a duplicate and completes without a job. With
// another validator, a weak one, or after the first failed, it is not.
func TestExpand_SameAddressAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	spec := registry.Spec{Type: registry.FileType, URL: r.site.put("f", "text"), Filename: "f"}
	first, jobs := r.again(spec)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs of the first, want 1", len(jobs))
	}
	r.complete(jobs[0].ID)
	if _, err := r.run(first); err != nil {
		t.Fatal(err)
	}

	second, none := r.again(spec)
	if len(none) != 0 {
		t.Errorf("%d jobs of the second, want none", len(none))
	}
	if v, err := r.run(second); err != nil || v.Status != registry.Completed {
		t.Fatalf("the second: %+v, %v; want completed", v, err)
	}
	if p, err := r.registry.BatchProgress(t.Context(), second); err != nil || p.DuplicateOf != first {
		t.Errorf("the second is a duplicate of %q (%v), want %s", p.DuplicateOf, err, first)
	}
	r.nothingStaged(second)

	r.site.put("f", "other text")
	if _, jobs = r.again(spec); len(jobs) != 1 {
		t.Errorf("%d jobs after the file has changed, want 1", len(jobs))
	}
	r.site.fault = func(w http.ResponseWriter, req *http.Request) bool {
		w.Header().Del("ETag")
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("other text"))
		return true
	}
	for range 2 {
		if _, jobs = r.again(spec); len(jobs) != 1 {
			t.Errorf("%d jobs without a validator, want 1", len(jobs))
		}
	}
	r.site.fault = func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodHead {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	if _, jobs = r.again(spec); len(jobs) != 1 {
		t.Errorf("%d jobs while the source does not say, want 1", len(jobs))
	}
}
