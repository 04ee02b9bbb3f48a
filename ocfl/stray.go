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
	// Stray: it belongs to no object, nor to the root.
	Stray bool
}

// rootFile are the names of files that may lie in a storage root (OCFL 1.1, 4.1 and 4.2): its
// declarations, its layout, and the texts of the specification and of extensions.
var rootFile = regexp.MustCompile(`^(0=ocfl_.*|ocfl_layout\.json|ocfl_(extensions_)?1\.[01]\.(txt|md|html|pdf)|\d{4}-[a-z0-9-]+\.md)$`)

// mostPlain bounds the folders that a walk remembers to be of no object.
const mostPlain = 10_000

// Walk yields the files of the root behind a key of the store, "" for all, in the order of their
// keys, and says which belong to no object. What lies below extensions is the root's. What lies in
// a folder of versions of which none is committed is an object's that is being written: its next
// commit looks for what is not its own. Walk asks the store about each folder that it first meets
// by something else than an object's declaration, and holds the names of some of them.
func (r *Root) Walk(ctx context.Context, after string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		w := &strayWalk{Root: r, plain: map[string]bool{}}
		for info, err := range storage.ListAfter(ctx, r.store, r.prefix, after) {
			f := Found{Info: info, Name: strings.TrimPrefix(info.Key, r.prefix)}
			if err == nil {
				f.Stray, err = w.stray(ctx, f.Name)
			}
			if err != nil {
				yield(Found{}, fmt.Errorf("look through the storage root: %w", err))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// strayWalk is how far a walk through a root is.
type strayWalk struct {
	*Root
	object string          // folder of the object that was met last, with a slash
	plain  map[string]bool // folders that are no object's
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

// isObject says whether a folder, named with a slash, is an object's, be it damaged.
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
