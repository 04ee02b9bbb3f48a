package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/storage"
)

// filesAtATime is how many files are requested at a time.
const filesAtATime = 500

// replicas reads a version's files from its replicas.
type replicas struct {
	registry registry.Inventory
	object   registry.Object
	version  int
	roots    []ocfl.Named // that have the version, the nearest first
	folders  []string     // of the object in each root
	reader   *replica.Reader
}

// findReplicas finds the storages that have a version.
func (w *Restorer) findReplicas(o registry.Object, version int) (*replicas, error) {
	s := &replicas{registry: w.Registry, object: o, version: version}
	s.reader = &replica.Reader{Source: s}
	var unknown []error
	for _, v := range o.Versions {
		if v.Version != version {
			continue
		}
		for _, at := range v.Replicas {
			root, err := w.Objects.Of(at.Storage)
			if err != nil {
				unknown = append(unknown, err)
				continue
			}
			s.roots = append(s.roots, root)
		}
	}
	if len(s.roots) == 0 {
		return nil, fmt.Errorf("version %d of %s is in no storage that this worker knows; name its storage in HOLDFAST_STORAGE_URL: %w",
			version, o.ID, errors.Join(append(unknown, ocfl.ErrUnknownRoot)...))
	}
	// In the order of the worker's configuration.
	place := func(n ocfl.Named) int {
		return slices.IndexFunc(w.Objects, func(m ocfl.Named) bool { return m.Name == n.Name })
	}
	slices.SortFunc(s.roots, func(a, b ocfl.Named) int { return place(a) - place(b) })
	for _, root := range s.roots {
		folder, err := root.ObjectKey(o.Stored())
		if err != nil {
			return nil, fmt.Errorf("find %s in storage %q: %w", o.ID, root.Name, err)
		}
		s.folders = append(s.folders, folder)
	}
	return s, nil
}

// files is the version's export.List.
func (s *replicas) files(ctx context.Context, after string) ([]registry.File, error) {
	return s.registry.Files(ctx, s.object.ID, s.version, after, filesAtATime)
}

// Open implements replica.Source.
func (s *replicas) Open(ctx context.Context, f registry.File, offset int64, not []string) (io.ReadCloser, string, error) {
	i := slices.IndexFunc(s.roots, func(n ocfl.Named) bool { return !slices.Contains(not, n.Name) })
	if i < 0 {
		return nil, "", replica.ErrNowhere
	}
	root := s.roots[i]
	body, err := root.Store().Open(ctx, s.key(i, f), offset, -1)
	if errors.Is(err, storage.ErrNotFound) {
		if gone := root.Present(ctx); gone != nil {
			return nil, root.Name, gone
		}
	}
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrRange) {
		err = fmt.Errorf("%w: %w", replica.ErrDamaged, err)
	}
	return body, root.Name, err
}

func (s *replicas) key(root int, f registry.File) string {
	return s.folders[root] + "/" + f.ContentPath
}

// unreadable returns the verdict if a file cannot be read. The restore fails for good if no storage
// has the file right, or if the object was deleted.
func (s *replicas) unreadable(ctx context.Context, err error) error {
	nowhere := new(replica.NowhereError)
	if !errors.As(err, &nowhere) || !errors.Is(nowhere, replica.ErrDamaged) {
		return err
	}
	if o, err := s.registry.Object(ctx, s.object.ID); err != nil {
		return err
	} else if o.Gone != "" {
		return base.Content(fmt.Errorf("object %s was deleted meanwhile: %s", o.ID, o.Deletion.Text()))
	}
	var where []string
	for _, f := range nowhere.Found {
		where = append(where, f.Storage+" "+f.What)
	}
	return base.Fatal(fmt.Errorf("%s of %s, version %d, is damaged or missing in every storage (%s); restore it from another copy, "+
		"check it with `holdfast object fixity`, then requeue this restore", nowhere.Path, s.object.ID, s.version, strings.Join(where, ", ")))
}

// findings describes for people what was wrong in which storage; "" if nothing was.
func (s *replicas) findings() string {
	const most = 10
	var out []string
	for _, f := range s.reader.Findings() {
		out = append(out, fmt.Sprintf("%s in %s: %s", f.Path, f.Storage, f.What))
	}
	if len(out) == 0 {
		return ""
	}
	more := ""
	if len(out) > most {
		more = fmt.Sprintf(" and %d more", len(out)-most)
	}
	return "; found on the way: " + strings.Join(out[:min(most, len(out))], ", ") + more
}
