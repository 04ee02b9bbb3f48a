package ocfl_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// named is a file with content, for planning without storing.
func named(path, content string) ocfl.File {
	return ocfl.File{Path: path, Digest: digestOf("sha512", content)}
}

// encode returns the bytes of an inventory.
func encode(t testing.TB, inv *ocfl.Inventory) string {
	t.Helper()
	var buf bytes.Buffer
	if err := inv.Encode(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// TestR02_PlanningIsDeterministic checks that planning again with the files in another order gives
// the same bytes.
func TestR02_PlanningIsDeterministic(t *testing.T) {
	files := []ocfl.File{named("b", "same"), named("a", "same"), named("c/d", "other"), named("e", "")}
	change := ocfl.Change{Message: "m", User: &user, Created: created(1), Files: ocfl.Files(files)}
	base := newObject(t, "ark:/99999/plan")
	one, content := plan(t, base, change)
	slices.Reverse(files)
	two, again := plan(t, base, change)
	if diff := cmp.Diff(encode(t, one), encode(t, two)); diff != "" {
		t.Errorf("another order gives another inventory:\n%s", diff)
	}
	if diff := cmp.Diff(content, again); diff != "" {
		t.Errorf("another order gives other content files:\n%s", diff)
	}
	var paths []string
	for _, f := range content {
		paths = append(paths, f.Path)
	}
	if want := []string{"v1/content/a", "v1/content/c/d", "v1/content/e"}; !slices.Equal(paths, want) {
		t.Errorf("content files = %q, want %q", paths, want)
	}
	bare := one.ContentFiles()
	if diff := cmp.Diff(content, bare); diff != "" {
		t.Errorf("the inventory names other content files than the plan:\n%s", diff)
	}
	if base.Head() != 0 || len(base.Manifest) != 0 {
		t.Errorf("planning changed the version before: %+v", base)
	}
}

func TestNewVersion(t *testing.T) {
	base, _ := plan(t, newObject(t, "ark:/99999/plan"), ocfl.Change{Files: ocfl.Files([]ocfl.File{
		named("a", "1"), named("b", "2"), named("d/e", "3"),
	})})
	for _, test := range []struct {
		name    string
		change  ocfl.Change
		want    map[string]string // path -> content
		content []string
		err     error
		refused string // path of the PathError
	}{
		{
			name: "add", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("c", "4")})},
			want: map[string]string{"a": "1", "b": "2", "d/e": "3", "c": "4"}, content: []string{"v2/content/c"},
		},
		{
			name: "replace", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("a", "5")})},
			want: map[string]string{"a": "5", "b": "2", "d/e": "3"}, content: []string{"v2/content/a"},
		},
		{name: "delete", change: ocfl.Change{Delete: []string{"a"}}, want: map[string]string{"b": "2", "d/e": "3"}},
		{
			name: "rename", change: ocfl.Change{Delete: []string{"a"}, Files: ocfl.Files([]ocfl.File{named("z", "1")})},
			want: map[string]string{"z": "1", "b": "2", "d/e": "3"},
		},
		{
			name: "delete and add", change: ocfl.Change{Delete: []string{"a"}, Files: ocfl.Files([]ocfl.File{named("a", "6")})},
			want: map[string]string{"a": "6", "b": "2", "d/e": "3"}, content: []string{"v2/content/a"},
		},
		{
			name: "folder takes the place of a file", change: ocfl.Change{Delete: []string{"a"}, Files: ocfl.Files([]ocfl.File{named("a/x", "7")})},
			want: map[string]string{"a/x": "7", "b": "2", "d/e": "3"}, content: []string{"v2/content/a/x"},
		},
		{name: "whole", change: ocfl.Change{Whole: true, Files: ocfl.Files([]ocfl.File{named("a", "2")})}, want: map[string]string{"a": "2"}},
		{name: "empty", change: ocfl.Change{Whole: true}, want: map[string]string{}},
		{name: "unchanged", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("a", "1")})}, err: ocfl.ErrUnchanged},
		{name: "delete what is not there", change: ocfl.Change{Delete: []string{"x"}}, refused: "x"},
		{name: "twice", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("x", "1"), named("x", "2")})}, refused: "x"},
		{name: "file as folder", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("a/b", "1")})}, refused: "a/b"},
		{name: "folder as file", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("d", "1")})}, refused: "d/e"},
		{name: "dots", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("x/../y", "1")})}, refused: "x/../y"},
		{name: "absolute", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("/x", "1")})}, refused: "/x"},
		{name: "empty element", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("x//y", "1")})}, refused: "x//y"},
		{name: "no name", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("", "1")})}, refused: ""},
		{name: "no UTF-8", change: ocfl.Change{Files: ocfl.Files([]ocfl.File{named("x\xff", "1")})}, refused: "x\xff"},
		{name: "error of the sequence", change: ocfl.Change{Files: func(yield func(ocfl.File, error) bool) {
			_ = yield(named("x", "1"), nil) && yield(ocfl.File{}, storagetest.ErrInjected)
		}}, err: storagetest.ErrInjected},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.change.Created = created(2)
			inv, content, err := ocfl.NewVersion(base, test.change)
			if test.want == nil {
				var pathErr *ocfl.PathError
				switch {
				case test.err != nil && !errors.Is(err, test.err):
					t.Errorf("err = %v, want %v", err, test.err)
				case test.err == nil && (!errors.As(err, &pathErr) || pathErr.Path != test.refused):
					t.Errorf("err = %v, want a PathError of %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, want := map[string]string{}, map[string]string{}
			for _, f := range inv.State(0) {
				got[f.Path] = f.Digest
			}
			for path, text := range test.want {
				want[path] = digestOf("sha512", text)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("state:\n%s", diff)
			}
			var paths []string
			for _, f := range content {
				paths = append(paths, f.Path)
			}
			if !slices.Equal(paths, test.content) {
				t.Errorf("content = %q, want %q", paths, test.content)
			}
			if _, ok := inv.Lookup(1, "a"); !ok || len(inv.State(1)) != 3 {
				t.Errorf("version 1 = %v", inv.State(1))
			}
		})
	}
}

func TestNewVersionRefusesDigests(t *testing.T) {
	base := newObject(t, "ark:/99999/plan")
	good := named("a", "1")
	for name, f := range map[string]ocfl.File{
		"short":      {Path: "a", Digest: "abc"},
		"no hex":     {Path: "a", Digest: strings.Repeat("x", 128)},
		"of another": {Path: "a", Digest: digestOf("sha256", "1")},
	} {
		if _, _, err := ocfl.NewVersion(base, ocfl.Change{Created: created(1), Files: ocfl.Files([]ocfl.File{f})}); err == nil {
			t.Errorf("%s: planned", name)
		}
	}
	if _, _, err := ocfl.NewVersion(base, ocfl.Change{Files: ocfl.Files([]ocfl.File{good})}); err == nil {
		t.Error("planned without a time")
	}
	upper := good
	upper.Digest = strings.ToUpper(good.Digest)
	inv, _ := plan(t, base, ocfl.Change{Files: ocfl.Files([]ocfl.File{upper})})
	if inv.Manifest[0].Digest != good.Digest {
		t.Errorf("digest = %s, want lower case", inv.Manifest[0].Digest)
	}
}

// TestOddNames commits names that are hard to store or to write down, and reads them back
// unchanged.
func TestOddNames(t *testing.T) {
	stage := staging{newStore(t)}
	root := newRoot(t, newStore(t))
	want := map[string]string{}
	var files []ocfl.File
	add := func(name string) {
		want[name] = "content of " + name
		files = append(files, stage.file(t, name, want[name]))
	}
	for _, name := range storagetest.OddNames() {
		if strings.ToValidUTF8(name, "") == name {
			add("producer/" + name)
		}
	}
	add(strings.Repeat("long", 100) + "/x")
	add(strings.Repeat("deep/", 300) + "x")
	add("nul\x00byte")
	add("__long-names/x")
	add("__long-names/" + digestOf("sha512", "y"))
	inv, _ := plan(t, newObject(t, "ark:/99999/odd"), ocfl.Change{Message: "\x00\"\\\u2028\x7f", User: &user, Files: ocfl.Files(files)})
	commit(t, root, inv, stage)
	wantValid(t, root, inv.ID)
	wantFiles(t, root, inv.ID, 1, want)
	base, _ := root.ObjectKey(inv.ID)
	if _, err := root.Store().Stat(t.Context(), base+"/v1/content/producer/README|pipe.md"); err != nil {
		t.Errorf("a name that can be kept was not: %v", err)
	}
}

// TestVersionsAgainstModel makes random versions and finally compares each of them with a model.
func TestVersionsAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stage := staging{storagetest.NewMemory()}
		root, err := ocfl.OpenRoot(t.Context(), storagetest.NewMemory(), "some/folder", nil)
		if err != nil {
			rt.Fatal(err)
		}
		inv, err := ocfl.New("urn:model", rapid.SampledFrom([]string{ocfl.SHA512}).Draw(rt, "algorithm"))
		if err != nil {
			rt.Fatal(err)
		}
		paths := rapid.SampledFrom([]string{"a", "b", "c/d", "c/e", "f/g/h", "caf\u00e9", "cafe\u0301"})
		contents := rapid.SampledFrom([]string{"", "1", "2", "3", "4"})
		var models []map[string]string
		stored := map[string]bool{}
		current := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(rt, "versions") {
			next := map[string]string{}
			change := ocfl.Change{
				Whole: rapid.Bool().Draw(rt, "whole"), User: &user, Message: "m", Created: created(len(models)),
			}
			if !change.Whole {
				next = maps.Clone(current)
				for path := range current {
					if rapid.IntRange(0, 4).Draw(rt, "delete "+path) == 0 {
						change.Delete = append(change.Delete, path)
						delete(next, path)
					}
				}
			}
			var files []ocfl.File
			for path, content := range rapid.MapOf(paths, contents).Draw(rt, "files") {
				files = append(files, stage.file(t, path, content))
				next[path] = content
			}
			change.Files = ocfl.Files(files)
			planned, added, err := ocfl.NewVersion(inv, change)
			if errors.Is(err, ocfl.ErrUnchanged) && maps.Equal(current, next) {
				continue
			}
			if err != nil {
				rt.Fatal(err)
			}
			for _, f := range added {
				if stored[f.Digest] {
					rt.Fatalf("%s is stored again", f.Path)
				}
				stored[f.Digest] = true
			}
			if err := root.Commit(t.Context(), planned, stage.source, ocfl.CommitOptions{}); err != nil {
				rt.Fatal(err)
			}
			// The next one is planned on what was read.
			if inv, err = root.Inventory(t.Context(), "urn:model", 0); err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(encode(t, planned), encode(t, inv)); diff != "" {
				rt.Fatalf("reading changes the inventory:\n%s", diff)
			}
			models, current = append(models, next), next
		}
		for i, model := range models {
			wantFiles(t, root, "urn:model", i+1, model)
		}
		wantValid(t, root, "urn:model")
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// TestForeignObjects adds versions to objects made by other software: zero-padded versions, upper-
// case digests, another content folder, an older specification.
func TestForeignObjects(t *testing.T) {
	folder := cases(t) + "/1.1/"
	for _, name := range []string{
		"warn-objects/W001_W004_W005_zero_padded_versions", "warn-objects/W010_no_version_inventory",
		"warn-objects/W004_versions_diff_digests",
		"good-objects/minimal_uppercase_digests", "good-objects/minimal_content_dir_called_stuff", "good-objects/spec-ex-full",
		"good-objects/ocfl_object_all_fixity_digests", "good-objects/minimal_mixed_digests",
	} {
		t.Run(name, func(t *testing.T) {
			made := storeOf(t, folder+name)
			report, err := ocfl.Validate(t.Context(), made, "", ocfl.ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			store := newStore(t)
			root := newRoot(t, store)
			base, err := root.ObjectKey(report.ID)
			if err != nil {
				t.Fatal(err)
			}
			for info, err := range made.List(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := storage.Copy(t.Context(), store, base+"/"+info.Key, made, info.Key); err != nil {
					t.Fatal(err)
				}
			}
			inv, err := root.Inventory(t.Context(), report.ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			stage := staging{newStore(t)}
			f := stage.file(t, "added.txt", "added to "+name)
			if inv.Algorithm == ocfl.SHA256 {
				f.Digest = digestOf("sha256", "added to "+name)
				if _, err := storage.Put(t.Context(), stage.store, f.Digest, []byte("added to "+name)); err != nil {
					t.Fatal(err)
				}
			}
			next, _ := plan(t, inv, ocfl.Change{Message: "m", User: &user, Files: ocfl.Files([]ocfl.File{f})})
			commit(t, root, next, stage)
			after, err := root.Verify(t.Context(), report.ID, ocfl.ValidateOptions{})
			if err != nil || !after.Valid() {
				t.Errorf("after a new version: %+v, %v", after, err)
			}
			newest := ocfl.Stored{ID: report.ID, Path: next.VersionName(next.Head()) + "/inventory.json", Algorithm: next.Algorithm}
			newest.Algorithm, newest.Digest, err = root.Sidecar(t.Context(), newest.ID, newest.Path)
			if err != nil {
				t.Fatal(err)
			}
			if foreign, err := root.Foreign(t.Context(), newest, next.Head(), func(string) bool { return false }); len(foreign) > 0 || err != nil {
				t.Errorf("foreign files after a new version: %v, %v", foreign, err)
			}
			if diff := cmp.Diff(report.Codes(), after.Codes()); diff != "" {
				t.Errorf("faults change:\n%s", diff)
			}
			if got, err := root.Inventory(t.Context(), report.ID, inv.Head()); err != nil || len(got.State(0)) != len(inv.State(0)) {
				t.Errorf("the version before reads as %+v, %v", got, err)
			}
		})
	}
}

// TestRoot10 has new versions in a storage root of OCFL 1.0: objects of it stay at 1.0, new ones begin
// there, and none of 1.1 may come.
func TestRoot10(t *testing.T) {
	t.Parallel()
	store, stage := storagetest.NewMemory(), staging{storagetest.NewMemory()}
	for key, text := range map[string]string{
		"0=ocfl_1.0": "ocfl_1.0\n", "ocfl_layout.json": `{"extension": "0003-hash-and-id-n-tuple-storage-layout", "description": ""}`,
	} {
		if _, err := storage.Put(t.Context(), store, key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	space := root.Spill()
	defer space.Close()
	roots := ocfl.Roots{{Root: root, Name: "old"}, {Root: newRoot(t, newStore(t)), Name: "new"}}
	if got := roots.Spec([]string{"new"}); got != ocfl.Spec11 {
		t.Errorf("without the old root a new object declares %s", got)
	}
	prior, err := ocfl.NoPrior("info:fedora/a", ocfl.SHA512, roots.Spec(roots.Names()))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		files := []ocfl.File{stage.file(t, fmt.Sprint("file", n), fmt.Sprint("bytes", n))}
		p, err := ocfl.NewPlan(t.Context(), prior, ocfl.Change{Message: "m", User: &user, Files: ocfl.Files(files), Created: created(n)}, space)
		if err != nil {
			t.Fatal(err)
		}
		_, addition, err := p.InMemory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := root.CommitAddition(t.Context(), addition, stage.source, ocfl.CommitOptions{}); err != nil {
			t.Fatal(err)
		}
		if prior, err = root.Prior(t.Context(), "info:fedora/a", 0); err != nil {
			t.Fatal(err)
		}
	}
	report, err := root.Verify(t.Context(), "info:fedora/a", ocfl.ValidateOptions{})
	if err != nil || !report.Valid() || report.Spec != ocfl.Spec10 || report.Head != "v2" {
		t.Errorf("the object reads as %+v, %v", report, err)
	}
	whole, err := ocfl.ValidateRoot(t.Context(), store, "", ocfl.ValidateOptions{}, func(string, *ocfl.Report) error { return nil })
	if err != nil || !whole.Valid() || whole.Objects != 1 {
		t.Errorf("the root reads as %+v, %v", whole, err)
	}
	later, _ := plan(t, newObject(t, "urn:new"), ocfl.Change{Message: "m", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "a", "a")})})
	if err := root.Commit(t.Context(), later, stage.source, ocfl.CommitOptions{}); !errors.Is(err, ocfl.ErrLayout) {
		t.Errorf("an object of OCFL 1.1: %v, want ErrLayout", err)
	}
}

// TestPaddingRunsOut checks that version 10 is refused after v01 to v09.
func TestPaddingRunsOut(t *testing.T) {
	store := storagetest.NewMemory()
	root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	base, _ := root.ObjectKey("urn:padded")
	a := digestOf("sha512", "")
	var versions []string
	for n := 1; n <= 9; n++ {
		versions = append(versions, fmt.Sprintf(`"v%02d": {"created": "2026-01-01T00:00:00Z", "state": {"%s": ["a"]}}`, n, a))
	}
	text := fmt.Sprintf(`{"id": "urn:padded", "type": "https://ocfl.io/1.1/spec/#inventory", "digestAlgorithm": "sha512", "head": "v09",
		"manifest": {"%s": ["v01/content/a"]}, "versions": {%s}}`, a, strings.Join(versions, ", "))
	for name, content := range map[string]string{
		"inventory.json": text, "inventory.json.sha512": digestOf("sha512", text) + " inventory.json\n", "v01/content/a": "",
	} {
		if _, err := storage.Put(t.Context(), store, base+"/"+name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	inv, err := root.Inventory(t.Context(), "urn:padded", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ocfl.NewVersion(inv, ocfl.Change{Created: created(1)}); err == nil || errors.Is(err, ocfl.ErrUnchanged) {
		t.Error("a tenth version of two digits was planned")
	}
}

// TestNewPlan checks that a plan of many files, which do not stay in memory, gives the bytes that
// the inventory in memory gives, and names each added file's content.
func TestNewPlan(t *testing.T) {
	root := newRoot(t, newStore(t))
	space := root.Spill()
	defer space.Close()
	folder := strings.Repeat("a folder with a long name/", 8)
	var many []ocfl.File
	for i := range 8_000 {
		f := named(fmt.Sprintf("%s%05d", folder, i*7919%8_000), fmt.Sprint(i%6_000)) // not in order, and some are equal
		f.Extra = []byte(f.Path + "!")
		many = append(many, f)
	}
	base := newObject(t, "ark:/99999/many")
	for n, change := range []ocfl.Change{
		{Files: ocfl.Files(many)},
		{Files: ocfl.Files(many[:9]), Delete: []string{many[12].Path}, Drop: func(path string) bool { return path == many[11].Path }},
		{Files: ocfl.Files([]ocfl.File{named("new", "new"), named("again", "3"), named(many[0].Path, "other")})},
		{Files: ocfl.Files(many[:5]), Whole: true},
	} {
		change.Message, change.User, change.Created = "m", &user, created(n)
		prior, err := ocfl.NoPrior(base.ID, base.Algorithm, ocfl.Spec11)
		if n > 0 {
			prior = putInventory(t, root, base)
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := ocfl.NewPlan(t.Context(), prior, change, space)
		if n == 1 {
			// Files that are there are no change, but the other two are.
			if err != nil || p.Files() != len(many)-2 {
				t.Fatalf("%v, %+v", err, p)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.Encode(t.Context(), &text); err != nil {
			t.Fatal(err)
		}
		next, err := ocfl.ReadInventory(bytes.NewReader(text.Bytes()), "planned")
		if err != nil {
			t.Fatal(err)
		}
		if encode(t, next) != text.String() {
			t.Fatalf("version %d: the plan's text is not the inventory's", n+1)
		}
		if p.Files() != len(next.State(0)) {
			t.Errorf("version %d has %d files, want %d", n+1, p.Files(), len(next.State(0)))
		}
		var last string
		var stored []string
		for f, err := range p.Added() {
			if err != nil {
				t.Fatal(err)
			}
			at, ok := next.Lookup(0, f.Path)
			if !ok || f.Path <= last || !slices.Contains(next.ContentPaths(at.Digest), f.Content) {
				t.Errorf("version %d: %q at %q after %q", n+1, f.Path, f.Content, last)
			}
			if extra := string(f.Extra); extra != "" && extra != f.Path+"!" {
				t.Errorf("%q has %q", f.Path, extra)
			}
			if last = f.Path; f.New {
				stored = append(stored, f.Content)
			}
		}
		var want []string
		for _, f := range next.ContentFiles() {
			want = append(want, f.Path)
		}
		slices.Sort(stored)
		if !slices.Equal(stored, want) {
			t.Errorf("version %d stores %d files, want %d", n+1, len(stored), len(want))
		}
		base = next
	}
}

// putInventory stores an inventory as that of an object's newest version, and returns that version.
func putInventory(t *testing.T, root *ocfl.Root, inv *ocfl.Inventory) ocfl.Prior {
	t.Helper()
	folder, err := root.ObjectKey(inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{folder, fmt.Sprintf("%s/v%d", folder, inv.Head())} {
		for name, text := range map[string]string{
			"inventory.json": encode(t, inv), "inventory.json." + inv.Algorithm: inventoryDigest(t, inv) + " inventory.json\n",
		} {
			if err := root.Store().Replace(t.Context(), folder+"/"+name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	prior, err := root.Prior(t.Context(), inv.ID, inv.Head())
	if err != nil {
		t.Fatal(err)
	}
	return prior
}

// TestNewPlan_DamagedPrior checks that nothing is planned after an inventory that is not what its
// sidecar says, or changes before its versions are copied, or lacks the content of a file.
func TestNewPlan_DamagedPrior(t *testing.T) {
	root := newRoot(t, newStore(t))
	space := root.Spill()
	defer space.Close()
	one, _ := plan(t, newObject(t, "ark:/99999/prior"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{named("a", "1")})})
	change := ocfl.Change{Message: "2", Created: created(2), Files: ocfl.Files([]ocfl.File{named("b", "2")})}
	prior := putInventory(t, root, one)
	p, err := ocfl.NewPlan(t.Context(), prior, change, space)
	if err != nil {
		t.Fatal(err)
	}
	folder, _ := root.ObjectKey(one.ID)
	other := strings.Replace(encode(t, one), "v1/content/a", "v1/content/x", 1)
	if err := root.Store().Replace(t.Context(), folder+"/v1/inventory.json", []byte(other)); err != nil {
		t.Fatal(err)
	}
	var wrong *ocfl.DigestError
	if err := p.Encode(t.Context(), new(bytes.Buffer)); !errors.As(err, &wrong) || !wrong.Existing {
		t.Errorf("encode after the inventory changed: %v, want a DigestError", err)
	}
	if _, err := ocfl.NewPlan(t.Context(), prior, change, space); !errors.As(err, &wrong) || !wrong.Existing {
		t.Errorf("plan after a wrong inventory: %v, want a DigestError", err)
	}
	lacking := *one
	lacking.Manifest = nil
	var invalid *ocfl.InventoryError
	if _, err := ocfl.NewPlan(t.Context(), putInventory(t, root, &lacking), change, space); !errors.As(err, &invalid) {
		t.Errorf("plan after an inventory without content: %v, want an InventoryError", err)
	}
	if _, err := root.Prior(t.Context(), one.ID, 2); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("a version that is not there: %v", err)
	}
	if err := root.Store().Delete(t.Context(), folder+"/v1/inventory.json"); err != nil {
		t.Fatal(err)
	}
	putRoot := putInventory(t, root, one)
	if err := root.Store().Delete(t.Context(), folder+"/v1/inventory.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := ocfl.NewPlan(t.Context(), putRoot, change, space); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("plan after the inventory is gone: %v", err)
	}
	if prior, err = root.Prior(t.Context(), one.ID, 1); err == nil {
		_, err = ocfl.NewPlan(t.Context(), prior, change, space)
	}
	if err != nil {
		t.Errorf("the inventory in the root is not used: %v", err)
	}
}
