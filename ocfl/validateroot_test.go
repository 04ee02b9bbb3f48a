package ocfl_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// sampleRoot is a storage root that a test damages.
type sampleRoot struct {
	files fstest.MapFS
}

func (r sampleRoot) write(path, text string) { r.files[path] = &fstest.MapFile{Data: []byte(text)} }

func (r sampleRoot) folder(path string) {
	r.files[path] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
}

// put puts an object into a folder.
func (r sampleRoot) put(folder string, s *sample) {
	for path, file := range s.files {
		r.files[folder+"/"+path] = file
	}
}

// layout declares a layout, with its configuration.
func (r sampleRoot) layout(name, config string) {
	r.write("ocfl_layout.json", `{"extension": "`+name+`", "description": "d"}`)
	if config != "" {
		r.write("extensions/"+name+"/config.json", config)
	}
}

// withID gives an object another identifier.
func withID(s *sample, id string) *sample {
	s.all(func(inv block) { inv["id"] = id })
	return s
}

const (
	layout0004 = "0004-hashed-n-tuple-storage-layout"
	layout0006 = "0006-flat-omit-prefix-storage-layout"
)

// newSampleRoot has two valid objects by layout 0004: "urn:one" and "urn:two".
func newSampleRoot(t *testing.T, spec string) sampleRoot {
	t.Helper()
	r := sampleRoot{files: fstest.MapFS{}}
	r.write("0=ocfl_"+spec, "ocfl_"+spec+"\n")
	r.layout(layout0004, `{"extensionName": "`+layout0004+`"}`)
	for _, id := range []string{"urn:one", "urn:two"} {
		r.put(placeOf(t, id), withID(newSample(spec), id))
	}
	return r
}

// placeOf is where layout 0004 has an object.
func placeOf(t *testing.T, id string) string {
	t.Helper()
	place, err := ocfl.NewHashedNTuple().Path(id)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// TestValidateRoot damages a storage root in one way at a time and compares all faults.
func TestValidateRoot(t *testing.T) {
	t.Parallel()
	one := placeOf(t, "urn:one")
	flat := func(r sampleRoot) { // without a layout that is known
		delete(r.files, "ocfl_layout.json")
		delete(r.files, "extensions/"+layout0004+"/config.json")
	}
	for _, test := range []struct {
		name    string
		damage  func(r sampleRoot)
		want    string
		objects int // 2 when 0
		invalid int
		only11  bool
		only10  bool
	}{
		{name: "nothing", damage: func(sampleRoot) {}},
		{name: "files of others", damage: func(r sampleRoot) { r.write("ocfl_1.1.md", "x"); r.write("README", "x") }},
		{name: "no layout", damage: flat},
		{name: "a layout of others", damage: func(r sampleRoot) { r.layout("0011-direct-clean-path-layout", "") }},
		{name: "a known extension", damage: func(r sampleRoot) { r.write("extensions/0005-mutable-head/a/b", "x") }},
		{name: "no declaration", damage: func(r sampleRoot) { delete(r.files, "0=ocfl_1.0"); delete(r.files, "0=ocfl_1.1") }, want: "E069 E076"},
		{name: "two declarations", damage: func(r sampleRoot) {
			r.write("0=ocfl_1.0", "ocfl_1.0\n")
			r.write("0=ocfl_1.1", "ocfl_1.1\n")
		}, want: "E076"},
		{name: "unknown version", damage: func(r sampleRoot) { r.write("0=ocfl_2.7", "ocfl_2.7\n") }, want: "E077"},
		{name: "wrong tag", damage: func(r sampleRoot) { r.write("1=ocfl_1.1", "ocfl_1.1\n") }, want: "E078"},
		{name: "tag is a letter", damage: func(r sampleRoot) { r.write("x=ocfl_1.1", "ocfl_1.1\n") }, want: "E075 E078"},
		{name: "wrong value", damage: func(r sampleRoot) {
			delete(r.files, "0=ocfl_1.0")
			delete(r.files, "0=ocfl_1.1")
			r.write("0=oxford_1.1", "x")
		}, want: "E069 E076 E079"},
		{name: "content", damage: func(r sampleRoot) { r.write("0=ocfl_1.1", "ocfl_1.1"); delete(r.files, "0=ocfl_1.0") }, want: "E080"},
		{name: "layout is no JSON", damage: func(r sampleRoot) { r.write("ocfl_layout.json", "{") }, want: "E070"},
		{name: "layout without a description", damage: func(r sampleRoot) { r.write("ocfl_layout.json", `{"extension": "`+layout0004+`"}`) }, want: "E070"},
		{name: "layout without an extension", damage: func(r sampleRoot) { r.write("ocfl_layout.json", `{"description": "d", "extension": 4}`) }, want: "E070"},
		{name: "layout unknown", damage: func(r sampleRoot) { r.layout("my-layout", "") }, want: "E071"},
		{name: "layout with a wrong parameter", damage: func(r sampleRoot) { r.layout(layout0004, `{"tupleSize": 99}`) }, want: "E071"},
		{name: "layout without its parameter", damage: func(r sampleRoot) { r.layout(layout0006, "") }, want: "E071"},
		{name: "file on the way", damage: func(r sampleRoot) { r.write(one[:4]+"x", "x") }, want: "E072 E084"},
		{name: "file on the way, before the object", damage: func(r sampleRoot) { r.write(one[:8]+"!", "x") }, want: "E072 E084"},
		{name: "file at the end", damage: func(r sampleRoot) { r.write("abc/def/x", "x") }, want: "E072 E085"},
		{name: "foreign folder", damage: func(r sampleRoot) { r.write("abc/x", "x"); r.write("abc/y", "y") }, want: "E072 E085 E088"},
		{name: "empty folder", damage: func(r sampleRoot) { r.folder("abc") }, want: "E073"},
		{name: "empty folder on the way", damage: func(r sampleRoot) { r.folder(one[:4] + "x") }, want: "E073"},
		{name: "root in a root", damage: func(r sampleRoot) { r.write("abc/0=ocfl_1.1", "ocfl_1.1\n") }, want: "E072 E074 E085 E088"},
		{name: "later object", damage: func(r sampleRoot) {
			r.put(placeOf(t, "urn:new"), withID(newSample("1.1"), "urn:new"))
		}, want: "E081", objects: 3, only10: true},
		{name: "earlier object", damage: func(r sampleRoot) {
			r.put(placeOf(t, "urn:old"), withID(newSample("1.0"), "urn:old"))
		}, objects: 3, only11: true},
		{name: "object in an object", damage: func(r sampleRoot) { r.put(one+"/sub", newSample("1.0")) }, want: "E082", invalid: 1},
		{name: "object in the wrong place", damage: func(r sampleRoot) { r.put("abc/def/123/abcdef123", withID(newSample("1.0"), "urn:three")) }, want: "E083", objects: 3},
		{name: "object twice", damage: func(r sampleRoot) {
			flat(r)
			r.put("abc/def/012/345", withID(newSample("1.0"), "urn:one"))
		}, want: "E083", objects: 3},
		{name: "different depths", damage: func(r sampleRoot) {
			flat(r)
			r.put("abc/def", withID(newSample("1.0"), "urn:three"))
		}, want: "W014", objects: 3},
		{name: "at the top and below", damage: func(r sampleRoot) {
			flat(r)
			r.put("abc", withID(newSample("1.0"), "urn:three"))
		}, want: "W014 W015", objects: 3},
		{name: "link", damage: func(r sampleRoot) {
			r.files["abc"] = &fstest.MapFile{Data: []byte("x"), Mode: fs.ModeSymlink}
		}, want: "E090"},
		{name: "file among extensions", damage: func(r sampleRoot) { r.write("extensions/x", "x") }, want: "E112"},
		{name: "empty extension", damage: func(r sampleRoot) { r.folder("extensions/0005-mutable-head") }, want: "E073"},
		{name: "unregistered extension", damage: func(r sampleRoot) {
			r.write("extensions/mine/a", "x")
			r.write("extensions/mine/b", "x")
		}, want: "W016"},
		{name: "object without its declaration", damage: func(r sampleRoot) {
			delete(r.files, one+"/0=ocfl_object_1.0")
			delete(r.files, one+"/0=ocfl_object_1.1")
		}, invalid: 1},
		{name: "object with a stray file before it", damage: func(r sampleRoot) { r.write(one+"/!", "x") }, invalid: 1},
		{name: "damaged object", damage: func(r sampleRoot) { r.write(one+"/v1/content/a.txt", "x") }, invalid: 1},
		{name: "unfinished object", damage: func(r sampleRoot) {
			place := placeOf(t, "urn:begun")
			r.write(place+"/0=ocfl_object_1.0", "ocfl_object_1.0\n")
			r.write(place+"/v1/content/a.txt", "a")
		}, objects: 3, invalid: 1},
	} {
		for _, spec := range []string{ocfl.Spec10, ocfl.Spec11} {
			if test.only10 && spec != ocfl.Spec10 || test.only11 && spec != ocfl.Spec11 {
				continue
			}
			t.Run(test.name+" "+spec, func(t *testing.T) {
				r := newSampleRoot(t, spec)
				test.damage(r)
				want := strings.Fields(test.want)
				if test.objects == 0 {
					test.objects = 2
				}
				folders := map[string]bool{}
				report, err := ocfl.ValidateRootFS(t.Context(), r.files, ocfl.ValidateOptions{}, func(folder string, report *ocfl.Report) error {
					folders[folder] = report.Valid()
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				errorsWanted := test.invalid > 0 || strings.Contains(test.want, "E")
				if !slices.Equal(report.Codes(), want) || report.Valid() == errorsWanted {
					t.Errorf("codes = %v, valid = %v, want %v: %v", report.Codes(), report.Valid(), want, report.Faults)
				}
				if report.Objects != test.objects || len(folders) != test.objects || report.Invalid != test.invalid {
					t.Errorf("%d objects, %d invalid, want %d and %d: %v", report.Objects, report.Invalid, test.objects, test.invalid, folders)
				}
				if valid, ok := folders[one]; !ok || valid == (test.invalid > 0 && test.name != "unfinished object") {
					t.Errorf("%s: found = %v, valid = %v", one, ok, valid)
				}
				if strings.Contains(test.name, "link") || strings.Contains(test.want, "E073") {
					return // not on a store
				}
				again, err := ocfl.ValidateRoot(t.Context(), stored(t, r.files, "root"), "root", ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return nil })
				if err != nil || !slices.Equal(again.Codes(), want) || again.Objects != test.objects || again.Invalid != test.invalid {
					t.Errorf("on a store: %+v, %v", again, err)
				}
			})
		}
	}
}

// stored copies files to a store.
func stored(t *testing.T, files fstest.MapFS, prefix string) storage.Store {
	t.Helper()
	s := storagetest.NewMemory()
	for path, file := range files {
		if file.Mode.IsDir() {
			continue
		}
		if _, err := storage.Put(t.Context(), s, prefix+"/"+path, file.Data); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestValidateRoot_ManyFaults checks that a report lists the first 1,000 faults, errors first, and
// counts all.
func TestValidateRoot_ManyFaults(t *testing.T) {
	const many = 3000
	r := newSampleRoot(t, ocfl.Spec11)
	for i := range many {
		r.write(fmt.Sprintf("stray/%04d", i), "")
		r.folder(fmt.Sprintf("extensions/%04d", i))
		r.write(fmt.Sprintf("extensions/unknown-%04d/config.json", i), "{}")
	}
	report, err := ocfl.ValidateRootFS(t.Context(), r.files, ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	// Each stray is one, with the folder that they lie in E085 and E088; each empty folder and each
	// unknown extension is one.
	if want := int64(3*many + 2); len(report.Faults) != 1000 || report.Count != want || report.Valid() {
		t.Errorf("%d faults are listed and %d counted, want 1000 and %d", len(report.Faults), report.Count, want)
	}
	if i := slices.IndexFunc(report.Faults, func(f ocfl.Fault) bool { return !f.Error() }); i >= 0 {
		t.Errorf("a warning is listed in place of an error: %s", report.Faults[i])
	}
}

// TestValidateRoot_Memory checks that an object that would take too much memory, by its files or
// its inventory, is refused without affecting the others.
func TestValidateRoot_Memory(t *testing.T) {
	r := newSampleRoot(t, ocfl.Spec11)
	many := placeOf(t, "urn:one")
	for i := range 2000 {
		r.write(fmt.Sprintf("%s/logs/%04d", many, i), "")
	}
	for limit, large := range map[int64]int{0: 0, 1 << 20: 0, 100_000: 1, 500: 2} {
		refused := 0
		report, err := ocfl.ValidateRootFS(t.Context(), r.files, ocfl.ValidateOptions{Memory: limit}, func(folder string, o *ocfl.Report) error {
			if slices.Contains(o.Codes(), ocfl.CodeLarge) {
				refused++
			} else if !o.Valid() {
				t.Errorf("at most %d bytes: %s: %v", limit, folder, o.Faults)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if refused != large || report.Invalid != large || report.Objects != 2 {
			t.Errorf("at most %d bytes: %d of %d objects are refused, want %d", limit, refused, report.Objects, large)
		}
	}
}

// TestValidateRoot_OwnRoots checks that the roots this package writes are valid with either layout.
// Only the folder that directory storage keeps for itself is unregistered.
func TestValidateRoot_OwnRoots(t *testing.T) {
	t.Parallel()
	for _, layout := range []ocfl.Layout{ocfl.NewHashedNTuple(), ocfl.NewFlatOmitPrefix("/")} {
		store := newStore(t)
		root, err := ocfl.OpenRoot(t.Context(), store, "", layout)
		if err != nil {
			t.Fatal(err)
		}
		stage := staging{newStore(t)}
		for _, id := range []string{"ark:/99999/fk1", "ark:/99999/fk2"} {
			inv, _ := plan(t, newObject(t, id), ocfl.Change{Message: "m", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "f", id)})})
			commit(t, root, inv, stage)
		}
		report, err := ocfl.ValidateRoot(t.Context(), store, "", ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return nil })
		if err != nil || !report.Valid() || report.Objects != 2 || report.Layout != layout.Name() || report.Files != 2 || len(report.Codes()) > 1 {
			t.Errorf("%s: %+v, %v", layout.Name(), report, err)
		}
	}
}

// TestHardLinks checks that two names of one file in an object are reported: they are a single
// copy.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s := newSample(ocfl.Spec11)
	s.write("v2/content/again.txt", "a")
	s.newest(func(inv block) {
		manifest(inv)[digestOf("sha512", "a")] = []string{"v1/content/a.txt", "v2/content/again.txt"}
	})
	if err := os.CopyFS(path, s.files); err != nil {
		t.Fatal(err)
	}
	judge := func() *ocfl.Report {
		report, err := ocfl.ValidateFS(t.Context(), os.DirFS(path), ocfl.ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if report := judge(); len(report.Faults) > 0 {
		t.Fatalf("two files: %v", report.Faults)
	}
	again := filepath.Join(path, "v2/content/again.txt")
	if err := errors.Join(os.Remove(again), os.Link(filepath.Join(path, "v1/content/a.txt"), again)); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	if report := judge(); !slices.Equal(report.Codes(), []string{"E090"}) || report.Faults[0].Path != "v2/content/again.txt" {
		t.Errorf("one file with two names: %v, want E090", report.Faults)
	}
}

// TestValidateRoot_Unreadable checks that a failing store, or a listener that returns an error,
// ends the validation without a verdict.
func TestValidateRoot_Unreadable(t *testing.T) {
	t.Parallel()
	inner := stored(t, newSampleRoot(t, "1.1").files, "r")
	nobody := func(string, *ocfl.Report) error { return nil }
	for n, done := 1, false; !done; n++ {
		store := storagetest.NewFaulty(inner)
		store.Fail(storagetest.Any, n, nil)
		_, err := ocfl.ValidateRoot(t.Context(), store, "r", ocfl.ValidateOptions{}, nobody)
		done = store.Count(storagetest.Any) < n
		if !done && !errors.Is(err, storagetest.ErrInjected) {
			t.Errorf("operation %d fails: err = %v, want the fault", n, err)
		}
	}
	if _, err := ocfl.ValidateRoot(t.Context(), inner, "nothing", ocfl.ValidateOptions{}, nobody); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("validate nothing: err = %v, want ErrNotFound", err)
	}
	stop := errors.New("enough")
	if _, err := ocfl.ValidateRoot(t.Context(), inner, "r", ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("err = %v, want the listener's", err)
	}
}
