package workers_test

import (
	"errors"
	"maps"
	"path/filepath"
	"testing"

	outside "github.com/srerickson/ocfl-go"
	"github.com/srerickson/ocfl-go/fs/local"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
)

// validates has a validator of others read every byte of a storage. It must know no errors, and of warnings only
// that the evidence's extension is not in OCFL's registry (W013) and that inventories use sha256 (W004). It returns
// how many objects it met.
func validates(t *testing.T, folder string) (objects int) {
	t.Helper()
	files, err := local.NewFS(folder)
	must(t, err)
	root, err := outside.NewRoot(t.Context(), files, ".")
	must(t, err)
	for o, err := range root.Objects(t.Context()) {
		must(t, err)
		objects++
		found := root.ValidateObject(t.Context(), o.ID())
		if err := found.Err(); err != nil {
			t.Errorf("%s: %v", o.ID(), err)
		}
		warned := map[string]int{}
		for _, err := range found.WarnErrors() {
			var known *outside.ValidationError
			if !errors.As(err, &known) {
				t.Errorf("%s: warning %v", o.ID(), err)
				continue
			}
			warned[known.Code]++
		}
		inventories := 1 + o.Head().Num()
		if want := map[string]int{"W004": inventories, "W013": 1}; !maps.Equal(warned, want) {
			t.Errorf("%s: warnings %v, want %v: %v", o.ID(), warned, want, found.WarnErrors())
		}
	}
	return objects
}

// TestOutsideValidator: ocfl-go accepts objects with receipts, with segments, once these were merged, and a
// storage root with tombstones and checkpoints.
func TestOutsideValidator(t *testing.T) {
	t.Parallel()
	s := newSignedPair(t) // of one object with a segment, one without, and a deleted one; with checkpoints
	s.object = s.check
	for range 2 {
		s.pair.check(aContent)
		must(t, s.keeper(0).Make(t.Context()))
	}
	look := func(what string, segments int) {
		t.Helper()
		for name, folder := range map[string]string{first: "storage", second: "second"} {
			in, err := evidence.In(s.roots[name], s.check.ID, registry.Place{})
			must(t, err)
			files, err := in.List(t.Context())
			must(t, err)
			if objects := validates(t, filepath.Join(s.folder, folder)); objects != 2 || len(files.Segments) != segments {
				t.Errorf("%s: %d objects in %s, and %+v of the first", what, objects, name, files)
			}
		}
	}
	look("with segments", 3)
	s.complete(s.jobTo("pair", registry.Spec{
		Type: registry.FileType, Mode: registry.Update, URL: s.site.put("more", "more"), Filename: "more", PrimaryID: s.check.ID,
	}))
	for _, root := range s.roots {
		in, err := evidence.In(root, s.check.ID, registry.Place{})
		must(t, err)
		_, err = evidence.Merge(t.Context(), s.registry, registry.EvidencePlaces{}, s.registry.SignEvents, 2, in)
		must(t, err)
	}
	look("merged, and with another version", 1)
}
