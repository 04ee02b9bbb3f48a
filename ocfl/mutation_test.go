package ocfl_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/ocfl"
)

// richSample is a valid object of two versions with a fixity block, logs and an extension.
func richSample() *sample {
	s := newSample(ocfl.Spec11)
	s.all(allFixity)
	s.write("logs/2026.log", "looked at\n")
	s.write("extensions/0005-mutable-head/config.json", "{}\n")
	return s
}

// corruption is one way to change an object; file is what it is done to, other another of its
// files, at where.
type corruption struct {
	name string
	do   func(s *sample, file, other string, at int)
}

var corruptions = []corruption{
	{"delete", func(s *sample, file, _ string, _ int) { s.drop(file) }},
	{"rename", func(s *sample, file, _ string, _ int) { s.renameContent(file, file+"~") }},
	{"move", func(s *sample, file, other string, _ int) { s.renameContent(file, other+".moved") }},
	{"truncate", func(s *sample, file, _ string, at int) { s.write(file, string(s.files[file].Data[:at])) }},
	{"append", func(s *sample, file, _ string, _ int) { s.write(file, string(s.files[file].Data)+"x") }},
	{"flip", func(s *sample, file, _ string, at int) {
		data := slices.Clone(s.files[file].Data)
		data[at] ^= 1 << (at % 8)
		s.write(file, string(data))
	}},
	{"zero", func(s *sample, file, _ string, at int) {
		s.write(file, string(s.files[file].Data[:at])+strings.Repeat("\x00", len(s.files[file].Data)-at))
	}},
	{"add", func(s *sample, file, _ string, _ int) { s.write(file+".new", "x") }},
	{"swap", func(s *sample, file, other string, _ int) {
		s.files[file], s.files[other] = s.files[other], s.files[file]
	}},
	{"overwrite", func(s *sample, file, other string, _ int) { s.files[file] = s.files[other] }},
}

// harmless says that the specification has nothing against what was done: no file of the object
// differs, but those that it leaves to others, or a sidecar that still says the same.
func harmless(before, after fstest.MapFS) bool {
	for path := range maps.Keys(joined(before, after)) {
		was, is := before[path], after[path]
		switch {
		case strings.HasPrefix(path, "logs/"), strings.HasPrefix(path, "extensions/0005-mutable-head/"):
		case was == nil || is == nil:
			return false
		case bytes.Equal(was.Data, is.Data):
		case !strings.HasSuffix(path, ".sha512") || !sameSidecar(string(was.Data), string(is.Data)):
			return false
		}
	}
	return true
}

func joined(a, b fstest.MapFS) fstest.MapFS {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// sameSidecar says whether two sidecars name the same digest: its case, what space follows and the
// end of the line are free.
func sameSidecar(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	return len(x) == 2 && len(y) == 2 && strings.EqualFold(x[0], y[0]) && x[1] == y[1] && !strings.ContainsAny(b, "\v\f\u0085\u00a0") &&
		strings.Count(b, "\n") <= 1 && !strings.HasPrefix(b, " ")
}

// TestCorruptions damages a valid object at random and expects a refusal, unless the specification
// allows the change.
func TestCorruptions(t *testing.T) {
	t.Parallel()
	good := richSample()
	if report, err := ocfl.ValidateFS(t.Context(), good.files, ocfl.ValidateOptions{}); err != nil || len(report.Faults) > 0 {
		t.Fatalf("the object itself: %+v, %v", report, err)
	}
	paths := slices.Sorted(maps.Keys(good.files))
	found := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		for range 20 {
			c := rapid.SampledFrom(corruptions).Draw(rt, "corruption")
			file, other := rapid.SampledFrom(paths).Draw(rt, "file"), rapid.SampledFrom(paths).Draw(rt, "other")
			at := rapid.IntRange(0, len(good.files[file].Data)-1).Draw(rt, "at")
			s := &sample{files: maps.Clone(good.files), spec: good.spec}
			c.do(s, file, other, at)
			report, err := ocfl.ValidateFS(t.Context(), s.files, ocfl.ValidateOptions{})
			if err != nil {
				rt.Fatalf("%s %s: %v", c.name, file, err)
			}
			if want := harmless(good.files, s.files); report.Valid() != want {
				rt.Fatalf("%s %s at %d (and %s): valid = %v, want %v: %v", c.name, file, at, other, report.Valid(), want, report.Faults)
			}
			if !report.Valid() {
				found[c.name]++
			}
		}
	})
	for _, c := range corruptions {
		if found[c.name] == 0 {
			t.Errorf("%s was never found, want it found", c.name)
		}
	}
}

// TestForgeries changes inventories and their sidecars, so that only the content shows the change.
func TestForgeries(t *testing.T) {
	t.Parallel()
	a, b, other := digestOf("sha512", "a"), digestOf("sha512", "b"), digestOf("sha512", "other")
	swap := func(text, x, y string) string {
		return strings.NewReplacer(x, y, y, x).Replace(text)
	}
	for name, forge := range map[string]func(text string) string{
		"two digests change places":  func(text string) string { return swap(text, a, b) },
		"two paths change places":    func(text string) string { return swap(text, "v1/content/a.txt", "v2/content/b.txt") },
		"another digest":             func(text string) string { return strings.ReplaceAll(text, b, other) },
		"another fixity value":       func(text string) string { return strings.ReplaceAll(text, "0cc175b9", "00c175b9") },
		"another logical path in v1": func(text string) string { return strings.Replace(text, `"a.txt"`, `"c.txt"`, 1) },
		"a file less":                func(text string) string { return withoutFile(text, b) },
	} {
		s := richSample()
		for _, path := range []string{rootInv, v2Inv} {
			forged := forge(string(s.files[path].Data))
			if forged == string(s.files[path].Data) {
				t.Fatalf("%s: nothing changed", name)
			}
			s.rawInventory(path, forged, "sha512")
		}
		report, err := ocfl.ValidateFS(t.Context(), s.files, ocfl.ValidateOptions{})
		if err != nil || report.Valid() {
			t.Errorf("%s: valid, err = %v", name, err)
		}
	}
}

// withoutFile leaves a digest out of the manifest and the newest state.
func withoutFile(text, digest string) string {
	var inv block
	if err := json.Unmarshal([]byte(text), &inv); err != nil {
		panic(err)
	}
	delete(manifest(inv), digest)
	delete(state(inv, "v2"), digest)
	out, err := json.Marshal(inv)
	if err != nil {
		panic(err)
	}
	return string(out)
}
