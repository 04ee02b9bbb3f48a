package ocfl_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/ocfl"
)

// fixture is an object made after the name of one of the public fixtures
// (https://github.com/OCFL/fixtures, and those that other validators add to them), which says what
// must be found.
type fixture struct {
	name  string
	make  func(s *sample)
	specs string // "1.0 1.1" when empty
}

// drop removes files.
func (s *sample) drop(paths ...string) {
	for _, path := range paths {
		delete(s.files, path)
	}
}

// single leaves one version, v1 with a.txt.
func (s *sample) single() {
	s.drop("v2/content/b.txt", v2Inv, v2Inv+".sha512")
	s.files[rootInv], s.files[rootInv+".sha512"] = s.files[v1Inv], s.files[v1Inv+".sha512"]
}

// one changes both inventories of an object of one version.
func (s *sample) one(edit func(inv block)) {
	s.single()
	s.change(edit, rootInv, v1Inv)
}

// text changes both inventories of an object of one version as text.
func (s *sample) text(old, new string) {
	s.single()
	text := string(s.files[rootInv].Data)
	if !strings.Contains(text, old) {
		panic("no " + old + " in " + text)
	}
	text = strings.Replace(text, old, new, 1)
	s.rawInventory(rootInv, text, "sha512")
	s.rawInventory(v1Inv, text, "sha512")
}

// renameVersion gives a version folder another name; inventories are left alone.
func (s *sample) renameVersion(from, to string) {
	for path, file := range s.files {
		if rest, ok := strings.CutPrefix(path, from+"/"); ok {
			s.files[to+"/"+rest] = file
			delete(s.files, path)
		}
	}
}

// padded gives all versions zero-padded names.
func (s *sample) padded() {
	for _, path := range []string{rootInv, v1Inv, v2Inv} {
		text := strings.NewReplacer(`"v1"`, `"v001"`, `"v2"`, `"v002"`, `"v1/`, `"v001/`, `"v2/`, `"v002/`).Replace(string(s.files[path].Data))
		s.rawInventory(path, text, "sha512")
	}
	s.renameVersion("v1", "v001")
	s.renameVersion("v2", "v002")
}

// rehash gives the newest inventories, or all, sha256 for their digest algorithm.
func (s *sample) rehash(paths ...string) {
	for _, path := range paths {
		s.drop(path + ".sha512")
		text := string(s.files[path].Data)
		for _, content := range []string{"a", "b"} {
			text = strings.ReplaceAll(text, digestOf("sha512", content), digestOf("sha256", content))
		}
		text = strings.Replace(text, `"digestAlgorithm": "sha512"`, `"digestAlgorithm": "sha256"`, 1)
		s.rawInventory(path, text, "sha256")
	}
}

// fixtures are those of the public names whose objects are not in shared/cases.
func fixtures() []fixture {
	a, b := digestOf("sha512", "a"), digestOf("sha512", "b")
	md5 := func(inv block, entries block) { inv["fixity"] = block{"md5": entries} }
	const md5OfA = "0cc175b9c0f1b6a831c399e269772661"
	return []fixture{
		{name: "E001_extra_file_in_root", make: func(s *sample) { s.write("extra_file", "x") }},
		{name: "E001_v2_file_in_root", make: func(s *sample) { s.single(); s.write("v2", "x") }},
		{name: "E003_no_decl", make: func(s *sample) { s.drop("0=ocfl_object_" + s.spec) }},
		{name: "E003_two_declarations", make: func(s *sample) {
			s.write("0=ocfl_object_1.0", "ocfl_object_1.0\n")
			s.write("0=ocfl_object_1.1", "ocfl_object_1.1\n")
		}},
		{name: "E003_E034_empty", make: func(s *sample) { clear(s.files) }},
		{name: "E008_E036_no_versions_no_head", make: func(s *sample) {
			s.one(func(inv block) { delete(inv, "head"); inv["versions"], inv["manifest"] = block{}, block{} })
			s.drop("v1/content/a.txt", v1Inv, v1Inv+".sha512")
		}},
		{name: "E009_version_two_only", make: func(s *sample) {
			s.newest(func(inv block) {
				delete(inv["versions"].(block), "v1")
				delete(state(inv, "v2"), a)
				delete(manifest(inv), a)
			})
			s.drop("v1/content/a.txt", v1Inv, v1Inv+".sha512")
		}},
		{name: "E010_skipped_versions", make: func(s *sample) {
			for _, path := range []string{rootInv, v2Inv} {
				text := strings.NewReplacer(`"v2"`, `"v4"`, `"v2/`, `"v4/`).Replace(string(s.files[path].Data))
				s.rawInventory(path, text, "sha512")
			}
			s.renameVersion("v2", "v4")
		}},
		{name: "E015_content_not_in_content_dir", make: func(s *sample) {
			s.one(func(inv block) { manifest(inv)[a] = []string{"v1/a.txt"} })
			s.drop("v1/content/a.txt")
			s.write("v1/a.txt", "a")
		}},
		{name: "E019_inconsistent_content_dir", make: func(s *sample) {
			s.all(func(inv block) { manifest(inv)[a] = []string{"v1/content-dir/a.txt"} })
			s.change(func(inv block) { inv["contentDirectory"] = "content-dir" }, v1Inv)
			s.newest(func(inv block) { inv["contentDirectory"] = "content" })
			s.drop("v1/content/a.txt")
			s.write("v1/content-dir/a.txt", "a")
		}},
		{name: "E023_missing_file", make: func(s *sample) { s.single(); s.drop("v1/content/a.txt") }},
		{name: "E023_old_manifest_missing_entries", make: func(s *sample) {
			s.write("v1/content/c.txt", "c")
			s.newest(func(inv block) {
				c := digestOf("sha512", "c")
				manifest(inv)[c] = []string{"v1/content/c.txt"}
				state(inv, "v2")[c] = []string{"c.txt"}
			})
		}},
		{name: "E024_empty_dir_in_content", make: func(s *sample) { s.files["v1/content/x"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755} }},
		{name: "E033_inventory_bad_json", make: func(s *sample) { s.text(`"head"`, `head`) }},
		{name: "E034_no_inv", make: func(s *sample) { s.drop(rootInv, rootInv+".sha512") }},
		{name: "E036_no_head", make: func(s *sample) { s.one(func(inv block) { delete(inv, "head") }) }},
		{name: "E037_inconsistent_id", make: func(s *sample) { s.newest(func(inv block) { inv["id"] = "urn:example-2" }) }},
		{name: "E040_wrong_head_doesnt_exist", make: func(s *sample) { s.one(func(inv block) { inv["head"] = "v2" }) }},
		{name: "E040_wrong_version_in_version_dir", make: func(s *sample) {
			s.files[v1Inv], s.files[v1Inv+".sha512"] = s.files[v2Inv], s.files[v2Inv+".sha512"]
		}},
		{name: "E041_manifest_not_object", make: func(s *sample) { s.one(func(inv block) { inv["manifest"] = []string{"x"} }) }},
		{name: "E042_bad_manifest_content_path", make: func(s *sample) { s.one(func(inv block) { manifest(inv)[a] = []string{"v1/xyz/a.txt"} }) }},
		{name: "E046_missing_version_dir", make: func(s *sample) { s.drop("v2/content/b.txt", v2Inv, v2Inv+".sha512") }},
		{name: "E046_root_not_most_recent", make: func(s *sample) {
			s.files[rootInv], s.files[rootInv+".sha512"] = s.files[v1Inv], s.files[v1Inv+".sha512"]
		}},
		{name: "E049_created_no_timezone", make: func(s *sample) {
			s.one(func(inv block) { versionOf(inv, "v1")["created"] = "2019-01-01T02:03:04" })
		}},
		{name: "E050_file_in_manifest_not_used", specs: "1.0", make: func(s *sample) { s.unused() }},
		{name: "E050_manifest_digest_wrong_case", make: func(s *sample) { s.text(`"`+a+`": [`+"\n"+`   "v1/`, `"`+strings.ToUpper(a)+`": [`+"\n"+`   "v1/`) }},
		{name: "E050_state_digest_different_case", make: func(s *sample) {
			s.one(func(inv block) { versionOf(inv, "v1")["state"] = block{strings.ToUpper(a): []string{"a.txt"}} })
		}},
		{name: "E050_state_repeated_digest", make: func(s *sample) { s.text(`"state": {`, `"state": {"`+a+`": ["z.txt"],`) }},
		{name: "E053_E052_invalid_logical_paths", make: func(s *sample) {
			s.one(func(inv block) { state(inv, "v1")[a] = []string{"/file-1.txt", "../../file-2.txt", "//file-3.txt"} })
		}},
		{name: "E056_null_fixity", specs: "1.0", make: func(s *sample) { s.one(func(inv block) { inv["fixity"] = nil }) }},
		{name: "E060_E064_root_inventory_digest_mismatch", make: func(s *sample) {
			s.single()
			s.files[rootInv] = &fstest.MapFile{Data: []byte(strings.Replace(string(s.files[rootInv].Data), `"m"`, `"M"`, 1))}
		}},
		{name: "E061_invalid_sidecar", make: func(s *sample) { s.write(rootInv+".sha512", a+"  wrong.json\n") }},
		{name: "E064_different_root_and_latest_inventories", make: func(s *sample) {
			s.single()
			s.change(func(inv block) { versionOf(inv, "v1")["created"] = "2021-01-01T02:03:04Z" }, rootInv)
		}},
		{name: "E066_algorithm_change_state_mismatch", make: func(s *sample) {
			s.rehash(rootInv, v2Inv)
			s.change(func(inv block) { versionOf(inv, "v1")["state"] = block{digestOf("sha256", "a"): []string{"changed"}} }, rootInv, v2Inv)
		}},
		{name: "E066_changed_v1_logical_path", make: func(s *sample) { s.newest(func(inv block) { state(inv, "v1")[a] = []string{"changed.txt"} }) }},
		{name: "E066_changed_content_for_logical_path", make: func(s *sample) {
			s.newest(func(inv block) { versionOf(inv, "v1")["state"] = block{b: []string{"a.txt"}} })
		}},
		{name: "E067_file_in_extensions_dir", make: func(s *sample) { s.write("extensions/extra_file", "x"); s.write("extensions/unregistered/x", "") }},
		{name: "E092_algorithm_change_incorrect_digest", make: func(s *sample) {
			s.rehash(rootInv, v2Inv)
			wrong := digestOf("sha512", "wrong")
			s.change(func(inv block) {
				inv["manifest"] = block{wrong: []string{"v1/content/a.txt"}}
				versionOf(inv, "v1")["state"] = block{wrong: []string{"a.txt"}}
			}, v1Inv)
		}},
		{name: "E092_bad_manifest_digest", make: func(s *sample) {
			s.one(func(inv block) {
				inv["manifest"] = block{b: []string{"v1/content/a.txt"}}
				versionOf(inv, "v1")["state"] = block{b: []string{"a.txt"}}
			})
		}},
		{name: "E093_fixity_digest_mismatch", make: func(s *sample) {
			s.one(func(inv block) { md5(inv, block{strings.Repeat("9e", 16): []string{"v1/content/a.txt"}}) })
		}},
		{name: "E093_fixity_digest_mismatch_in_v1", make: func(s *sample) {
			s.change(func(inv block) { md5(inv, block{strings.Repeat("9e", 16): []string{"v1/content/a.txt"}}) }, v1Inv)
		}},
		{name: "E094_message_not_a_string", make: func(s *sample) { s.one(func(inv block) { versionOf(inv, "v1")["message"] = 7 }) }},
		{name: "E095_non_unique_logical_paths", make: func(s *sample) { s.newest(func(inv block) { state(inv, "v2")[b] = []string{"a.txt"} }) }},
		{name: "E096_manifest_repeated_digest", make: func(s *sample) { s.text(`"manifest": {`, `"manifest": {"`+a+`": ["v1/content/a.txt"],`) }},
		{name: "E097_fixity_repeated_digest", make: func(s *sample) {
			s.text(`"manifest": {`, `"fixity": {"md5": {"`+md5OfA+`": ["v1/content/a.txt"], "`+md5OfA+`": ["v1/content/a.txt"]}}, "manifest": {`)
		}},
		{name: "E097_fixity_duplicate_digests", make: func(s *sample) {
			s.one(func(inv block) {
				md5(inv, block{md5OfA: []string{"v1/content/a.txt"}, strings.ToUpper(md5OfA): []string{"v1/content/a.txt"}})
			})
		}},
		{name: "E099_bad_content_path_elements", make: func(s *sample) {
			s.one(func(inv block) {
				manifest(inv)[a] = []string{"v1/content/../content/a.txt", "v1//content/b", "./v1/content/c"}
			})
		}},
		{name: "E100_E099_manifest_invalid_content_paths", make: func(s *sample) {
			s.one(func(inv block) {
				manifest(inv)[a] = []string{"v1/content/../content/a.txt", "/v1/content/file-3.txt", "v1/content//file-2.txt"}
			})
		}},
		{name: "E103_older_spec_v2", specs: "1.1", make: func(s *sample) {
			s.newest(func(inv block) { inv["type"] = "https://ocfl.io/1.0/spec/#inventory" })
		}},
		{name: "E103_inconsistent_ocfl_versions", specs: "1.0", make: func(s *sample) {
			s.change(func(inv block) { inv["type"] = "https://ocfl.io/1.1/spec/#inventory" }, v1Inv)
		}},
		{name: "E111_null_fixity", specs: "1.1", make: func(s *sample) { s.one(func(inv block) { inv["fixity"] = nil }) }},

		{name: "W001_zero_padded_versions", make: func(s *sample) { s.padded() }},
		{name: "W001_W004_W005_zero_padded_versions", make: func(s *sample) {
			s.padded()
			s.change(func(inv block) { inv["id"] = "bb123cd4567" }, rootInv, "v001/inventory.json", "v002/inventory.json")
			s.rehash(rootInv, "v001/inventory.json", "v002/inventory.json")
		}},
		{name: "W002_extra_dir_in_version_dir", make: func(s *sample) { s.write("v1/extra_dir/x", "x") }},
		{name: "W003_empty_content_dir", make: func(s *sample) {
			s.newest(func(inv block) { delete(manifest(inv), b); delete(state(inv, "v2"), b) })
			s.drop("v2/content/b.txt")
			s.files["v2/content"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		}},
		{name: "W004_uses_sha256", make: func(s *sample) { s.rehash(rootInv, v1Inv, v2Inv) }},
		{name: "W004_versions_diff_digests", make: func(s *sample) { s.rehash(v1Inv) }},
		{name: "W005_id_not_uri", make: func(s *sample) { s.all(func(inv block) { inv["id"] = "not_a_uri" }) }},
		{name: "W007_no_message_or_user", make: func(s *sample) {
			s.one(func(inv block) { delete(versionOf(inv, "v1"), "message"); delete(versionOf(inv, "v1"), "user") })
		}},
		{name: "W007_spec-ex-diff-paths", make: func(s *sample) {
			s.one(func(inv block) {
				manifest(inv)[a] = []string{"v1/content/3bacb119a98a15c5"}
				delete(versionOf(inv, "v1"), "message")
			})
			s.renameContent("v1/content/a.txt", "v1/content/3bacb119a98a15c5")
		}},
		{name: "W008_user_no_address", make: func(s *sample) {
			s.one(func(inv block) { versionOf(inv, "v1")["user"] = block{"name": "A Person"} })
		}},
		{name: "W009_user_address_not_uri", make: func(s *sample) {
			s.one(func(inv block) {
				versionOf(inv, "v1")["user"] = block{"name": "n", "address": "1 Wonky Way, Wibblesville, WW"}
			})
		}},
		{name: "W010_no_version_inventory", make: func(s *sample) { s.single(); s.drop(v1Inv, v1Inv+".sha512") }},
		{name: "W011_version_inv_diff_metadata", make: func(s *sample) {
			s.change(func(inv block) {
				v := versionOf(inv, "v1")
				v["message"], v["created"], v["user"] = "other", "2019-01-01T02:03:04Z", block{"name": "o", "address": "mailto:o@example.org"}
			}, v1Inv)
		}},
		{name: "W013_unregistered_extension", make: func(s *sample) { s.write("extensions/unregistered/x", "x") }},

		{name: "minimal_content_dir_called_stuff", make: func(s *sample) {
			s.one(func(inv block) { inv["contentDirectory"] = "stuff"; manifest(inv)[a] = []string{"v1/stuff/a.txt"} })
			s.renameContent("v1/content/a.txt", "v1/stuff/a.txt")
		}},
		{name: "minimal_mixed_digests", make: func(s *sample) {
			mixed := strings.ToUpper(a[:40]) + a[40:]
			s.one(func(inv block) {
				inv["manifest"], versionOf(inv, "v1")["state"] = block{mixed: []string{"v1/content/a.txt"}}, block{mixed: []string{"a.txt"}}
			})
		}},
		{name: "minimal_uppercase_digests", make: func(s *sample) {
			upper := strings.ToUpper(a)
			s.one(func(inv block) {
				inv["manifest"], versionOf(inv, "v1")["state"] = block{upper: []string{"v1/content/a.txt"}}, block{upper: []string{"a.txt"}}
			})
		}},
		{name: "minimal_no_content", make: func(s *sample) {
			s.one(func(inv block) { inv["manifest"], versionOf(inv, "v1")["state"] = block{}, block{} })
			s.drop("v1/content/a.txt")
		}},
		{name: "minimal_one_version_one_file", make: func(s *sample) { s.single() }},
		{name: "minimal_with_logs", make: func(s *sample) { s.single(); s.write("logs/logs.txt", "x") }},
		{name: "minimal_empty_logs", make: func(s *sample) { s.single(); s.files["logs"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755} }},
		{name: "ocfl_object_all_fixity_digests", make: func(s *sample) { s.one(allFixity) }},
		{name: "duplicated_content_files", make: func(s *sample) {
			s.write("v2/content/again.txt", "a")
			s.newest(func(inv block) { manifest(inv)[a] = []string{"v2/content/again.txt", "v1/content/a.txt"} })
		}},
		{name: "updates_all_actions", make: func(s *sample) { // added, renamed, copied, deleted, brought back
			s.newest(func(inv block) {
				versionOf(inv, "v2")["state"] = block{a: []string{"c/a.txt", "c/copy.txt"}, b: []string{"b.txt"}}
			})
		}},
		{name: "ocfl_version_change", specs: "1.1", make: func(s *sample) {
			s.change(func(inv block) { inv["type"] = "https://ocfl.io/1.0/spec/#inventory" }, v1Inv)
		}},
	}
}

// renameContent moves a content file.
func (s *sample) renameContent(from, to string) {
	s.files[to] = s.files[from]
	s.drop(from)
}

// unused has content that no version shows.
func (s *sample) unused() {
	s.one(func(inv block) { manifest(inv)[digestOf("sha512", "x")] = []string{"v1/content/x"} })
	s.write("v1/content/x", "x")
}

// allFixity gives "a" a value of each algorithm of the specification and of extension 0009.
func allFixity(inv block) {
	paths := []string{"v1/content/a.txt"}
	inv["fixity"] = block{
		"md5":    block{"0cc175b9c0f1b6a831c399e269772661": paths},
		"sha1":   block{"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8": paths},
		"sha256": block{digestOf("sha256", "a"): paths},
		"sha512": block{digestOf("sha512", "a"): paths},
		"blake2b-512": block{
			"333fcb4ee1aa7c115355ec66ceac917c8bfd815bf7587d325aec1864edd24e34d5abe2c6b1b5ee3face62fed78dbef802f2a85cb91d455a8f5249d330853cb3c": paths,
		},
		"sha512/256": block{"455e518824bc0601f9fb858ff5c37d417d67c2f8e0df2babe4808858aea830f8": paths},
	}
}

// kindOf is the folder that a public object of this name lies in.
func kindOf(name string) string {
	switch {
	case strings.HasPrefix(name, "E"):
		return "bad-objects"
	case strings.HasPrefix(name, "W"):
		return "warn-objects"
	}
	return "good-objects"
}

// TestPublicNames judges objects made after the names of public fixtures that are not available
// here, in both versions of the specification. Together with TestConformance it covers every known
// name.
func TestPublicNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range fixtures() {
		if seen[f.name] {
			t.Errorf("%s occurs twice", f.name)
		}
		seen[f.name] = true
		for _, spec := range []string{ocfl.Spec10, ocfl.Spec11} {
			if f.specs != "" && f.specs != spec {
				continue
			}
			t.Run(spec+"/"+f.name, func(t *testing.T) {
				s := newSample(spec)
				f.make(s)
				report, err := ocfl.ValidateFS(t.Context(), s.files, ocfl.ValidateOptions{})
				if err != nil {
					t.Fatalf("validate: %v", err)
				}
				wantVerdict(t, report, kindOf(f.name), f.name)
				if len(s.files) == 0 {
					return // there is no such folder on a store
				}
				for _, fault := range report.Errors() {
					if fault.Message == "" || fault.Path == "" && !slices.Contains([]string{"E003", "E063", "E034"}, fault.Code) {
						t.Errorf("%+v does not name the file and what is wrong", fault)
					}
				}
			})
		}
	}
}

// TestOlderSpecification judges the public objects of 1.1 as objects of 1.0. They differ only in
// their declarations.
func TestOlderSpecification(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(cases(t), "1.1", "*-objects", "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no objects found: %v", err)
	}
	for _, folder := range folders {
		name, kind := filepath.Base(folder), filepath.Base(filepath.Dir(folder))
		t.Run(kind+"/"+name, func(t *testing.T) {
			report, err := ocfl.ValidateFS(t.Context(), olderOf(t, folder), ocfl.ValidateOptions{})
			if err != nil {
				t.Fatalf("validate: %v", err)
			}
			wantVerdict(t, report, kind, name)
		})
	}
}

// olderOf returns an object of 1.1 as one of 1.0. Sidecars that were right are right again.
func olderOf(t *testing.T, folder string) fs.FS {
	t.Helper()
	s := &sample{files: fstest.MapFS{}}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(folder, name)
		s.write(strings.Replace(rel, "0=ocfl_object_1.1", "0=ocfl_object_1.0", 1), strings.Replace(string(data), "ocfl_object_1.1", "ocfl_object_1.0", 1))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range s.files {
		if !strings.HasSuffix(path, "inventory.json") {
			continue
		}
		was := string(file.Data)
		is := strings.Replace(was, "https://ocfl.io/1.1/", "https://ocfl.io/1.0/", 1)
		s.write(path, is)
		for _, algorithm := range []string{"sha512", "sha256"} {
			if sidecar := s.files[path+"."+algorithm]; sidecar != nil {
				s.write(path+"."+algorithm, strings.Replace(string(sidecar.Data), digestOf(algorithm, was), digestOf(algorithm, is), 1))
			}
		}
	}
	return s.files
}
