package workers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// Files that a bag omits and names in fetch.txt are fetched, judged with the rest, and stored in
// their places.
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
			[]string{"url-scheme", "data/far.txt", "upload:abc"},
		},
		{
			"a password and another scheme, both told, one of them not whole",
			func(*rig) map[string]string {
				return map[string]string{"far.txt": "https://me:hush@h.test/x", "other.txt": "ftp://h.test/y"}
			},
			registry.ContentFault,
			[]string{"2 errors", "data/far.txt", "url-secret", "data/other.txt", "url-scheme"},
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
			if strings.Contains(it.Note, "hush") {
				t.Errorf("the note has a password: %s", it.Note)
			}
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

// An attempt after a wait does not unpack again.
func TestProcess_KeepsWhatItUnpacked(t *testing.T) {
	r := newRig(t, nil)
	f := &forgetful{ForWorkers: r.registry, identify: func(error) error { return &registry.LockedError{Key: "k", ItemID: "other"} }}
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
		if strings.HasSuffix(key, ".unpacked/1") {
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

// A collection that requires a BagIt profile refuses bags that do not meet it, with all faults, and
// fetches nothing for them; other payloads are unaffected. The profile at the time of submission
// counts.
func TestBag_Profile(t *testing.T) {
	t.Parallel()
	profile := json.RawMessage(`{
		"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "https://example.org/p.json", "Source-Organization": "o", "External-Description": "d", "Version": "1"},
		"Bag-Info": {"Contact-Email": {"required": true}},
		"Payload-Files-Required": ["data/far.txt"],
		"Serialization": "required", "Accept-Serialization": ["application/zip"], "Accept-BagIt-Version": ["1.0"]
	}`)
	r := newRig(t, nil)
	r.profile("demanding", registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, BagProfile: profile,
	})
	job := func(name, data string) string {
		batch := r.submitTo("demanding", registry.Spec{Type: registry.AutoType, URL: r.site.put(name, data), Filename: name})
		return r.expand(batch)[0].ID
	}
	bag := bagOf(map[string]string{"a.txt": "a", "far.txt": "far"}, map[string]string{"far.txt": r.site.put("far", "far")})
	bare := job("bare.tar", tarOf(t, bag))
	isContent(t, r.fails(bare), "4 errors", "bag-info.txt", "https://example.org/p.json", "Contact-Email", "application/zip")
	if r.site.gets("far") != 0 {
		t.Error("fetched for a bag that is refused anyway")
	}
	bag["bag/bag-info.txt"] = "BagIt-Profile-Identifier: https://example.org/p.json\nContact-Email: a@example.org\n"
	good := job("good.zip", zipOf(t, bag))
	plain := job("plain.zip", zipOf(t, sample()))
	r.profile("demanding", registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}})
	free := job("free.tar", tarOf(t, bagOf(sample(), nil)))
	for _, id := range []string{good, plain, free} {
		r.complete(id)
	}
}

// A bag with many faults has a short note, and all faults in its history.
func TestBag_RefusalTellsAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("%02d.txt", i)] = "x"
	}
	bag := bagOf(files, nil)
	for name := range files {
		bag["bag/data/"+name] = "y"
	}
	id := r.job(registry.Spec{Type: registry.BagType, URL: r.site.put("b.zip", zipOf(t, bag)), Filename: "b.zip"})
	isContent(t, r.fails(id), "40 errors", "data/00.txt", "and 35 more")
	history, err := r.registry.Events(t.Context(), id, 0, 500)
	must(t, err)
	for _, e := range history {
		if e.Type != "bag-refused" {
			continue
		}
		for name := range files {
			if !strings.Contains(string(e.Data), "data/"+name) {
				t.Errorf("the history does not name %s", name)
			}
		}
		return
	}
	t.Errorf("no event bag-refused among %v", history)
}
