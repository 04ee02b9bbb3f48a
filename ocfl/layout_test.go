package ocfl_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// TestLayouts has the examples of extensions 0002, 0003, 0004, 0006 and 0007.
func TestLayouts(t *testing.T) {
	md5 := ocfl.NewHashedNTuple()
	md5.DigestAlgorithm, md5.TupleSize, md5.NumberOfTuples, md5.ShortObjectRoot = "md5", 2, 15, true
	noTuples := ocfl.NewHashAndID()
	noTuples.TupleSize, noTuples.NumberOfTuples = 0, 0
	reversed := ocfl.NewNTupleOmitPrefix(":")
	reversed.TupleSize, reversed.NumberOfTuples, reversed.ReverseObjectRoot = 4, 2, true
	padded := ocfl.NewNTupleOmitPrefix("edu/")
	padded.ZeroPadding = "right"
	dotted := ocfl.NewNTupleOmitPrefix("edu/")
	dotted.TupleSize, dotted.ZeroPadding = 1, "right"
	flat := ocfl.NewHashedNTuple()
	flat.TupleSize, flat.NumberOfTuples = 0, 0
	for _, test := range []struct {
		layout   ocfl.Layout
		id, want string
	}{
		{ocfl.NewHashedNTuple(), "object-01", "3c0/ff4/240/3c0ff4240c1e116dba14c7627f2319b58aa3d77606d0d90dfc6161608ac987d4"},
		{ocfl.NewHashedNTuple(), "..hor/rib:le-$id", "487/326/d8c/487326d8c2a3c0b885e23da1469b4d6671fd4e76978924b4443e9e3c316cda6d"},
		{md5, "object-01", "ff/75/53/44/92/48/5e/ab/b3/9f/86/35/67/28/88/4e"},
		{md5, "..hor/rib:le-$id", "08/31/97/66/fb/6c/29/35/dd/17/5b/94/26/77/17/e0"},
		{flat, "object-01", "3c0ff4240c1e116dba14c7627f2319b58aa3d77606d0d90dfc6161608ac987d4"},
		{flat, "..hor/rib:le-$id", "487326d8c2a3c0b885e23da1469b4d6671fd4e76978924b4443e9e3c316cda6d"},
		{ocfl.NewFlatOmitPrefix(":"), "namespace:12887296", "12887296"},
		{ocfl.NewFlatOmitPrefix(":"), "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66", "6e8bc430-9c3a-11d9-9669-0800200c9a66"},
		{ocfl.NewFlatOmitPrefix("EDU/"), "https://institution.edu/3448793", "3448793"},
		{ocfl.NewFlatOmitPrefix("edu/"), "https://institution.edu/abc/edu/f8.05v", "f8.05v"},
		{ocfl.NewFlatOmitPrefix(":"), "no-prefix", "no-prefix"},
		{ocfl.NewFlatOmitPrefix("info:"), "info:fedora/object-01", ""},
		{ocfl.NewFlatOmitPrefix("info:"), "https://example.org/info:/12345/x54xz321/s3/f8.05v", ""},
		{ocfl.NewFlatOmitPrefix(":"), "a:", ""},
		{ocfl.NewFlatOmitPrefix(":"), "a:..", ""},
		{ocfl.NewFlatOmitPrefix(":"), "a:extensions", ""},
		{ocfl.NewFlatOmitPrefix(":"), "a:ocfl_layout.json", ""},
		{ocfl.NewFlatOmitPrefix(":"), "a:0=ocfl_1.1", ""},
		{ocfl.NewFlatOmitPrefix(":"), "a:" + strings.Repeat("x", 256), ""},
		{ocfl.NewFlatOmitPrefix("/"), "ark:/99999/fk4abc", "fk4abc"},
		{ocfl.NewFlatDirect(), "object-01", "object-01"},
		{ocfl.NewFlatDirect(), "..hor_rib:lé-$id", "..hor_rib:lé-$id"},
		{ocfl.NewFlatDirect(), "info:fedora/object-01", ""},
		{ocfl.NewHashAndID(), "object-01", "3c0/ff4/240/object-01"},
		{ocfl.NewHashAndID(), "..hor/rib:le-$id", "487/326/d8c/%2e%2ehor%2frib%3ale-%24id"},
		{ocfl.NewHashAndID(), strings.Repeat("abcdefghij", 10) + "a", "5cc/73e/648/" + strings.Repeat("abcdefghij", 10) + "-5cc73e648fbcff136510e330871180922ddacf193b68fdeff855683a01464220"},
		{noTuples, "..Hor/rib:lè-$id", "%2e%2eHor%2frib%3al%c3%a8-%24id"},
		{reversed, "namespace:12887296", "6927/8821/12887296"},
		{reversed, "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66", "66a9/c002/6e8bc430-9c3a-11d9-9669-0800200c9a66"},
		{reversed, "abc123", "321c/ba00/abc123"},
		{padded, "https://institution.edu/3448793", "344/879/300/3448793"},
		{padded, "https://institution.edu/abc/edu/f8.05v", "f8./05v/000/f8.05v"},
		{padded, "https://institution.edu/", ""},
		{padded, "https://institution.edu/é", ""},
		{dotted, "https://institution.edu/.x", ""},
	} {
		got, err := test.layout.Path(test.id)
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s of %q = %q, %v, want %q", test.layout.Name(), test.id, got, err, test.want)
		}
	}
	for _, bad := range []ocfl.HashedNTuple{
		{DigestAlgorithm: "x", TupleSize: 3, NumberOfTuples: 3},
		{DigestAlgorithm: "md5", TupleSize: 33, NumberOfTuples: 1},
		{DigestAlgorithm: "md5", TupleSize: 0, NumberOfTuples: 1},
		{DigestAlgorithm: "md5", TupleSize: 8, NumberOfTuples: 5},
		{DigestAlgorithm: "md5", TupleSize: 8, NumberOfTuples: 4, ShortObjectRoot: true},
		{DigestAlgorithm: "md5", TupleSize: -1, NumberOfTuples: -1},
	} {
		if err := bad.Check(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// TestParseLayout checks that a setting names the extension and its parameters, and that impossible
// ones are refused.
func TestParseLayout(t *testing.T) {
	t.Parallel()
	md5 := ocfl.NewHashedNTuple()
	md5.DigestAlgorithm, md5.TupleSize, md5.NumberOfTuples, md5.ShortObjectRoot = "md5", 2, 15, true
	reversed := ocfl.NewNTupleOmitPrefix(":")
	reversed.TupleSize, reversed.NumberOfTuples, reversed.ReverseObjectRoot = 4, 2, true
	padded := ocfl.NewNTupleOmitPrefix("edu/")
	padded.ZeroPadding = "right"
	for text, want := range map[string]ocfl.Layout{
		"0004":                               ocfl.NewHashedNTuple(),
		"0004-hashed-n-tuple-storage-layout": ocfl.NewHashedNTuple(),
		"0004,digestAlgorithm=md5,tupleSize=2,numberOfTuples=15,shortObjectRoot=true": md5,
		"0006,delimiter=:": ocfl.NewFlatOmitPrefix(":"),
		"0006-flat-omit-prefix-storage-layout,delimiter=edu/": ocfl.NewFlatOmitPrefix("edu/"),
		"0006,delimiter==":                      ocfl.NewFlatOmitPrefix("="),
		"0002":                                  ocfl.NewFlatDirect(),
		"0003":                                  ocfl.NewHashAndID(),
		"0007,delimiter=edu/,zeroPadding=right": padded,
		"0007,delimiter=:,tupleSize=4,numberOfTuples=2,reverseObjectRoot=true": reversed,
	} {
		if got, err := ocfl.ParseLayout(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0001", "0006", "0007", "0007,delimiter=:,zeroPadding=x", "0007,delimiter=:,tupleSize=0", "0003,tupleSize=0", "0002,delimiter=:", "0006,delimiter=", "0006,delimiter", "0006,delimiter=a,delimiter=b", "0004,tupleSize=x", "0004,tupleSize=99",
		"0004,delimiter=:", "0004,extensionName=x", "0004,tupleSize=3.5", "0004,", "0004,digestAlgorithm=crc32", "0004,shortObjectRoot=1",
	} {
		if got, err := ocfl.ParseLayout(text); !errors.Is(err, ocfl.ErrLayout) {
			t.Errorf("%q = %+v, %v, want ErrLayout", text, got, err)
		}
	}
}

// TestOpenRoot_Foreign opens roots made by other programs. A root that contradicts itself or has an
// unknown layout or specification is refused.
func TestOpenRoot_Foreign(t *testing.T) {
	t.Parallel()
	const flat = "0006-flat-omit-prefix-storage-layout"
	for name, test := range map[string]struct {
		files map[string]string
		want  string // folder of "x:y", or empty for ErrLayout
	}{
		"no layout":       {map[string]string{"0=ocfl_1.1": "ocfl_1.1\n"}, ""},
		"1.0":             {map[string]string{"0=ocfl_1.0": "ocfl_1.0\n", "ocfl_layout.json": `{"extension": "0002-flat-direct-storage-layout"}`}, "x:y"},
		"1.0, no layout":  {map[string]string{"0=ocfl_1.0": "ocfl_1.0\n"}, ""},
		"default":         {map[string]string{"ocfl_layout.json": `{"extension": "0004-hashed-n-tuple-storage-layout"}`}, placeOf(t, "x:y")},
		"unknown":         {map[string]string{"ocfl_layout.json": `{"extension": "0011-direct-clean-path-layout"}`}, ""},
		"no parameter":    {map[string]string{"ocfl_layout.json": `{"extension": "` + flat + `"}`}, ""},
		"with more to it": {map[string]string{"ocfl_layout.json": `{"extension": "` + flat + `"}`, "extensions/" + flat + "/config.json": `{"extensionName": "` + flat + `", "delimiter": ":", "note": 1}`}, "y"},
		"contradiction":   {map[string]string{"ocfl_layout.json": `{"extension": "` + flat + `"}`, "extensions/" + flat + "/config.json": `{"extensionName": "0004-hashed-n-tuple-storage-layout", "delimiter": ":"}`}, ""},
		"no JSON":         {map[string]string{"ocfl_layout.json": `{`}, ""},
	} {
		store := storagetest.NewMemory()
		if test.files["0=ocfl_1.0"] == "" {
			test.files["0=ocfl_1.1"] = "ocfl_1.1\n"
		}
		for key, text := range test.files {
			if _, err := storage.Put(t.Context(), store, key, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
		if test.want == "" {
			if !errors.Is(err, ocfl.ErrLayout) {
				t.Errorf("%s: err = %v, want ErrLayout", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if key, err := root.ObjectKey("x:y"); key != test.want || err != nil {
			t.Errorf("%s: key = %q, %v, want %q", name, key, err, test.want)
		}
	}
}

func TestOpenRoot(t *testing.T) {
	ctx := t.Context()
	store := newStore(t)
	if _, err := ocfl.OpenRoot(ctx, store, "root", ocfl.NewFlatOmitPrefix(":")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"root/0=ocfl_1.1", "root/extensions/0006-flat-omit-prefix-storage-layout/config.json", "root/ocfl_layout.json",
	}
	var got []string
	for info, err := range store.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("root has %q, want %q", got, want)
	}
	for _, layout := range []ocfl.Layout{nil, ocfl.NewFlatOmitPrefix(":")} {
		root, err := ocfl.OpenRoot(ctx, store, "root", layout)
		if err != nil {
			t.Fatalf("open again with %v: %v", layout, err)
		}
		if key, err := root.ObjectKey("x:y"); key != "root/y" || err != nil {
			t.Errorf("key = %q, %v", key, err)
		}
	}
	for _, layout := range []ocfl.Layout{ocfl.NewHashedNTuple(), ocfl.NewFlatOmitPrefix("/")} {
		if _, err := ocfl.OpenRoot(ctx, store, "root", layout); !errors.Is(err, ocfl.ErrLayout) {
			t.Errorf("open with another layout: err = %v, want ErrLayout", err)
		}
	}
	if _, err := storage.Put(ctx, store, "full/of/things", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ocfl.OpenRoot(ctx, store, "full", nil); !errors.Is(err, ocfl.ErrLayout) {
		t.Errorf("open a folder of other things: err = %v, want ErrLayout", err)
	}
	if _, err := ocfl.OpenRoot(ctx, store, "..", nil); err == nil {
		t.Error("opened a root outside the store")
	}
	if _, err := ocfl.OpenRoot(ctx, store, "bad", ocfl.NewFlatOmitPrefix("")); err == nil {
		t.Error("made a root with a layout that cannot be")
	}
}

// TestRootMadeHalf: making a root is killed at every operation and done again. overtaken is a store
// in which somebody else makes the root just after we have found that there is none.
type overtaken struct {
	storage.Store
	meanwhile func()
}

func (o *overtaken) Stat(ctx context.Context, key string) (storage.Info, error) {
	info, err := o.Store.Stat(ctx, key)
	if do := o.meanwhile; do != nil {
		o.meanwhile = nil
		do()
	}
	return info, err
}

// TestOpenRoot_Overtaken checks that processes that start at the same time on an empty folder make
// one root.
func TestOpenRoot_Overtaken(t *testing.T) {
	store := newStore(t)
	late := &overtaken{Store: store, meanwhile: func() {
		if _, err := ocfl.OpenRoot(t.Context(), store, "", ocfl.NewFlatOmitPrefix(":")); err != nil {
			t.Error(err)
		}
	}}
	root, err := ocfl.OpenRoot(t.Context(), late, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := root.ObjectKey("x:y"); key != "y" || err != nil {
		t.Errorf("key = %q, %v, want that of the layout of whoever was first", key, err)
	}
}

func TestRootMadeHalf(t *testing.T) {
	for n := 1; ; n++ {
		faulty := storagetest.NewFaulty(storagetest.NewMemory())
		faulty.DieAt(n)
		_, err := ocfl.OpenRoot(t.Context(), faulty, "", nil)
		faulty.Heal()
		if _, again := ocfl.OpenRoot(t.Context(), faulty, "", nil); again != nil {
			t.Fatalf("open after a kill at operation %d: %v", n, again)
		}
		if err == nil {
			break
		}
	}
}

// TestIDTaken checks that a second identifier that layout 0006 maps to the same folder is refused.
func TestIDTaken(t *testing.T) {
	store := storagetest.NewMemory()
	root, err := ocfl.OpenRoot(t.Context(), store, "", ocfl.NewFlatOmitPrefix(":"))
	if err != nil {
		t.Fatal(err)
	}
	stage := staging{storagetest.NewMemory()}
	first, _ := plan(t, newObject(t, "a:x"), ocfl.Change{Message: "m", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "f", "f")})})
	commit(t, root, first, stage)
	other, _ := plan(t, newObject(t, "b:x"), ocfl.Change{Message: "m", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "g", "g")})})
	if err := root.Commit(t.Context(), other, stage.source, ocfl.CommitOptions{}); !errors.Is(err, ocfl.ErrIDTaken) {
		t.Errorf("commit: err = %v, want ErrIDTaken", err)
	}
	for _, err := range []error{
		errOf(root.Head(t.Context(), "b:x")), errOf(root.Inventory(t.Context(), "b:x", 0)),
		root.Abandon(t.Context(), "b:x", 1, "sha512", "", nil),
	} {
		if !errors.Is(err, ocfl.ErrIDTaken) {
			t.Errorf("err = %v, want ErrIDTaken", err)
		}
	}
	report, err := root.Verify(t.Context(), "b:x", ocfl.ValidateOptions{})
	if err != nil || !slices.Contains(report.Codes(), "E083") {
		t.Errorf("verify = %+v, %v, want E083", report, err)
	}
	// Neither the other identifier nor one without a folder can be here, and so nothing of theirs is removed.
	for _, id := range []string{"b:x", "b:x/y"} {
		if err := errors.Join(root.Remove(t.Context(), id), root.Bury(t.Context(), id, "ark:/99999/"+id, []byte("gone"))); err != nil {
			t.Errorf("remove and bury %s: %v", id, err)
		}
		if text, err := root.Tombstone(t.Context(), "ark:/99999/"+id); string(text) != "gone" {
			t.Errorf("tombstone of %s: %q, %v", id, text, err)
		}
	}
	if _, err := root.Head(t.Context(), "b:x/y"); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("an identifier without a folder: err = %v, want ErrNotFound", err)
	}
	wantValid(t, root, "a:x")
}
