package workers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// An update adds, replaces and deletes. Files that it does not name stay, and existing bytes are
// not stored again.
func TestUpdate(t *testing.T) {
	r := newRig(t, nil)
	spec := registry.Spec{
		Type: registry.ObjectManifest, Filename: "m", LocalIDs: []string{"obj"}, Title: "The title", Creator: "Somebody",
		URL: r.site.manifest("m", checkm.Object,
			checkm.Row{URL: r.site.put("a", "alpha"), Name: "a.txt"}, checkm.Row{URL: r.site.put("b", "beta"), Name: "b.txt"},
			checkm.Row{URL: r.site.put("c", "gamma"), Name: "sub/c.txt"}),
	}
	first := r.complete(r.job(spec))
	update := registry.Spec{
		Type: registry.ContainerType, Mode: registry.Update, Filename: "u.zip", LocalIDs: []string{"obj", "obj-2"},
		URL: r.site.put("u.zip", zipOf(t, map[string]string{
			"a.txt": "alpha 2", "copy.txt": "gamma", "new.txt": "delta", "mrt-delete.txt": "b.txt\n",
		})),
	}
	o := r.complete(r.job(update))
	r.valid(o, 2)
	if o.ID != first.ID {
		t.Fatalf("updated %s, not %s", o.ID, first.ID)
	}
	want := map[string]string{"a.txt": "alpha 2", "sub/c.txt": "gamma", "copy.txt": "gamma", "new.txt": "delta"}
	if diff := cmp.Diff(want, r.producer(o, 2)); diff != "" {
		t.Errorf("version 2 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a.txt": "alpha", "b.txt": "beta", "sub/c.txt": "gamma"}, r.producer(o, 1)); diff != "" {
		t.Errorf("version 1 changed (-want +got):\n%s", diff)
	}
	stored := strings.Join(keys(t, r.storage, ""), "\n")
	if strings.Contains(stored, "v2/content/producer/copy.txt") || strings.Contains(stored, "v2/content/producer/sub") {
		t.Errorf("bytes that were there were stored again:\n%s", stored)
	}
	files := r.files(o, 2)
	wantListed(t, files)
	if files["system/mrt-delete.txt"] != "b.txt\n" {
		t.Errorf("delete list %q", files["system/mrt-delete.txt"])
	}
	if _, there := files["system/mrt-submission-manifest.txt"]; there {
		t.Error("the first submission's manifest is taken for the second's")
	}
	if o.Title != "The title" || o.Creator != "Somebody" {
		t.Errorf("an update that says nothing of it took title %q and creator %q away", o.Title, o.Creator)
	}
	if mom := files["system/mrt-mom.txt"]; !strings.Contains(mom, "obj;obj-2") {
		t.Errorf("mrt-mom.txt:\n%s", mom)
	}
	// The next update's system files are its own, too.
	update.URL = r.site.put("u2.zip", zipOf(t, map[string]string{"e.txt": "e"}))
	o = r.complete(r.job(update))
	r.valid(o, 3)
	if _, there := r.files(o, 3)["system/mrt-delete.txt"]; there {
		t.Error("version 3 has version 2's delete list")
	}
	wantListed(t, r.files(o, 3))
}

// Adding to an existing object makes a version of exactly what was submitted.
func TestAdd_OnExisting(t *testing.T) {
	r := newRig(t, nil)
	spec := registry.Spec{Type: registry.ContainerType, Filename: "c", LocalIDs: []string{"x"}}
	for i, files := range []map[string]string{sample(), {"a.txt": "alpha\n", "z": "z"}, {"a.txt": "alpha\n", "z": "z"}} {
		spec.URL = r.site.put("c", zipOf(t, files))
		o := r.complete(r.job(spec))
		r.valid(o, i+1)
		if diff := cmp.Diff(files, r.producer(o, i+1)); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", i+1, diff)
		}
		wantListed(t, r.files(o, i+1))
	}
}

// A collection with a new digest algorithm continues existing objects with theirs.
func TestAdd_OtherDigestThanTheObject(t *testing.T) {
	for first, then := range map[string]string{"sha256": "sha512", "sha512": "sha256"} {
		t.Run(first, func(t *testing.T) {
			r := newRig(t, nil)
			by := func(algorithm string) {
				r.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, DigestAlgorithm: algorithm})
			}
			by(first)
			spec := registry.Spec{
				Type: registry.ObjectManifest, Filename: "m", LocalIDs: []string{"x"},
				URL: r.site.manifest("m", checkm.Object, checkm.Row{URL: r.site.put("a", "alpha"), Name: "a"}),
			}
			r.complete(r.job(spec))
			by(then)
			spec.Mode = registry.Update
			spec.URL = r.site.manifest("m", checkm.Object, checkm.Row{URL: r.site.put("b", "beta"), Name: "b"})
			o := r.complete(r.job(spec))
			r.valid(o, 2)
			wantListed(t, r.files(o, 2))
			if inv, err := r.objects.Inventory(t.Context(), o.ID, 2); err != nil || inv.Algorithm != first {
				t.Errorf("version 2 by %+v, %v; want %s", inv, err, first)
			}
		})
	}
}

func TestUpdate_Refused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spec  registry.Spec
		files map[string]string
		words []string
	}{
		{"no identifier", registry.Spec{}, nil, []string{"local id"}},
		{"unknown ARK", registry.Spec{PrimaryID: "ark:/99999/fk4none"}, nil, []string{"ark:/99999/fk4none", "--update"}},
		{"unknown local id", registry.Spec{LocalIDs: []string{"none"}}, nil, []string{`"none"`}},
		{"deletes what is not there", registry.Spec{LocalIDs: []string{"there"}}, map[string]string{"mrt-delete.txt": "nope.txt\n"}, []string{"nope.txt"}},
		{"deletes outside", registry.Spec{LocalIDs: []string{"there"}}, map[string]string{"mrt-delete.txt": "../x\n"}, []string{"mrt-delete.txt", "line 1"}},
		{"file where a folder is", registry.Spec{LocalIDs: []string{"there"}}, map[string]string{"sub": "x"}, []string{"sub"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.complete(r.job(registry.Spec{
				Type: registry.ContainerType, URL: r.site.put("c", zipOf(t, sample())), Filename: "c", LocalIDs: []string{"there"},
			}))
			files := map[string]string{"f": "f"}
			for n, d := range tt.files {
				files[n] = d
			}
			tt.spec.Type, tt.spec.Mode, tt.spec.Filename = registry.ContainerType, registry.Update, "u"
			tt.spec.URL = r.site.put("u", zipOf(t, files))
			isContent(t, r.fails(r.job(tt.spec)), tt.words...)
		})
	}
}
