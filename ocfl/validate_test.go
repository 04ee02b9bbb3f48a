package ocfl_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// block is a JSON object.
type block = map[string]any

// sample is an object that a test damages.
type sample struct {
	files fstest.MapFS
	spec  string
}

// digestOf is the hex digest of text.
func digestOf(algorithm, text string) string {
	h := sha512.New()
	if algorithm == "sha256" {
		h = sha256.New()
	}
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// write puts a file into the sample.
func (s *sample) write(path, text string) { s.files[path] = &fstest.MapFile{Data: []byte(text)} }

// inventory writes an inventory, or changes the one at path, with its sidecar.
func (s *sample) inventory(path string, inv block) {
	data, err := json.MarshalIndent(inv, "", " ")
	if err != nil {
		panic(err)
	}
	s.rawInventory(path, string(data), fmt.Sprint(inv["digestAlgorithm"]))
}

func (s *sample) rawInventory(path, text, algorithm string) {
	s.write(path, text)
	s.write(path+"."+algorithm, digestOf(algorithm, text)+" inventory.json\n")
}

// change lets edit work on inventories and writes them again.
func (s *sample) change(edit func(inv block), paths ...string) {
	for _, path := range paths {
		var inv block
		if err := json.Unmarshal(s.files[path].Data, &inv); err != nil {
			panic(err)
		}
		edit(inv)
		s.inventory(path, inv)
	}
}

const (
	rootInv = "inventory.json"
	v1Inv   = "v1/inventory.json"
	v2Inv   = "v2/inventory.json"
)

// newSample is a valid object of two versions: a.txt, and then b.txt.
func newSample(spec string) *sample {
	s := &sample{files: fstest.MapFS{}, spec: spec}
	s.write("0=ocfl_object_"+spec, "ocfl_object_"+spec+"\n")
	s.write("v1/content/a.txt", "a")
	s.write("v2/content/b.txt", "b")
	a, b := digestOf("sha512", "a"), digestOf("sha512", "b")
	version := func(state block) block {
		return block{
			"created": "2026-01-02T03:04:05Z", "message": "m",
			"user": block{"name": "n", "address": "mailto:n@example.org"}, "state": state,
		}
	}
	v1 := version(block{a: []string{"a.txt"}})
	inv := block{
		"id": "urn:example", "type": "https://ocfl.io/" + spec + "/spec/#inventory", "digestAlgorithm": "sha512", "head": "v1",
		"manifest": block{a: []string{"v1/content/a.txt"}}, "versions": block{"v1": v1},
	}
	s.inventory(v1Inv, inv)
	inv["head"] = "v2"
	inv["manifest"] = block{a: []string{"v1/content/a.txt"}, b: []string{"v2/content/b.txt"}}
	inv["versions"] = block{"v1": v1, "v2": version(block{a: []string{"a.txt"}, b: []string{"b.txt"}})}
	s.inventory(v2Inv, inv)
	s.inventory(rootInv, inv)
	return s
}

// state returns the state block of a version.
func state(inv block, version string) block { return versionOf(inv, version)["state"].(block) }

func versionOf(inv block, version string) block { return inv["versions"].(block)[version].(block) }

func manifest(inv block) block { return inv["manifest"].(block) }

// newest changes the root inventory and its copy.
func (s *sample) newest(edit func(inv block)) { s.change(edit, rootInv, v2Inv) }

// all changes every inventory.
func (s *sample) all(edit func(inv block)) { s.change(edit, rootInv, v1Inv, v2Inv) }

// TestFaults damages a valid object in one way at a time. A case lists only the first code where
// others follow from it.
func TestFaults(t *testing.T) {
	a, b := digestOf("sha512", "a"), digestOf("sha512", "b")
	for _, test := range []struct {
		name   string
		damage func(s *sample)
		want   string // codes that must be reported
		only10 bool
		only11 bool
	}{
		{name: "nothing", damage: func(*sample) {}},
		{name: "logs", damage: func(s *sample) { s.write("logs/x", "") }},
		{name: "registered extension", damage: func(s *sample) { s.write("extensions/0009-digest-algorithms/x", "") }},
		{name: "extra file", damage: func(s *sample) { s.write("x", "") }, want: "E001"},
		{name: "extra folder", damage: func(s *sample) { s.write("x/y", "") }, want: "E001"},
		{name: "a file named like a version", damage: func(s *sample) { s.write("v3", "") }, want: "E001"},
		{name: "version without v", damage: func(s *sample) { s.write("3/x", "") }, want: "E001 E104"},
		{name: "other sidecar", damage: func(s *sample) { s.write("inventory.json.sha256", "") }, want: "E001"},
		{name: "no declaration", damage: func(s *sample) { delete(s.files, "0=ocfl_object_"+s.spec) }, want: "E003"},
		{name: "two declarations", damage: func(s *sample) {
			s.write("0=ocfl_object_1.0", "ocfl_object_1.0\n")
			s.write("0=ocfl_object_1.1", "ocfl_object_1.1\n")
		}, want: "E003"},
		{name: "unknown specification", damage: func(s *sample) { s.write("0=ocfl_object_9.9", "ocfl_object_9.9\n") }, want: "E004 E003"},
		{name: "wrong tag", damage: func(s *sample) { s.write("1=ocfl_object_1.1", "ocfl_object_1.1\n") }, want: "E005 E003"},
		{name: "wrong value", damage: func(s *sample) { s.write("0=object_1.1", "object_1.1\n") }, want: "E006 E003"},
		{name: "declaration content", damage: func(s *sample) { s.write("0=ocfl_object_"+s.spec, "ocfl_object_"+s.spec) }, want: "E007"},
		{name: "no versions", damage: func(s *sample) {
			s.all(func(inv block) { inv["versions"] = block{}; delete(inv, "head") })
		}, want: "E008 E036"},
		{name: "begins with two", damage: func(s *sample) { s.newest(func(inv block) { delete(inv["versions"].(block), "v1") }) }, want: "E009"},
		{name: "skipped version", damage: func(s *sample) {
			s.newest(func(inv block) {
				v := inv["versions"].(block)
				v["v4"] = v["v2"]
				delete(v, "v2")
				inv["head"] = "v4"
			})
		}, want: "E010 E046"},
		{name: "missing version folder", damage: func(s *sample) {
			for _, f := range []string{"v2/inventory.json", "v2/inventory.json.sha512", "v2/content/b.txt"} {
				delete(s.files, f)
			}
		}, want: "E010 E046 E092"},
		{name: "unknown version folder", damage: func(s *sample) { s.write("v3/content/x", "") }, want: "E001 E046 E023"},
		{name: "mixed padding", damage: func(s *sample) {
			s.newest(func(inv block) {
				v := inv["versions"].(block)
				v["v01"] = v["v1"]
				delete(v, "v1")
			})
		}, want: "E011 E012 E013 W001"},
		{name: "file in version folder", damage: func(s *sample) { s.write("v1/x", "") }, want: "E015"},
		{name: "other sidecar in version folder", damage: func(s *sample) { s.write("v1/inventory.json.md5", "") }, want: "E015"},
		{name: "slash in content folder", damage: func(s *sample) { s.all(func(inv block) { inv["contentDirectory"] = "x/y" }) }, want: "E017 E108"},
		{name: "content folder is a dot", damage: func(s *sample) { s.all(func(inv block) { inv["contentDirectory"] = ".." }) }, want: "E018"},
		{name: "content folder set late", damage: func(s *sample) { s.newest(func(inv block) { inv["contentDirectory"] = "x" }) }, want: "E019"},
		{name: "content folder changes", damage: func(s *sample) {
			s.change(func(inv block) { inv["contentDirectory"] = "content" }, rootInv, v2Inv)
			s.change(func(inv block) { inv["contentDirectory"] = "data" }, v1Inv)
		}, want: "E020"},
		{name: "file not named", damage: func(s *sample) { s.write("v1/content/x", "") }, want: "E023"},
		{name: "file not named by its version", damage: func(s *sample) {
			s.write("v1/content/c", "c")
			s.newest(func(inv block) {
				c := digestOf("sha512", "c")
				manifest(inv)[c] = []string{"v1/content/c"}
				state(inv, "v2")[c] = []string{"c"}
			})
		}, want: "E023"},
		{name: "file missing", damage: func(s *sample) { delete(s.files, "v1/content/a.txt") }, want: "E023 E092"},
		{name: "empty folder", damage: func(s *sample) { s.files["v1/content/x"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755} }, want: "E024"},
		{name: "algorithm", damage: func(s *sample) { s.all(func(inv block) { inv["digestAlgorithm"] = "md5" }) }, want: "E025"},
		{name: "no JSON", damage: func(s *sample) { s.rawInventory(rootInv, "{", "sha512") }, want: "E033"},
		{name: "JSON twice", damage: func(s *sample) { s.rawInventory(rootInv, string(s.files[rootInv].Data)+"{}", "sha512") }, want: "E033 E064"},
		{name: "no UTF-8", damage: func(s *sample) {
			s.rawInventory(rootInv, strings.Replace(string(s.files[rootInv].Data), `"m"`, "\"\xff\"", 1), "sha512")
		}, want: "E033 E064"},
		{name: "no id", damage: func(s *sample) { s.all(func(inv block) { delete(inv, "id") }) }, want: "E036"},
		{name: "no head", damage: func(s *sample) { s.all(func(inv block) { delete(inv, "head") }) }, want: "E036"},
		{name: "id is a number", damage: func(s *sample) { s.all(func(inv block) { inv["id"] = 1 }) }, want: "E037"},
		{name: "id changes", damage: func(s *sample) { s.newest(func(inv block) { inv["id"] = "urn:other" }) }, want: "E037"},
		{name: "id changes", damage: func(s *sample) { s.newest(func(inv block) { inv["id"] = "urn:other" }) }, want: "E110", only11: true},
		{name: "type", damage: func(s *sample) { s.all(func(inv block) { inv["type"] = "x" }) }, want: "E038"},
		{name: "type of another version", damage: func(s *sample) {
			s.newest(func(inv block) { inv["type"] = "https://ocfl.io/1.0/spec/#inventory" })
		}, want: "E038 E103", only11: true},
		{name: "head is not the newest", damage: func(s *sample) { s.newest(func(inv block) { inv["head"] = "v1" }) }, want: "E040"},
		{name: "head does not exist", damage: func(s *sample) { s.newest(func(inv block) { inv["head"] = "v7" }) }, want: "E040"},
		{name: "head is an object", damage: func(s *sample) { s.newest(func(inv block) { inv["head"] = block{} }) }, want: "E040"},
		{name: "head of an old version", damage: func(s *sample) { s.files[v1Inv] = s.files[v2Inv]; s.files[v1Inv+".sha512"] = s.files[v2Inv+".sha512"] }, want: "E040"},
		{name: "no manifest", damage: func(s *sample) { s.all(func(inv block) { delete(inv, "manifest") }) }, want: "E041"},
		{name: "no versions block", damage: func(s *sample) { s.all(func(inv block) { delete(inv, "versions") }) }, want: "E041 E043"},
		{name: "manifest is an array", damage: func(s *sample) { s.all(func(inv block) { inv["manifest"] = []int{} }) }, want: "E041 E106"},
		{name: "content path outside", damage: func(s *sample) { s.all(func(inv block) { manifest(inv)[a] = []string{"content/a.txt"} }) }, want: "E042"},
		{name: "versions is a string", damage: func(s *sample) { s.all(func(inv block) { inv["versions"] = "x" }) }, want: "E044 E045"},
		{name: "version name", damage: func(s *sample) { s.newest(func(inv block) { inv["versions"].(block)["x"] = versionOf(inv, "v1") }) }, want: "E046 E104"},
		{name: "version is an array", damage: func(s *sample) { s.newest(func(inv block) { inv["versions"].(block)["v2"] = []int{1} }) }, want: "E047"},
		{name: "no created", damage: func(s *sample) { s.newest(func(inv block) { delete(versionOf(inv, "v2"), "created") }) }, want: "E048"},
		{name: "no state", damage: func(s *sample) { s.newest(func(inv block) { delete(versionOf(inv, "v2"), "state") }) }, want: "E048"},
		{name: "no time zone", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v2")["created"] = "2026-01-02T03:04:05" }) }, want: "E049"},
		{name: "no seconds", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v2")["created"] = "2026-01-02T03:04Z" }) }, want: "E049"},
		{name: "created is null", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v2")["created"] = nil }) }, want: "E049"},
		{name: "digest not in manifest", damage: func(s *sample) {
			s.newest(func(inv block) { state(inv, "v2")[digestOf("sha512", "x")] = []string{"x"} })
		}, want: "E050"},
		{name: "digest in another case", damage: func(s *sample) {
			s.newest(func(inv block) {
				delete(state(inv, "v2"), b)
				state(inv, "v2")[strings.ToUpper(b)] = []string{"b.txt"}
			})
		}, want: "E050"},
		{name: "digest twice in state", damage: func(s *sample) {
			text := string(s.files[rootInv].Data)
			text = strings.ReplaceAll(text, `"state": {`, `"state": {"`+a+`": ["z"],`)
			s.rawInventory(rootInv, text, "sha512")
			s.rawInventory(v2Inv, text, "sha512")
		}, want: "E050 E066"},
		{name: "state value", damage: func(s *sample) { s.newest(func(inv block) { state(inv, "v2")[b] = "b.txt" }) }, want: "E051"},
		{name: "logical path elements", damage: func(s *sample) {
			s.newest(func(inv block) { state(inv, "v2")[b] = []string{"x/../b", "y//z", "./c"} })
		}, want: "E052"},
		{name: "logical path slashes", damage: func(s *sample) { s.newest(func(inv block) { state(inv, "v2")[b] = []string{"/b", "c/"} }) }, want: "E053"},
		{name: "user is a string", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v2")["user"] = "n" }) }, want: "E054"},
		{name: "user without a name", damage: func(s *sample) {
			s.newest(func(inv block) { versionOf(inv, "v2")["user"] = block{"address": "mailto:x@y"} })
		}, want: "E054"},
		{name: "fixity is null", damage: func(s *sample) { s.newest(func(inv block) { inv["fixity"] = nil }) }, want: "E111"},
		{name: "fixity is null", damage: func(s *sample) { s.newest(func(inv block) { inv["fixity"] = nil }) }, want: "E056", only10: true},
		{name: "fixity is empty", damage: func(s *sample) { s.newest(func(inv block) { inv["fixity"] = block{} }) }},
		{name: "unknown fixity", damage: func(s *sample) {
			s.newest(func(inv block) { inv["fixity"] = block{"crc64": block{"00": []string{"v1/content/a.txt"}}} })
		}},
		{name: "fixity block", damage: func(s *sample) { s.newest(func(inv block) { inv["fixity"] = block{"md5": []int{}} }) }, want: "E057"},
		{name: "fixity of no file", damage: func(s *sample) {
			s.newest(func(inv block) {
				inv["fixity"] = block{"sha256": block{digestOf("sha256", "a"): []string{"v1/content/no"}}}
			})
		}, want: "E057 E093"},
		{name: "no sidecar", damage: func(s *sample) { delete(s.files, "inventory.json.sha512") }, want: "E058"},
		{name: "no sidecar in version", damage: func(s *sample) { delete(s.files, "v1/inventory.json.sha512") }, want: "E058"},
		{name: "sidecar digest", damage: func(s *sample) { s.write("inventory.json.sha512", a+" inventory.json\n") }, want: "E060"},
		{name: "sidecar text", damage: func(s *sample) { s.write("inventory.json.sha512", "x") }, want: "E061"},
		{name: "sidecar with tabs and upper case", damage: func(s *sample) {
			text := string(s.files["inventory.json.sha512"].Data)
			s.write("inventory.json.sha512", strings.ToUpper(text[:128])+"\t  inventory.json")
		}},
		{name: "no inventory", damage: func(s *sample) { delete(s.files, rootInv) }, want: "E063"},
		{name: "root differs from newest", damage: func(s *sample) { s.change(func(inv block) { versionOf(inv, "v2")["message"] = "x" }, rootInv) }, want: "E064 W011"},
		{name: "old state differs", damage: func(s *sample) { s.newest(func(inv block) { state(inv, "v1")[a] = []string{"z.txt"} }) }, want: "E066"},
		{name: "old content differs", damage: func(s *sample) {
			s.newest(func(inv block) { versionOf(inv, "v1")["state"] = block{b: []string{"a.txt"}} })
		}, want: "E066"},
		{name: "file among extensions", damage: func(s *sample) { s.write("extensions/x", "") }, want: "E067"},
		{name: "link", damage: func(s *sample) {
			s.files["v1/content/l"] = &fstest.MapFile{Data: []byte("a.txt"), Mode: fs.ModeSymlink}
		}, want: "E090"},
		{name: "content differs", damage: func(s *sample) { s.write("v1/content/a.txt", "x") }, want: "E092"},
		{name: "manifest value", damage: func(s *sample) { s.newest(func(inv block) { manifest(inv)[b] = "v2/content/b.txt" }) }, want: "E092"},
		{name: "fixity differs", damage: func(s *sample) {
			s.newest(func(inv block) {
				inv["fixity"] = block{"sha256": block{digestOf("sha256", "x"): []string{"v1/content/a.txt"}}}
			})
		}, want: "E093"},
		{name: "fixity differs in an old inventory", damage: func(s *sample) {
			s.change(func(inv block) {
				inv["fixity"] = block{"sha256": block{digestOf("sha256", "x"): []string{"v1/content/a.txt"}}}
			}, v1Inv)
		}, want: "E093"},
		{name: "message is a number", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v2")["message"] = 1 }) }, want: "E094"},
		{name: "logical path twice", damage: func(s *sample) { s.newest(func(inv block) { state(inv, "v2")[b] = []string{"a.txt"} }) }, want: "E095"},
		{name: "logical path is a folder", damage: func(s *sample) { s.newest(func(inv block) { state(inv, "v2")[b] = []string{"a.txt/b"} }) }, want: "E095"},
		{name: "digest twice in manifest", damage: func(s *sample) {
			s.newest(func(inv block) { manifest(inv)[strings.ToUpper(a)] = []string{"v1/content/a.txt"} })
		}, want: "E096 E101"},
		{name: "digest repeated in manifest", damage: func(s *sample) {
			text := strings.ReplaceAll(string(s.files[rootInv].Data), `"manifest": {`, `"manifest": {"`+a+`": ["v1/content/a.txt"],`)
			s.rawInventory(rootInv, text, "sha512")
			s.rawInventory(v2Inv, text, "sha512")
		}, want: "E096"},
		{name: "digest twice in fixity", damage: func(s *sample) {
			d := digestOf("sha256", "a")
			s.newest(func(inv block) {
				inv["fixity"] = block{"sha256": block{d: []string{"v1/content/a.txt"}, strings.ToUpper(d): []string{"v1/content/a.txt"}}}
			})
		}, want: "E097"},
		{name: "content path elements", damage: func(s *sample) {
			s.newest(func(inv block) { manifest(inv)[a] = []string{"v1/content/./a.txt"} })
		}, want: "E099"},
		{name: "content path slash", damage: func(s *sample) {
			s.newest(func(inv block) { manifest(inv)[a] = []string{"/v1/content/a.txt"} })
		}, want: "E100"},
		{name: "content path twice", damage: func(s *sample) {
			s.newest(func(inv block) { manifest(inv)[b] = []string{"v1/content/a.txt"} })
		}, want: "E101"},
		{name: "unknown key", damage: func(s *sample) { s.newest(func(inv block) { inv["x"] = block{"y": []any{1, block{}}} }) }, want: "E102"},
		{name: "unknown key in version", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v2")["x"] = 1 }) }, want: "E102"},
		{name: "digest not used", damage: func(s *sample) {
			s.write("v2/content/c", "c")
			s.newest(func(inv block) { manifest(inv)[digestOf("sha512", "c")] = []string{"v2/content/c"} })
		}, want: "E107"},
		{name: "digest length", damage: func(s *sample) {
			s.newest(func(inv block) {
				manifest(inv)["abc"] = []string{"v1/content/a.txt"}
				state(inv, "v2")["abc"] = []string{"c"}
			})
		}, want: "E031"},
		{name: "folder in version folder", damage: func(s *sample) { s.write("v1/x/y", "") }, want: "W002"},
		{name: "empty content folder", damage: func(s *sample) {
			delete(s.files, "v2/content/b.txt")
			s.files["v2/content"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			s.newest(func(inv block) { delete(manifest(inv), b); delete(state(inv, "v2"), b) })
		}, want: "W003"},
		{name: "id is not a URI", damage: func(s *sample) { s.all(func(inv block) { inv["id"] = "x" }) }, want: "W005"},
		{name: "no message", damage: func(s *sample) { s.newest(func(inv block) { delete(versionOf(inv, "v2"), "message") }) }, want: "W007"},
		{name: "no address", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v2")["user"] = block{"name": "n"} }) }, want: "W008"},
		{name: "address", damage: func(s *sample) {
			s.newest(func(inv block) { versionOf(inv, "v2")["user"] = block{"name": "n", "address": "somewhere"} })
		}, want: "W009"},
		{name: "no version inventory", damage: func(s *sample) { delete(s.files, v1Inv); delete(s.files, v1Inv+".sha512") }, want: "W010"},
		{name: "old message differs", damage: func(s *sample) { s.newest(func(inv block) { versionOf(inv, "v1")["message"] = "x" }) }, want: "W011"},
		{name: "unregistered extension", damage: func(s *sample) { s.write("extensions/x/y", "") }, want: "W013"},
	} {
		for _, spec := range []string{ocfl.Spec10, ocfl.Spec11} {
			if test.only10 && spec != ocfl.Spec10 || test.only11 && spec != ocfl.Spec11 {
				continue
			}
			t.Run(test.name+" "+spec, func(t *testing.T) {
				s := newSample(spec)
				test.damage(s)
				report, err := ocfl.ValidateFS(t.Context(), s.files, ocfl.ValidateOptions{})
				if err != nil {
					t.Fatalf("validate: %v", err)
				}
				got := report.Codes()
				wantErrors := false
				for _, code := range strings.Fields(test.want) {
					wantErrors = wantErrors || code[0] == 'E'
					if !slices.Contains(got, code) {
						t.Errorf("codes = %v, want %s: %v", got, code, report.Faults)
					}
				}
				if report.Valid() == wantErrors {
					t.Errorf("valid = %v with %v", report.Valid(), report.Faults)
				}
				if !wantErrors && strings.Join(got, " ") != test.want {
					t.Errorf("codes = %v, want %s: %v", got, test.want, report.Faults)
				}
			})
		}
	}
}

// TestAlgorithmChanges judges objects whose versions use different digest algorithms.
func TestAlgorithmChanges(t *testing.T) {
	a := digestOf("sha256", "a")
	for _, test := range []struct {
		name, digest, path, want string
	}{
		{"good", a, "a.txt", "W004"},
		{"other state", a, "z.txt", "E066"},
		{"wrong digest", digestOf("sha256", "x"), "a.txt", "E092"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSample(ocfl.Spec11)
			delete(s.files, "v1/inventory.json.sha512")
			s.change(func(inv block) {
				inv["digestAlgorithm"] = "sha256"
				inv["manifest"] = block{test.digest: []string{"v1/content/a.txt"}}
				versionOf(inv, "v1")["state"] = block{test.digest: []string{test.path}}
			}, v1Inv)
			report, err := ocfl.ValidateFS(t.Context(), s.files, ocfl.ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := report.Codes(); !slices.Contains(got, test.want) || report.Valid() != (test.want[0] == 'W') {
				t.Errorf("codes = %v, want %s: %v", got, test.want, report.Faults)
			}
		})
	}
}

// TestUnreadableIsNoVerdict checks that a failing store gives an error and no verdict.
func TestUnreadableIsNoVerdict(t *testing.T) {
	root, inv := smallObject(t)
	store := storagetest.NewFaulty(root.Store())
	key, err := root.ObjectKey(inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []storagetest.Op{storagetest.List, storagetest.Open, storagetest.Read} {
		for n := 1; n < 6; n++ {
			store.Heal()
			before := store.Count(op)
			store.Fail(op, n, nil)
			report, err := ocfl.Validate(t.Context(), store, key, ocfl.ValidateOptions{})
			if store.Count(op)-before < n {
				break
			}
			if !errors.Is(err, storagetest.ErrInjected) {
				t.Errorf("%s %d fails: report = %v, err = %v, want the fault", op, n, report, err)
			}
		}
	}
	store.Heal()
	if _, err := ocfl.Validate(t.Context(), store, "nothing", ocfl.ValidateOptions{}); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("validate nothing: err = %v, want ErrNotFound", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ocfl.Validate(ctx, store, key, ocfl.ValidateOptions{}); err == nil {
		t.Error("validate with a cancelled context gave a verdict")
	}
}

// TestVerifyFindsEveryFlippedBit changes one byte of each file of an object in turn.
func TestVerifyFindsEveryFlippedBit(t *testing.T) {
	root, inv := smallObject(t)
	base, err := root.ObjectKey(inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for info, err := range root.Store().List(t.Context(), base+"/") {
		if err != nil {
			t.Fatal(err)
		}
		files++
		for _, offset := range []int64{0, info.Size / 2, info.Size - 1} {
			store := storagetest.NewFaulty(root.Store())
			store.Flip(info.Key, offset)
			report, err := ocfl.Validate(t.Context(), store, base, ocfl.ValidateOptions{})
			if err != nil {
				t.Fatalf("%s: %v", info.Key, err)
			}
			if report.Valid() {
				t.Errorf("a flipped bit at %d of %s was not found", offset, info.Key)
			}
		}
		store := storagetest.NewFaulty(root.Store())
		store.Truncate(info.Key, info.Size-1)
		if report, err := ocfl.Validate(t.Context(), store, base, ocfl.ValidateOptions{}); err != nil || report.Valid() {
			// The newline that ends a sidecar may be missing.
			if data, _ := storage.ReadAll(t.Context(), store, info.Key, 1<<20); !bytes.HasSuffix(data, []byte(" inventory.json")) {
				t.Errorf("the missing end of %s was not found (%v)", info.Key, err)
			}
		}
	}
	if files < 8 {
		t.Errorf("%d files, want 8 or more", files)
	}
	report, err := root.Verify(t.Context(), inv.ID, ocfl.ValidateOptions{})
	if err != nil || !report.Valid() || report.Files == 0 || report.ID != inv.ID || report.Head != "v2" {
		t.Errorf("verify = %+v, %v, want a valid object", report, err)
	}
}

// TestValidate_Evidence: the evidence that each object of ours has is nothing to warn of; another
// extension that is not registered is.
func TestValidate_Evidence(t *testing.T) {
	store := storagetest.NewMemory()
	root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := root.ObjectKey("id")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{ocfl.EvidenceFolder + "/v1.receipt.jsonl": false, "extensions/other/file": true} {
		if _, err := storage.Put(t.Context(), store, folder+"/"+name, nil); err != nil {
			t.Fatal(err)
		}
		report, err := ocfl.Validate(t.Context(), store, folder, ocfl.ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Delete(t.Context(), folder+"/"+name); err != nil {
			t.Fatal(err)
		}
		warned := false
		for _, f := range report.Faults {
			warned = warned || f.Code == "W013"
		}
		if warned != want {
			t.Errorf("%s: warned %v, want %v: %v", name, warned, want, report.Faults)
		}
	}
}
