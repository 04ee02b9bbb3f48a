package version

import (
	"cmp"
	"context"
	"errors"
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

// list makes the list of the version's changes, for commit and record. It returns the plan of a
// small version; otherwise it stages the list.
func (w *Maker) list(ctx context.Context, item *base.Item, in storage.Creator, dr *draft, inv *ocfl.Inventory, content []ocfl.ContentFile) (*smallPlan, error) {
	key := staging.Key(item.Lease(), "version.jsonl")
	list, err := staging.CreateStoredList[result.Planned](ctx, in, key)
	if err != nil {
		return nil, err
	}
	defer list.Abort() //nolint:errcheck // an aborted list leaves nothing that matters
	small := &smallPlan{inv: inv}
	dr.Small = dr.Small && len(inv.State(0)) <= smallFiles
	spill := func() (err error) {
		dr.Small = false
		for _, e := range small.Changes {
			err = errors.Join(err, list.Add(e))
		}
		return err
	}
	err = w.changes(ctx, item, dr, inv, content, func(e result.Planned) error {
		if !dr.Small {
			return list.Add(e)
		}
		small.Changes = append(small.Changes, e)
		if len(small.Changes) <= smallFiles && e.Encoding == "" { // record has an event for each encoding
			return nil
		}
		return spill()
	})
	if err != nil {
		return nil, err
	}
	if dr.Small {
		if dr.Digest, err = small.encode(); err != nil || len(small.text) <= smallBytes {
			return small, err
		}
		if err := spill(); err != nil {
			return nil, err
		}
	}
	err = list.Commit(ctx)
	dr.List, dr.ListDigest = key, list.List().Digest
	return nil, err
}

// changes passes on every change of the version: its new files, and those that it removes.
func (w *Maker) changes(ctx context.Context, item *base.Item, dr *draft, inv *ocfl.Inventory, content []ocfl.ContentFile, add func(result.Planned) error) error {
	isNew := make(map[string]bool, len(content))
	for _, c := range content {
		isNew[c.Path] = true
	}
	found, err := w.formats(ctx, item, dr)
	if err != nil {
		return err
	}
	dr.Formats = &result.Identified{Agent: cmp.Or(found.Agent, format.Agent), At: item.Now().UTC().Truncate(time.Second)}
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
		if err := add(e); err != nil {
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
			if err := add(result.Planned{Path: old.Path, Deleted: true}); err != nil {
				return err
			}
		case !dr.has(old.Path):
			dr.Files, dr.Bytes = dr.Files+1, dr.Bytes+old.SizeBytes
		}
	}
	return nil
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
