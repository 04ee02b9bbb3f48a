package workers_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// What a bag left out and names in fetch.txt is fetched, judged with the rest, and stored at its place.
func TestBag_Holey(t *testing.T) {
	r := newRig(t, nil)
	files := map[string]string{"here.txt": "here", "far/one.txt": "one", "far/two.txt": "two"}
	bag := bagOf(files, map[string]string{"far/one.txt": r.site.put("one", "one"), "far/two.txt": r.site.put("two", "two")})
	job := r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("b.zip", zipOf(t, bag)), Filename: "b.zip"})
	o := r.complete(job)
	r.valid(o, 1)
	want := maps.Clone(bag)
	want["bag/data/far/one.txt"], want["bag/data/far/two.txt"] = "one", "two"
	if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	r.nothingStaged(job)
}

func TestBag_HoleyRefused(t *testing.T) {
	files := map[string]string{"here.txt": "here", "far.txt": "far", "other.txt": "other"}
	for _, tt := range []struct {
		name  string
		holes func(r *rig) map[string]string
		class registry.ErrorClass
		words []string
	}{
		{
			"missing", func(r *rig) map[string]string { return map[string]string{"far.txt": r.site.url + "none"} },
			registry.ContentFault,
			[]string{"fetch.txt", "data/far.txt", "404"},
		},
		{
			"other bytes", func(r *rig) map[string]string { return map[string]string{"far.txt": r.site.put("far", "FAR")} },
			registry.ContentFault,
			[]string{"data/far.txt"},
		},
		{
			"an upload", func(*rig) map[string]string { return map[string]string{"far.txt": "upload:abc"} },
			registry.ContentFault,
			[]string{"upload:abc"},
		},
		{
			"a forbidden network", func(*rig) map[string]string { return map[string]string{"far.txt": "http://192.168.0.1/x"} },
			registry.ContentFault,
			[]string{"192.168.0.1"},
		},
		{
			"server down", func(*rig) map[string]string { return map[string]string{"far.txt": "http://127.0.0.1:1/x"} },
			registry.SystemFault,
			[]string{"fetch.txt"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			data := zipOf(t, bagOf(files, tt.holes(r)))
			it := r.fails(r.job(registry.Spec{Type: registry.BagType, URL: r.site.put("b", data), Filename: "b"}))
			wantClass(t, it, tt.class, tt.words...)
		})
	}
}

// A bag that lacks more than it names is refused before anything is fetched.
func TestBag_HoleyAndIncomplete(t *testing.T) {
	r := newRig(t, nil)
	bag := bagOf(map[string]string{"here.txt": "here", "far.txt": "far"}, map[string]string{"far.txt": r.site.put("far", "far")})
	delete(bag, "bag/data/here.txt")
	it := r.fails(r.job(registry.Spec{Type: registry.BagType, URL: r.site.put("b", zipOf(t, bag)), Filename: "b"}))
	isContent(t, it, "data/here.txt")
	if r.site.gets("far") != 0 || strings.Contains(it.Note, "404") {
		t.Errorf("fetched for a bag that is refused anyway: %s", it.Note)
	}
}

// An attempt that follows one which had to wait does not unpack again.
func TestProcess_KeepsWhatItUnpacked(t *testing.T) {
	r := newRig(t, nil)
	f := &forgetful{Store: r.registry, identify: func(error) error { return &registry.LockedError{Key: "k", ItemID: "other"} }}
	id, want := r.zipJob(1)
	r.advance(id, registry.Process)
	r.deps.Registry = f
	if _, err := r.run(id); err == nil {
		t.Fatal("the step did not wait")
	}
	waits(t, r.item(id))
	r.deps.Registry = r.registry
	r.wait(1e12)
	r.advance(id, registry.Record)
	unpacked := 0
	for _, key := range keys(t, r.staging, "items/"+id) {
		if strings.HasSuffix(key, "unpacked/list.jsonl") {
			unpacked++
		}
	}
	if unpacked != 1 {
		t.Errorf("unpacked %d times", unpacked)
	}
	if diff := cmp.Diff(want, r.producer(r.complete(id), 1)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
