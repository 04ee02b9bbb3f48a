package version

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// replaceAdopted completes what an update deletes of an adopted object. Its first files, which others
// stored, need not lie below the producer's folder: a file that the update brings, or deletes, takes the
// place of the one with the same name outside of it.
func (w *Maker) replaceAdopted(ctx context.Context, dr *draft) error {
	named := dr.space.NewSorter(nil)
	for f, err := range w.producers(ctx, dr) {
		if err != nil {
			return err
		}
		if !named.Add([]byte(strings.TrimPrefix(f.Name, registry.ProducerFolder)), nil) {
			return dr.space.Err()
		}
	}
	next, stop := iter.Pull2(named.Sorted())
	defer stop()
	name, _, more := next()
	replaced := map[string]bool{}
	elsewhere := map[string]bool{} // names to be deleted that are below the producer's folder, and whether they are
	for _, path := range dr.deleted {
		elsewhere[path] = false
	}
	for old, err := range w.before(ctx, dr) {
		if err != nil {
			return err
		}
		if _, deleted := elsewhere[old.Path]; deleted {
			elsewhere[old.Path] = true
		}
		if isSystem(old.Path) || strings.HasPrefix(old.Path, registry.ProducerFolder) {
			continue
		}
		for more && string(name) < old.Path {
			name, _, more = next()
		}
		_, deleted := elsewhere[producerPath(old.Path)]
		if deleted || more && string(name) == old.Path {
			replaced[old.Path] = true
		}
	}
	if err := dr.space.Err(); err != nil {
		return err
	}
	dr.deleted = slices.DeleteFunc(slices.Clone(dr.deleted), func(path string) bool {
		return !elsewhere[path] && replaced[strings.TrimPrefix(path, registry.ProducerFolder)]
	})
	dr.deleted = append(dr.deleted, slices.Sorted(maps.Keys(replaced))...)
	return nil
}
