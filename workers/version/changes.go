package version

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/formats"
	"github.com/holdfast/holdfast/workers/result"
)

// list stages the list of the version's changes, for commit and record.
func (w *Maker) list(ctx context.Context, item *base.Item, in storage.Creator, dr *draft, inv *ocfl.Inventory, content []ocfl.ContentFile) error {
	isNew := make(map[string]bool, len(content))
	for _, c := range content {
		isNew[c.Path] = true
	}
	found, err := w.formats(ctx, item, dr)
	if err != nil {
		return err
	}
	dr.Formats = &result.Identified{Agent: cmp.Or(found.Agent, format.Agent), At: item.Now().UTC().Truncate(time.Second)}
	list, err := staging.CreateStoredList[result.Planned](ctx, in, dr.List)
	if err != nil {
		return err
	}
	defer list.Abort() //nolint:errcheck // an aborted list leaves nothing that matters
	progress := item.Progress("files planned", "files")
	for f, err := range w.files(ctx, dr) {
		if err != nil {
			return err
		}
		where := inv.ContentPaths(f.Digests[dr.Algorithm])[0]
		e := result.Planned{
			Path: f.Name, Content: where, Size: f.SizeBytes, Digests: f.Digests, MIME: f.MIMEType,
			Modified: f.Modified, Raw: f.Raw, Encoding: f.Encoding,
		}
		if f.NoZone {
			dr.NoZone++
		}
		if isNew[where] {
			e.Staged, e.Data = f.Key, dr.small[f.Name]
		}
		if strings.HasPrefix(f.Name, registry.ProducerFolder) {
			e.Format = found.Count(dr.Formats, strings.TrimPrefix(f.Name, registry.ProducerFolder), f)
		}
		dr.Files, dr.Bytes = dr.Files+1, dr.Bytes+f.SizeBytes
		progress.Add(1)
		if err := list.Add(e); err != nil {
			return err
		}
	}
	for old, err := range w.before(ctx, dr) {
		if err != nil {
			return err
		}
		_, stays := inv.Lookup(0, old.Path)
		switch {
		case !stays:
			if err := list.Add(result.Planned{Path: old.Path, Deleted: true}); err != nil {
				return err
			}
		case !dr.has(old.Path):
			dr.Files, dr.Bytes = dr.Files+1, dr.Bytes+old.SizeBytes
		}
	}
	err = list.Commit(ctx)
	dr.ListDigest = list.List().Digest
	return err
}

// formats identifies the producer's files of the version.
func (w *Maker) formats(ctx context.Context, item *base.Item, dr *draft) (*formats.Found, error) {
	find := formats.Finder{Identifier: w.Identifier, Staging: w.Payloads.Staging}
	files := func(ctx context.Context) iter.Seq2[staging.File, error] { return w.producers(ctx, dr) }
	return find.Find(ctx, item, dr.Algorithm, w.before(ctx, dr), files)
}

// has reports whether the version has its own file at the path.
func (dr *draft) has(path string) bool {
	return dr.named[path] || slices.ContainsFunc(dr.system, func(f staging.File) bool { return f.Name == path })
}

// before yields the files of the previous version by path; none for a first version.
func (w *Maker) before(ctx context.Context, dr *draft) iter.Seq2[registry.File, error] {
	const page = 500
	return func(yield func(registry.File, error) bool) {
		for after := ""; dr.Version > 1; {
			files, err := w.Registry.Files(ctx, dr.ObjectID, dr.Version-1, after, page)
			if err != nil {
				yield(registry.File{}, err)
				return
			}
			for _, f := range files {
				if !yield(f, nil) {
					return
				}
			}
			if len(files) < page {
				return
			}
			after = files[len(files)-1].Path
		}
	}
}
