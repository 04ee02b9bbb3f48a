package workers_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// brain reads one of Merritt's own samples.
func brain(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "cases", "merritt", "sampleFiles", name))
	if err != nil {
		t.Skipf("no real cases here: %v", err)
	}
	return string(data)
}

func (r *rig) brain(mode registry.Mode, name, data string) registry.Spec {
	return registry.Spec{Type: registry.AutoType, Mode: mode, Filename: name, LocalIDs: []string{"brain"}, URL: r.site.put(name, data)}
}

// The real pair: four pictures, then one more.
func TestUpdate_Brain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	o := r.complete(r.job(r.brain(registry.Add, "v1.tar.gz", brain(t, "brain_v1.tar.gz"))))
	v1 := r.producer(o, 1)
	o = r.complete(r.job(r.brain(registry.Update, "v2.zip", brain(t, "brain_v2.zip"))))
	r.valid(o, 2)
	v2 := r.producer(o, 2)
	for name, data := range v1 {
		if v2[name] != data {
			t.Errorf("%s is not what it was", name)
		}
	}
	if len(v2) <= len(v1) {
		t.Errorf("%d files, then %d", len(v1), len(v2))
	}
	for _, key := range keys(t, r.storage, "") {
		name, again := strings.CutPrefix(key[strings.LastIndex(key, "/v")+1:], "v2/content/producer/")
		if again && v1[name] == v2[name] {
			t.Errorf("%s was stored again", name)
		}
	}
}

// The real sample, updated by a container that names one of its pictures in mrt-delete.txt. That
// picture is missing from the second version, the others stay, and the first version still has it.
func TestUpdate_BrainWithDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	v1 := r.producer(r.complete(r.job(r.brain(registry.Add, "v1.tar.gz", brain(t, "brain_v1.tar.gz")))), 1)
	names := slices.Sorted(maps.Keys(v1))
	o := r.complete(r.job(r.brain(registry.Update, "u.zip", zipOf(t, map[string]string{"mrt-delete.txt": names[0] + "\n", "new.txt": "new"}))))
	r.valid(o, 2)
	want := maps.Clone(v1)
	delete(want, names[0])
	want["new.txt"] = "new"
	if !maps.Equal(want, r.producer(o, 2)) || !maps.Equal(v1, r.producer(o, 1)) {
		t.Errorf("version 2 has %v, of %v", slices.Sorted(maps.Keys(r.producer(o, 2))), names)
	}
	for _, key := range keys(t, r.storage, "") {
		if _, name, again := strings.Cut(key, "/v2/content/producer/"); again && name != "new.txt" {
			t.Errorf("%s was stored again", name)
		}
	}
}

// The real update without its object is refused, says so, and does not prevent adding the object.
func TestUpdate_BrainThatIsNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	isContent(t, r.fails(r.job(r.brain(registry.Update, "v2.zip", brain(t, "brain_v2.zip")))), `no object with the local id "brain"`, "without --update")
	o := r.complete(r.job(r.brain(registry.Add, "v1.tar.gz", brain(t, "brain_v1.tar.gz"))))
	r.valid(o, 1)
	r.valid(r.complete(r.job(r.brain(registry.Update, "v2.zip", brain(t, "brain_v2.zip")))), 2)
}

// Two updates of the real sample, submitted one after the other, make its versions in that order,
// the second on the first.
func TestR01_BrainUpdatesInTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	v1 := r.producer(r.complete(r.job(r.brain(registry.Add, "v1.tar.gz", brain(t, "brain_v1.tar.gz")))), 1)
	first := r.job(r.brain(registry.Update, "v2.zip", brain(t, "brain_v2.zip")))
	second := r.job(r.brain(registry.Update, "u.zip", zipOf(t, map[string]string{"last.txt": "last"})))
	o := r.inOrder(1, first, second)
	want := r.producer(o, 2)
	if len(want) <= len(v1) {
		t.Errorf("%d files, then %d", len(v1), len(want))
	}
	want["last.txt"] = "last"
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(r.producer(o, 3)))); diff != "" {
		t.Errorf("the last version (-want +got):\n%s", diff)
	}
}
