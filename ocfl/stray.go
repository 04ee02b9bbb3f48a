package ocfl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"regexp"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// Found is a file below a storage root.
type Found struct {
	storage.Info
	Name string // below the root
	// Stray says that it belongs neither to an object nor to the root.
	Stray bool
}

// rootFile matches the files that may lie in a storage root (OCFL 1.1, 4.1 and 4.2): declarations,
// the layout, and texts of the specification and of extensions.
var rootFile = regexp.MustCompile(`^(0=ocfl_.*|ocfl_layout\.json|ocfl_(extensions_)?1\.[01]\.(txt|md|html|pdf)|\d{4}-[a-z0-9-]+\.md)$`)

// mostPlain bounds how many folders without an object a walk remembers.
const mostPlain = 10_000

// Walk yields the files of the root after the key after ("" for all) in the order of their keys,
// and marks those that belong to no object. Files below extensions belong to the root. Files in a
// version folder belong to an object that is being written, even if no version is committed: its
// next commit checks for foreign files. When Walk meets a folder first by a file other than a
// declaration, it asks the store about it. It remembers some of these folders.
func (r *Root) Walk(ctx context.Context, after string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		w := &strayWalk{Root: r, plain: map[string]bool{}}
		for info, err := range storage.ListAfter(ctx, r.store, r.prefix, after) {
			f := Found{Info: info, Name: strings.TrimPrefix(info.Key, r.prefix)}
			if err == nil {
				f.Stray, err = w.stray(ctx, f.Name)
			}
			if err != nil {
				yield(Found{}, fmt.Errorf("walk the storage root: %w", err))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// strayWalk is the state of a walk through a root.
type strayWalk struct {
	*Root
	object string          // folder of the last object, with a slash
	plain  map[string]bool // folders that belong to no object
}

func (w *strayWalk) stray(ctx context.Context, name string) (bool, error) {
	folder, base := path.Split(name)
	switch {
	case folder == "":
		return !rootFile.MatchString(base), nil
	case strings.HasPrefix(name, extensionsFolder+"/"), w.object != "" && strings.HasPrefix(name, w.object):
		return false, nil
	case strings.HasPrefix(base, objectPrefix) && !inContent(name):
		w.object = folder
		return false, nil
	}
	for i := range len(folder) {
		if folder[i] != '/' {
			continue
		}
		is, err := w.isObject(ctx, folder[:i+1])
		if err != nil {
			return false, err
		}
		if is {
			w.object = folder[:i+1]
			return false, nil
		}
	}
	return !inContent(name), nil
}

// isObject reports whether a folder, given with a slash, is that of an object, damaged or not.
func (w *strayWalk) isObject(ctx context.Context, folder string) (bool, error) {
	if w.plain[folder] {
		return false, nil
	}
	for _, name := range []string{objectPrefix + Spec11, objectPrefix + Spec10, inventoryName, "v1/" + inventoryName} {
		_, err := w.store.Stat(ctx, w.prefix+folder+name)
		if err == nil {
			return true, nil
		} else if !errors.Is(err, storage.ErrNotFound) {
			return false, err
		}
	}
	if len(w.plain) >= mostPlain {
		clear(w.plain)
	}
	w.plain[folder] = true
	return false, nil
}
