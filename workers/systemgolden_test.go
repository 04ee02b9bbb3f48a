package workers_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

var update = flag.Bool("update", false, "write golden files anew")

// Every system file of a first version and of an update, byte for byte except for names, times,
// digests and sizes. Fields and order are those of reference/merritt.md, 4.1, and difficult values
// are preserved.
func TestSystemFiles_Golden(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	long := strings.Repeat("long ", 1000) + "end" // more than Merritt's 3,500
	rows := []checkm.Row{{URL: r.site.put("a", "alpha"), Name: "a.txt"}, {URL: r.site.put("b", "beta"), Name: "sub/b c.txt"}}
	spec := registry.Spec{
		Type: registry.ObjectManifest, Filename: "4blocks.checkm", URL: r.site.manifest("m", checkm.Object, rows...), Submitter: "tracy@example.org",
		Title: "Husky\nChicken:\t50%41", Creator: long, Date: "2009-09-01", LocalIDs: []string{"loc1", "loc10", "a;b%sc"}, Notify: []string{"a@example.org"},
	}
	spec.Digest = digestOf(r.site.files["m"])
	first := r.complete(r.job(spec))
	r.golden("v1", first, 1)
	second := r.complete(r.job(registry.Spec{
		Type: registry.ContainerType, Mode: registry.Update, Filename: "u.zip", LocalIDs: []string{"loc1", "new"},
		URL: r.site.put("u.zip", zipOf(t, map[string]string{
			"c.txt": "gamma", "mrt-delete.txt": "a.txt\n", "mrt-erc.txt": "erc:\nwho: (:unkn) anonymous\nwhat: (:unas)\n",
			"mrt-dc.xml": `<DublinCore xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject>bears; jazz &amp; more</dc:subject><dc:rights>none</dc:rights></DublinCore>`,
		})),
	}))
	r.golden("v2", second, 2)
}

// golden compares the system files of a version with those in testdata.
func (r *rig) golden(folder string, o registry.Object, version int) {
	r.t.Helper()
	folder = filepath.Join("testdata", "system", folder)
	it := r.item(o.Versions[version-1].ItemID)
	names := strings.NewReplacer(o.ID, "ARK", r.site.url, "http://site/", it.ID, "JOB", it.ParentID, "BATCH")
	varying := []struct {
		what *regexp.Regexp
		as   string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
		{regexp.MustCompile(`\b[0-9a-f]{64,128}\b`), "DIGEST"},
		{regexp.MustCompile(`\| \d+ \|`), "| SIZE |"},
	}
	got := map[string]string{}
	for path, text := range r.files(o, version) {
		name, ours := strings.CutPrefix(path, "system/")
		if !ours {
			continue
		}
		text = names.Replace(text)
		for _, v := range varying {
			text = v.what.ReplaceAllString(text, v.as)
		}
		got[name] = text
	}
	if *update {
		must(r.t, os.MkdirAll(folder, 0o755))
		for name, text := range got {
			must(r.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
		}
	}
	want := map[string]string{}
	entries, err := os.ReadDir(folder)
	must(r.t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		must(r.t, err)
		want[e.Name()] = string(text)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		r.t.Errorf("system files (-want +got):\n%s", diff)
	}
	for name, text := range want {
		if diff := cmp.Diff(text, got[name]); diff != "" {
			r.t.Errorf("%s of version %d (-want +got):\n%s", name, version, diff)
		}
	}
}
