package ocfl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/ocfl"
)

// codeCase shows one of the specification's codes (https://ocfl.io/1.1/spec/validation-codes.html):
// an object, or a storage root, that gives it, or why nothing can.
type codeCase struct {
	code   string
	object func(s *sample)
	root   func(r sampleRoot)
	spec   string // in which the case is made; 1.1 when empty
	reason string
}

// codeCases has every code of both specifications.
func codeCases() []codeCase {
	a, b := digestOf("sha512", "a"), digestOf("sha512", "b")
	one := func(edit func(inv block)) func(s *sample) { return func(s *sample) { s.one(edit) } }
	path := func(p string) func(s *sample) {
		return one(func(inv block) { manifest(inv)[a] = []string{p} })
	}
	logical := func(p string) func(s *sample) {
		return one(func(inv block) { state(inv, "v1")[a] = []string{p} })
	}
	version := func(key string, value any) func(s *sample) {
		return one(func(inv block) { versionOf(inv, "v1")[key] = value })
	}
	top := func(key string, value any) func(s *sample) {
		return one(func(inv block) { inv[key] = value })
	}
	without := func(key string) func(s *sample) {
		return one(func(inv block) { delete(inv, key) })
	}
	fixity := func(algorithm, digest string) func(s *sample) {
		return top("fixity", block{algorithm: block{digest: []string{"v1/content/a.txt"}}})
	}
	return []codeCase{
		{code: "E001", object: func(s *sample) { s.write("x", "") }},
		{code: "E002", object: func(s *sample) { s.write("x=ocfl_object_1.1", "ocfl_object_1.1\n") }},
		{code: "E003", object: func(s *sample) { s.drop("0=ocfl_object_1.1") }},
		{code: "E004", object: func(s *sample) { s.write("0=ocfl_object_9.9", "ocfl_object_9.9\n") }},
		{code: "E005", object: func(s *sample) { s.write("1=ocfl_object_1.1", "ocfl_object_1.1\n") }},
		{code: "E006", object: func(s *sample) { s.write("0=object_1.1", "object_1.1\n") }},
		{code: "E007", object: func(s *sample) { s.write("0=ocfl_object_1.1", "ocfl_object_1.1\r\n") }},
		{code: "E008", object: top("versions", block{})},
		{code: "E009", object: func(s *sample) { s.newest(func(inv block) { delete(inv["versions"].(block), "v1") }) }},
		{code: "E010", object: func(s *sample) {
			s.newest(func(inv block) { v := inv["versions"].(block); v["v4"] = v["v2"]; delete(v, "v2") })
		}},
		{code: "E011", object: func(s *sample) { s.padded(); s.renameVersion("v002", "v2"); s.unpad() }},
		{code: "E012", object: func(s *sample) { s.padded(); s.renameVersion("v002", "v2"); s.unpad() }},
		{code: "E013", object: func(s *sample) { s.padded(); s.renameVersion("v002", "v2"); s.unpad() }},
		{code: "E014", object: path("v01/content/a.txt")},
		{code: "E015", object: func(s *sample) { s.write("v1/x", "") }},
		{code: "E016", object: func(s *sample) { s.single(); s.renameContent("v1/content/a.txt", "v1/other/a.txt") }},
		{code: "E017", object: top("contentDirectory", "x/y")},
		{code: "E018", object: top("contentDirectory", "..")},
		{code: "E019", object: func(s *sample) { s.newest(func(inv block) { inv["contentDirectory"] = "late" }) }},
		{code: "E020", object: func(s *sample) {
			s.change(func(inv block) { inv["contentDirectory"] = "content" }, rootInv, v2Inv)
			s.change(func(inv block) { inv["contentDirectory"] = "data" }, v1Inv)
		}},
		{code: "E021", object: path("v1/other/a.txt")},
		{code: "E022", reason: "says what tools do with other folders of a version, which is done: W002"},
		{code: "E023", object: func(s *sample) { s.write("v1/content/x", "") }},
		{code: "E024", object: func(s *sample) { s.files["v1/content/x"] = &fstest.MapFile{Mode: os.ModeDir | 0o755} }},
		{code: "E025", object: top("digestAlgorithm", "md5")},
		{code: "E026", reason: "a name may stand in an extension that nobody here knows of, and is ignored then (E028)"},
		{code: "E027", reason: "says what tools support, which is supported: minimal_all_fixity_digests"},
		{code: "E028", reason: "says what tools ignore, which is ignored"},
		{code: "E029", object: fixity("sha1", "h6f7e437faa5a7fce15d1ddcb9eaeaea377667b8")},
		{code: "E030", object: fixity("sha256", "00")},
		{code: "E031", object: fixity("sha512", strings.Repeat("x", 128))},
		{code: "E032", object: fixity("blake2b-512", "00")},
		{code: "E033", object: func(s *sample) { s.rawInventory(rootInv, "[]", "sha512") }},
		{code: "E034", object: func(s *sample) { s.renameContent(rootInv, "Inventory.json") }},
		{code: "E035", object: path(`v1\content\a.txt`)},
		{code: "E036", object: without("type")},
		{code: "E037", object: top("id", "")},
		{code: "E038", object: top("type", "https://ocfl.io/1.1/spec/")},
		{code: "E039", object: func(s *sample) { s.rehash(rootInv, v1Inv, v2Inv); s.relabel() }},
		{code: "E040", object: top("head", "v2")},
		{code: "E041", object: without("manifest")},
		{code: "E042", object: path("content/a.txt")},
		{code: "E043", object: without("versions")},
		{code: "E044", object: top("versions", "v1")},
		{code: "E045", object: top("versions", []string{"v1"})},
		{code: "E046", object: func(s *sample) { s.write("v3/content/x", "") }},
		{code: "E047", object: func(s *sample) { s.newest(func(inv block) { inv["versions"].(block)["v2"] = "x" }) }},
		{code: "E048", object: one(func(inv block) { delete(versionOf(inv, "v1"), "created") })},
		{code: "E049", object: version("created", "2026-01-02")},
		{code: "E050", object: one(func(inv block) { state(inv, "v1")[b] = []string{"x"} })},
		{code: "E051", object: version("state", block{a: "a.txt"})},
		{code: "E052", object: logical("x/../a")},
		{code: "E053", object: logical("/a")},
		{code: "E054", object: version("user", block{"address": "mailto:a@example.org"})},
		{code: "E055", object: top("Fixity", block{})},
		{code: "E056", object: top("fixity", nil), spec: ocfl.Spec10},
		{code: "E057", object: top("fixity", block{"md5": []string{"x"}})},
		{code: "E058", object: func(s *sample) { s.drop(rootInv + ".sha512") }},
		{code: "E059", object: func(s *sample) { s.renameContent(rootInv+".sha512", rootInv+".sha256") }},
		{code: "E060", object: func(s *sample) { s.write(v1Inv+".sha512", a+" inventory.json\n") }},
		{code: "E061", object: func(s *sample) { s.write(rootInv+".sha512", a+"\n") }},
		{code: "E062", reason: "says in which order files are written, which cannot be seen afterwards"},
		{code: "E063", object: func(s *sample) { s.drop(rootInv) }},
		{code: "E064", object: func(s *sample) { s.change(func(inv block) { versionOf(inv, "v2")["message"] = "x" }, rootInv) }},
		{code: "E066", object: func(s *sample) { s.newest(func(inv block) { state(inv, "v1")[a] = []string{"z"} }) }},
		{code: "E067", object: func(s *sample) { s.write("extensions/x", "") }},
		{code: "E068", reason: "only in 1.0; an extension may be described by any text in the storage root"},
		{code: "E069", root: func(r sampleRoot) { delete(r.files, "0=ocfl_1.1") }},
		{code: "E070", root: func(r sampleRoot) { r.write("ocfl_layout.json", "{}") }},
		{code: "E071", root: func(r sampleRoot) { r.layout("mine", "") }},
		{code: "E072", root: func(r sampleRoot) { r.write("x/y", "") }},
		{code: "E073", root: func(r sampleRoot) { r.folder("x") }},
		{code: "E074", root: func(r sampleRoot) { r.write("x/0=ocfl_1.0", "ocfl_1.0\n") }},
		{code: "E075", root: func(r sampleRoot) { r.write("x=ocfl_1.1", "") }},
		{code: "E076", root: func(r sampleRoot) { r.write("0=ocfl_1.0", "ocfl_1.0\n") }},
		{code: "E077", root: func(r sampleRoot) { r.write("0=ocfl_9", "ocfl_9\n") }},
		{code: "E078", root: func(r sampleRoot) { r.write("1=ocfl_1.1", "") }},
		{code: "E079", root: func(r sampleRoot) { delete(r.files, "0=ocfl_1.1"); r.write("0=oxford_1.1", "") }},
		{code: "E080", root: func(r sampleRoot) { r.write("0=ocfl_1.1", "") }},
		{code: "E081", root: func(r sampleRoot) { delete(r.files, "0=ocfl_1.1"); r.write("0=ocfl_1.0", "ocfl_1.0\n") }},
		{code: "E082", root: func(r sampleRoot) {
			for path, file := range r.files {
				if folder, ok := strings.CutSuffix(path, "/0=ocfl_object_1.1"); ok {
					r.files[folder+"/x/0=ocfl_object_1.1"] = file
					return
				}
			}
		}},
		{code: "E083", root: func(r sampleRoot) { r.put("abc", withID(newSample("1.1"), "urn:three")) }},
		{code: "E084", root: func(r sampleRoot) {
			for path := range r.files {
				if strings.HasSuffix(path, "/0=ocfl_object_1.1") {
					r.write(path[:3]+"/x", "")
					return
				}
			}
		}},
		{code: "E085", root: func(r sampleRoot) { r.write("x/y", "") }},
		{code: "E086", reason: "only in 1.0; the same as E067 for a storage root, which is told as E112"},
		{code: "E087", reason: "says what validators ignore, which is ignored"},
		{code: "E088", root: func(r sampleRoot) { r.write("x/y", "") }},
		{code: "E089", reason: "whether content should have been wrapped cannot be seen"},
		{code: "E090", object: func(s *sample) { s.files["v1/content/l"] = &fstest.MapFile{Mode: os.ModeSymlink} }},
		{code: "E091", reason: "only in 1.0; says what file systems do. A name in another case is told as a missing file"},
		{code: "E092", object: func(s *sample) { s.write("v1/content/a.txt", "A") }},
		{code: "E093", object: fixity("md5", strings.Repeat("0", 32))},
		{code: "E094", object: version("message", block{})},
		{code: "E095", object: func(s *sample) { s.newest(func(inv block) { state(inv, "v2")[b] = []string{"a.txt/b"} }) }},
		{code: "E096", object: one(func(inv block) { manifest(inv)[strings.ToUpper(a)] = []string{"v1/content/b"} })},
		{code: "E097", object: top("fixity", block{"md5": block{strings.Repeat("a", 32): []string{}, strings.Repeat("A", 32): []string{}}})},
		{code: "E098", object: path(`v1\content\a.txt`)},
		{code: "E099", object: path("v1/content/./a.txt")},
		{code: "E100", object: path("v1/content/a.txt/")},
		{code: "E101", object: func(s *sample) { s.newest(func(inv block) { manifest(inv)[b] = []string{"v1/content/a.txt"} }) }},
		{code: "E102", object: top("x", 1)},
		{code: "E103", object: func(s *sample) {
			s.newest(func(inv block) { inv["type"] = "https://ocfl.io/1.0/spec/#inventory" })
		}},
		{code: "E104", object: func(s *sample) { s.renameVersion("v2", "2") }},
		{code: "E105", object: func(s *sample) { s.renameVersion("v2", "v0") }},
		{code: "E106", object: top("manifest", "x")},
		{code: "E107", object: func(s *sample) { s.unused() }},
		{code: "E108", object: top("contentDirectory", "a/b")},
		{code: "E110", object: func(s *sample) { s.change(func(inv block) { inv["id"] = "urn:other" }, v1Inv) }},
		{code: "E111", object: top("fixity", []string{})},
		{code: "E112", root: func(r sampleRoot) { r.write("extensions/x", "") }},

		{code: "W001", object: func(s *sample) { s.padded() }},
		{code: "W002", object: func(s *sample) { s.write("v1/x/y", "") }},
		{code: "W003", object: func(s *sample) {
			s.one(func(inv block) { inv["manifest"], versionOf(inv, "v1")["state"] = block{}, block{} })
			s.drop("v1/content/a.txt")
			s.files["v1/content"] = &fstest.MapFile{Mode: os.ModeDir | 0o755}
		}},
		{code: "W004", object: func(s *sample) { s.rehash(v1Inv) }},
		{code: "W005", object: top("id", "x")},
		{code: "W007", object: one(func(inv block) { delete(versionOf(inv, "v1"), "user") })},
		{code: "W008", object: version("user", block{"name": "n"})},
		{code: "W009", object: version("user", block{"name": "n", "address": "n"})},
		{code: "W010", object: func(s *sample) { s.drop(v1Inv, v1Inv+".sha512") }},
		{code: "W011", object: func(s *sample) { s.change(func(inv block) { versionOf(inv, "v1")["message"] = "x" }, v1Inv) }},
		{code: "W012", reason: "what a file of the folder logs is about cannot be seen"},
		{code: "W013", object: func(s *sample) { s.write("extensions/x/y", "") }},
		{code: "W014", root: func(r sampleRoot) { delete(r.files, "ocfl_layout.json"); r.put("a/b", newSample("1.1")) }},
		{code: "W015", root: func(r sampleRoot) { delete(r.files, "ocfl_layout.json"); r.put("a", newSample("1.1")) }},
		{code: "W016", root: func(r sampleRoot) { r.write("extensions/x/y", "") }},
	}
}

// unpad has the inventories of a padded object name its second version without padding.
func (s *sample) unpad() {
	for _, path := range []string{rootInv, "v2/inventory.json"} {
		s.rawInventory(path, strings.NewReplacer(`"v002"`, `"v2"`, `"v002/`, `"v2/`).Replace(string(s.files[path].Data)), "sha512")
	}
}

// relabel has inventories with digests of sha256 claim that they are of sha512.
func (s *sample) relabel() {
	for _, path := range []string{rootInv, v1Inv, v2Inv} {
		s.drop(path + ".sha256")
		s.rawInventory(path, strings.Replace(string(s.files[path].Data), `"sha256"`, `"sha512"`, 1), "sha512")
	}
}

// TestEveryCode has an object or a storage root for each code of the specifications, or the reason
// why the code is never reported.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	var all []string
	for n := 1; n <= 112; n++ {
		if n != 65 && n != 109 { // which were never given
			all = append(all, fmt.Sprintf("E%03d", n))
		}
	}
	for n := 1; n <= 16; n++ {
		if n != 6 {
			all = append(all, fmt.Sprintf("W%03d", n))
		}
	}
	var shown, told []string
	for _, c := range codeCases() {
		shown = append(shown, c.code)
		if c.reason != "" {
			continue
		}
		told = append(told, c.code)
		if c.spec == "" {
			c.spec = ocfl.Spec11
		}
		var codes []string
		if c.object != nil {
			s := newSample(c.spec)
			c.object(s)
			report, err := ocfl.ValidateFS(t.Context(), s.files, ocfl.ValidateOptions{})
			if err != nil {
				t.Fatalf("%s: %v", c.code, err)
			}
			codes = report.Codes()
		} else {
			r := newSampleRoot(t, c.spec)
			c.root(r)
			report, err := ocfl.ValidateRootFS(t.Context(), r.files, ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return nil })
			if err != nil {
				t.Fatalf("%s: %v", c.code, err)
			}
			codes = report.Codes()
		}
		if !slices.Contains(codes, c.code) {
			t.Errorf("%s: the case gives %v", c.code, codes)
		}
	}
	if !slices.Equal(shown, all) {
		t.Errorf("codes = %v, want all of them in order", shown)
	}
	// No code is given that stands nowhere, and none that is said to be impossible.
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range regexp.MustCompile(`"([EW]\d\d\d)"`).FindAllStringSubmatch(string(text), -1) {
			given[code[1]] = true
		}
	}
	for _, code := range told {
		if !given[code] {
			t.Errorf("%s is nowhere in the sources", code)
		}
		delete(given, code)
	}
	if len(given) > 0 {
		t.Errorf("codes %v are given and no case shows them", given)
	}
}
