package workers

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
	"github.com/holdfast/holdfast/storage"
)

// condemned is how many whole readings of a file must come to other bytes before it counts as damaged where it was read: bytes can be sound
// at rest and wrong once on their way.
const condemned = 2

// copies gives the files of a version from whichever storage has them right. It is used by one goroutine.
type copies struct {
	registry registry.Consulting
	object   registry.Object
	version  int
	roots    []ocfl.Named // that have the version, the nearest first
	folders  []string     // of the object in each

	found   map[fileCopy]trouble
	reading *copyReader // the file that was opened last
}

// fileCopy names a file in a storage.
type fileCopy struct {
	path string
	root int
}

// trouble is what is wrong with a file in a storage.
type trouble struct {
	what    string // damaged, missing, archived, or what kept it from being read
	wrong   int    // readings that came to other bytes
	system  error  // it could not be read, which says nothing about it
	frozen  bool   // it can be read when it was thawed
	without bool   // there is no use in reading it again
}

// source finds out where a version is.
func (w *Restore) source(o registry.Object, version int) (*copies, error) {
	s := &copies{registry: w.Registry, object: o, version: version, found: map[fileCopy]trouble{}}
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
	// In the worker's own order, as they are configured.
	place := func(n ocfl.Named) int {
		return slices.IndexFunc(w.Objects, func(m ocfl.Named) bool { return m.Name == n.Name })
	}
	slices.SortFunc(s.roots, func(a, b ocfl.Named) int { return place(a) - place(b) })
	for _, root := range s.roots {
		folder, err := root.ObjectKey(o.ID)
		if err != nil {
			return nil, fmt.Errorf("find %s in storage %q: %w", o.ID, root.Name, err)
		}
		s.folders = append(s.folders, folder)
	}
	return s, nil
}

// Files implements parcel.Source.
func (s *copies) Files(ctx context.Context, after string) ([]registry.File, error) {
	return s.registry.Files(ctx, s.object.ID, s.version, after, filesAtATime)
}

// Open implements parcel.Source. It names no storage, since it sees itself to it which one is read: what is archived, and what was read wrong
// only once, has to be told apart from damage.
func (s *copies) Open(ctx context.Context, f registry.File, offset int64, _ []string) (_ io.ReadCloser, storage string, err error) {
	s.reading = &copyReader{ctx: ctx, from: s, file: f, at: offset, whole: offset == 0}
	if err := s.reading.next(); err != nil {
		return nil, "", err
	}
	return s.reading, "", nil
}

func (s *copies) key(root int, f registry.File) string { return s.folders[root] + "/" + f.ContentPath }

// note remembers what is wrong with a file in a storage.
func (s *copies) note(path string, root int, change func(*trouble)) {
	t := s.found[fileCopy{path, root}]
	change(&t)
	s.found[fileCopy{path, root}] = t
}

// again says, after the digests of the file that was read last were not those that were recorded, whether there is another way to read it.
func (s *copies) again() bool {
	r := s.reading
	if r == nil {
		return false
	}
	if len(r.used) == 1 && r.whole {
		s.note(r.file.Path, r.used[0], func(t *trouble) {
			if t.wrong++; t.wrong < condemned {
				t.what = "other bytes when it was read once"
				return
			}
			t.what, t.without = "damaged", true
		})
	}
	// Bytes of several storages, or of an earlier attempt, are nobody's fault yet: it is read once more as a whole.
	return true
}

// best is the storage to read a file from: of those that there is use in, the one that was wrong least often. ok is false when there is none.
func (s *copies) best(path string) (root int, ok bool) {
	root = -1
	for i := range s.roots {
		t := s.found[fileCopy{path, i}]
		if t.without || root >= 0 && t.wrong >= s.found[fileCopy{path, root}].wrong {
			continue
		}
		root = i
	}
	return root, root >= 0
}

// nowhere is the error for a file that cannot be read right anywhere.
func (s *copies) nowhere(ctx context.Context, path string) error {
	var system error
	frozen := false
	var parts []string
	for i, root := range s.roots {
		t := s.found[fileCopy{path, i}]
		parts = append(parts, root.Name+" "+t.what)
		frozen = frozen || t.frozen
		system = errors.Join(system, t.system)
	}
	text := strings.Join(parts, ", ")
	switch {
	case system != nil:
		return fmt.Errorf("%s can be read nowhere (%s): %w", path, text, system)
	case frozen:
		return fmt.Errorf("%s: %w (%s)", path, storage.ErrArchived, text)
	}
	if o, err := s.registry.Object(ctx, s.object.ID); err != nil {
		return err
	} else if o.Gone != "" {
		return base.Content(fmt.Errorf("object %s was deleted meanwhile: %s", o.ID, o.Deletion.Text()))
	}
	return base.Fatal(fmt.Errorf("%s of %s, version %d, is not what was recorded, in any storage (%s); bring it back from elsewhere, "+
		"see that `holdfast object fixity` finds it right, then requeue this restore", path, s.object.ID, s.version, text))
}

// findings says for people what was wrong in which storage, "" when nothing was.
func (s *copies) findings() string {
	const most = 10
	var out []string
	for at, t := range s.found {
		if t.what != "" {
			out = append(out, fmt.Sprintf("%s in %s: %s", at.path, s.roots[at.root].Name, t.what))
		}
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	more := ""
	if len(out) > most {
		more = fmt.Sprintf(" and %d more", len(out)-most)
	}
	return "; found on the way: " + strings.Join(out[:min(most, len(out))], ", ") + more
}

// copyReader reads a file, and goes on in another storage where one has no more of it.
type copyReader struct {
	ctx   context.Context //nolint:containedctx // a reader is one call of Open
	from  *copies
	file  registry.File
	at    int64
	whole bool  // it is read from its first byte on
	used  []int // storages that gave bytes
	root  int
	open  io.ReadCloser
}

// next opens the file in the best storage, where the one before has stopped.
func (r *copyReader) next() error {
	for {
		root, ok := r.from.best(r.file.Path)
		if !ok {
			return r.from.nowhere(r.ctx, r.file.Path)
		}
		in, err := r.from.roots[root].Store().Open(r.ctx, r.from.key(root, r.file), r.at, -1)
		if err == nil {
			r.root, r.open = root, in
			return nil
		}
		if err := r.refused(root, err); err != nil {
			return err
		}
	}
}

// refused notes why a storage gives nothing, or no more, of the file. An error is the end of ctx.
func (r *copyReader) refused(root int, err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if errors.Is(err, storage.ErrNotFound) {
		if gone := r.from.roots[root].Present(r.ctx); gone != nil {
			err = gone
		}
	}
	r.from.note(r.file.Path, root, func(t *trouble) {
		t.without = true
		switch {
		case errors.Is(err, storage.ErrArchived):
			t.what, t.frozen = "archived", true
		case errors.Is(err, storage.ErrRange), errors.Is(err, io.ErrUnexpectedEOF):
			t.what = "short"
		case errors.Is(err, storage.ErrNotFound):
			t.what = "missing"
		default:
			t.what, t.system = "not to be read", err
		}
	})
	return nil
}

// Read implements io.Reader.
func (r *copyReader) Read(p []byte) (int, error) {
	for {
		if r.at == r.file.SizeBytes {
			return 0, io.EOF
		}
		n, err := r.open.Read(p[:min(int64(len(p)), r.file.SizeBytes-r.at)])
		r.at += int64(n)
		if n > 0 {
			if !slices.Contains(r.used, r.root) {
				r.used = append(r.used, r.root)
			}
			return n, nil // what is wrong shows again with the next read
		}
		if err == nil {
			return 0, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		_ = r.open.Close()
		if err := r.refused(r.root, err); err != nil {
			return 0, err
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
}

// Close implements io.Closer.
func (r *copyReader) Close() error { return r.open.Close() }
