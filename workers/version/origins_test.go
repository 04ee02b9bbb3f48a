package version

import (
	"errors"
	"iter"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/spill"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/result"
)

// TestOrigins checks that content files are found in a list in any order, of which earlier programs
// give equal files an origin each, and that one without an origin is refused.
func TestOrigins(t *testing.T) {
	space := spill.NewSpace(t.TempDir(), 1<<20)
	defer space.Close()
	list := func(changes ...result.Planned) iter.Seq2[result.Planned, error] {
		return func(yield func(result.Planned, error) bool) {
			for _, e := range changes {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	o, err := originsOf(list(
		result.Planned{Content: "v2/content/c", Staged: "key c"},
		result.Planned{Content: "v2/content/a", Staged: "key a"},
		result.Planned{Content: "v1/content/z"}, // of an earlier version
		result.Planned{Content: "v2/content/a", Staged: "key of an equal file"},
		result.Planned{Content: "v2/content/b", Data: []byte("small")},
		result.Planned{Path: "gone", Deleted: true},
	), space)
	if err != nil {
		t.Fatal(err)
	}
	defer o.stop()
	for _, want := range []struct{ path, key, data string }{
		{path: "v2/content/a", key: "key a"},
		{path: "v2/content/aa"},
		{path: "v2/content/b", data: "small"},
		{path: "v2/content/c", key: "key c"},
		{path: "v2/content/d"},
	} {
		f := ocfl.ContentFile{Path: want.path}
		data, ok := o.data(f)
		if string(data) != want.data || ok != (want.data != "") {
			t.Errorf("the data of %s is %q, %t", want.path, data, ok)
		}
		key, err := o.staged(f)
		if key != want.key || (err == nil) != (want.key != "") {
			t.Errorf("%s is staged at %q, %v", want.path, key, err)
		}
	}
	_, err = originsOf(func(yield func(result.Planned, error) bool) { yield(result.Planned{}, storage.ErrNotFound) }, space)
	if !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a list that is gone: %v", err)
	}
}
