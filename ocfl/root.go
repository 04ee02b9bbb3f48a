package ocfl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"path"
	"strings"

	"github.com/holdfast/holdfast/spill"
	"github.com/holdfast/holdfast/storage"
)

// Root is an OCFL storage root: a folder of a store in which a layout places objects. Its methods
// may be called concurrently. Writers of the same object need a lock around planning and Commit;
// otherwise one of them gets ErrVersionExists.
type Root struct {
	// TempDir is the folder of temporary files; "" is os.TempDir. Set it before the first use.
	TempDir string

	store  storage.Store
	prefix string // empty or ends in a slash
	layout Layout
	spec   string // that it declares
}

// maxSmall bounds the declarations, layout files and sidecars that are read as a whole, in bytes.
const maxSmall = 1 << 16

// HasRoot reports whether there is a storage root in the folder prefix of store.
func HasRoot(ctx context.Context, store storage.Store, prefix string) (bool, error) {
	spec, err := specOf(ctx, store, path.Join(prefix, rootPrefix))
	return spec != "", err
}

// specOf returns the newest version of the specification that a root declares, given how the keys of its
// declarations begin; "" for none.
func specOf(ctx context.Context, store storage.Store, prefix string) (string, error) {
	for _, spec := range []string{Spec11, Spec10} {
		_, err := store.Stat(ctx, prefix+spec)
		if err == nil {
			return spec, nil
		} else if !errors.Is(err, storage.ErrNotFound) {
			return "", err
		}
	}
	return "", nil
}

// OpenRoot opens the storage root in the folder prefix of store; "" means the whole store. If the
// folder is empty it creates a root. It completes a root whose creation was interrupted.
//
// A nil layout accepts any layout; a new root then gets NewHashedNTuple. It returns ErrLayout if
// the root has another layout, or if the folder holds something else.
func OpenRoot(ctx context.Context, store storage.Store, prefix string, layout Layout) (*Root, error) {
	if prefix != "" {
		if err := storage.CheckKey(prefix); err != nil {
			return nil, fmt.Errorf("open storage root: %w", err)
		}
		prefix += "/"
	}
	r := &Root{store: store, prefix: prefix, layout: layout}
	var err error
	r.spec, err = specOf(ctx, store, prefix+rootPrefix)
	switch {
	case err != nil:
	case r.spec == "":
		r.spec = Spec11
		err = r.create(ctx)
	default:
		err = errors.Join(r.load(ctx), storage.Rely(ctx, store, r.declarationKey()))
	}
	if err != nil {
		return nil, fmt.Errorf("open storage root %q: %w", strings.TrimSuffix(prefix, "/"), err)
	}
	return r, nil
}

// declarationKey returns the key of the root's declaration.
func (r *Root) declarationKey() string { return r.prefix + rootPrefix + r.spec }

// Spec returns the version of the specification that the root declares. No object in it may declare a
// later one.
func (r *Root) Spec() string { return r.spec }

// layoutFile is ocfl_layout.json.
type layoutFile struct {
	Extension   string `json:"extension"`
	Description string `json:"description"`
}

// create writes the files of a new root. The declaration comes last: without it there is no root.
func (r *Root) create(ctx context.Context) error {
	for info, err := range r.store.List(ctx, r.prefix) {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(info.Key, r.prefix)
		if name != layoutName && !strings.HasPrefix(name, extensionsFolder+"/") {
			// Another process may have created the root since we looked for its declaration.
			if _, err := r.store.Stat(ctx, r.declarationKey()); err == nil {
				return r.load(ctx)
			}
			return fmt.Errorf("%w: no declaration, and it holds %q", ErrLayout, name)
		}
	}
	if r.layout == nil {
		r.layout = NewHashedNTuple()
	}
	if err := r.layout.Check(); err != nil {
		return err
	}
	config, err := json.MarshalIndent(r.layout, "", "  ")
	if err != nil {
		return fmt.Errorf("encode layout: %w", err)
	}
	description, err := json.MarshalIndent(layoutFile{Extension: r.layout.Name(), Description: r.layout.description()}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode layout: %w", err)
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{r.configName(r.layout), append(config, '\n')},
		{layoutName, append(description, '\n')},
		{rootPrefix + Spec11, []byte("ocfl_" + Spec11 + "\n")},
	} {
		if err := putSame(ctx, r.store, r.prefix+f.name, f.content); err != nil {
			return err
		}
	}
	return nil
}

// load reads the layout of an existing root and compares it with the requested one.
func (r *Root) load(ctx context.Context) error {
	data, err := storage.ReadAll(ctx, r.store, r.prefix+layoutName, maxSmall)
	if errors.Is(err, storage.ErrNotFound) {
		if r.layout == nil {
			return fmt.Errorf("%w: it has no %s, and no layout was given", ErrLayout, layoutName)
		}
		return nil // use the given layout
	}
	if err != nil {
		return err
	}
	var file layoutFile
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrLayout, layoutName, err)
	}
	config, err := storage.ReadAll(ctx, r.store, r.prefix+extensionsFolder+"/"+file.Extension+"/config.json", maxSmall)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	found, err := parseLayout(file.Extension, config)
	if err != nil {
		return err
	}
	if r.layout != nil {
		want, errWant := json.Marshal(r.layout)
		have, errHave := json.Marshal(found)
		if err := errors.Join(errWant, errHave); err != nil {
			return fmt.Errorf("encode layout: %w", err)
		}
		if !bytes.Equal(want, have) {
			return fmt.Errorf("%w: layout %s, want %s", ErrLayout, have, want)
		}
	}
	r.layout = found
	return nil
}

func (r *Root) configName(layout Layout) string {
	return path.Join(extensionsFolder, layout.Name(), "config.json")
}

// putSame creates an object, or checks that it exists with the same content.
func putSame(ctx context.Context, store storage.Store, key string, content []byte) error {
	_, err := storage.Put(ctx, store, key, content)
	if !errors.Is(err, storage.ErrExists) {
		return err
	}
	return holdsSame(ctx, store, key, content)
}

// holdsSame returns nil if a small object has this content, ErrLayout if it has another one, and
// storage.ErrNotFound if there is none.
func holdsSame(ctx context.Context, store storage.Store, key string, content []byte) error {
	have, err := storage.ReadAll(ctx, store, key, max(maxSmall, int64(len(content))))
	if err != nil {
		return err
	}
	if !bytes.Equal(have, content) {
		return fmt.Errorf("%w: %q holds other bytes", ErrLayout, key)
	}
	return nil
}

// Spill returns a new Space for lists of files, in TempDir. The caller closes it.
func (r *Root) Spill() *spill.Space { return spill.NewSpace(r.TempDir, math.MaxInt64) }

// Through returns the same root whose files are read through another store, such as a slower one.
func (r *Root) Through(s storage.Store) *Root {
	other := *r
	other.store = s
	return &other
}

// Store returns the store that the root is in.
func (r *Root) Store() storage.Store { return r.store }

// Layout returns the layout of the root.
func (r *Root) Layout() Layout { return r.layout }

// ObjectKey returns the folder of the object id in the store, whether or not the object exists.
func (r *Root) ObjectKey(id string) (string, error) {
	folder, err := r.layout.Path(id)
	if err != nil {
		return "", err
	}
	return r.prefix + folder, nil
}

// Object is the description of an object in its root inventory.
type Object struct {
	ID        string
	Spec      string // version of the specification
	Algorithm string
	Head      int
	Key       string // its folder in the store

	padding int
}

// InPlace reports whether an object lies where the layout has it. Some layouts have one folder for several
// identifiers.
func (r *Root) InPlace(o Object) bool {
	folder, err := r.ObjectKey(o.ID)
	return err == nil && folder == o.Key
}

// Padding returns to how many digits the numbers of the object's version folders are padded; 0: they are
// not.
func (o Object) Padding() int { return o.padding }

// VersionFolder returns the name of a version's folder in the object's.
func (o Object) VersionFolder(n int) string { return versionName(n, o.padding) }

// Objects yields the objects of the root in the order of their folders. It lists every file of the
// root, so use it to check a whole root, not to find an object. If the inventory of an object cannot be
// read, it yields the Key and the error, and goes on.
func (r *Root) Objects(ctx context.Context) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for folder, err := range r.Folders(ctx, "") {
			if err != nil {
				yield(Object{}, err)
				return
			}
			object, err := r.In(ctx, folder)
			if errors.Is(err, ErrNotFound) {
				continue // its first version is not committed yet
			}
			if !yield(object, err) {
				return
			}
		}
	}
}

// Folders yields the folders that are declared as objects, in their order, after the folder of an object; ""
// for all. It only lists the files of the root, so that callers can read several objects at once.
func (r *Root) Folders(ctx context.Context, after string) iter.Seq2[string, error] {
	if after != "" {
		after += "/" + objectPrefix + "~" // behind its declaration
	}
	return func(yield func(string, error) bool) {
		for info, err := range storage.ListAfter(ctx, r.store, r.prefix, after) {
			if err != nil {
				yield("", fmt.Errorf("list objects: %w", err))
				return
			}
			folder, name := path.Split(info.Key)
			rest := strings.TrimPrefix(info.Key, r.prefix)
			if !strings.HasPrefix(name, objectPrefix) || strings.HasPrefix(rest, extensionsFolder+"/") || inContent(rest) {
				continue
			}
			if !yield(strings.TrimSuffix(folder, "/"), nil) {
				return
			}
		}
	}
}

// inContent reports whether a path below the root lies in a version folder. A declaration there is
// content.
func inContent(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if _, _, ok := parseVersionName(part); ok {
			return true
		}
	}
	return false
}
