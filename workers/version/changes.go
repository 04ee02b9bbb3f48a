package version

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/formats"
	"github.com/holdfast/holdfast/workers/result"
)

// list makes the list of the version's changes by path, for commit and record. It returns the plan
// of a small version; otherwise it stages the list.
func (w *Maker) list(ctx context.Context, item *base.Item, in storage.Creator, dr *draft) (*smallPlan, error) {
	key := staging.Key(item.Lease(), "version.jsonl")
	list, err := staging.CreateStoredList[result.Planned](ctx, in, key)
	if err != nil {
		return nil, err
	}
	defer list.Abort() //nolint:errcheck // an aborted list leaves nothing that matters
	small := &smallPlan{}
	dr.Small = dr.Small && dr.plan.Files() <= smallFiles
	spill := func() (err error) {
		dr.Small = false
		for _, e := range small.Changes {
			err = errors.Join(err, list.Add(e))
		}
		return err
	}
	err = w.changes(ctx, item, dr, func(e result.Planned) error {
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
		if dr.Digest, err = small.encode(ctx, dr.plan); err != nil || len(small.text) <= smallBytes {
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
func (w *Maker) changes(ctx context.Context, item *base.Item, dr *draft, add func(result.Planned) error) error {
	found, err := w.formats(ctx, item, dr)
	if err != nil {
		return err
	}
	dr.Formats = &result.Identified{Agent: cmp.Or(found.Agent, format.Agent), At: item.Now().UTC().Truncate(time.Second)}
	progress := item.Progress("files planned", "files")
	for added, err := range dr.plan.Added() {
		var f staging.File
		if err == nil {
			err = json.Unmarshal(added.Extra, &f)
		}
		if err != nil {
			return fmt.Errorf("read planned files: %w", err)
		}
		e := result.Planned{
			Path: f.Name, Content: added.Content, Size: f.SizeBytes, Digests: f.Digests, MIME: f.MIMEType,
			Modified: f.Modified, Raw: f.Raw, Encoding: f.Encoding,
		}
		if f.NoZone {
			dr.NoZone++
		}
		if added.New {
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
	if dr.Version == 1 {
		return nil
	}
	return w.removed(ctx, item, dr, add)
}

// removed passes on the files that the version removes, and counts those that it keeps.
func (w *Maker) removed(ctx context.Context, item *base.Item, dr *draft, add func(result.Planned) error) error {
	added, stop := iter.Pull2(dr.plan.Added())
	defer stop()
	now, err, more := added()
	keeps := w.keeps(item, dr)
	for old, errOld := range w.before(ctx, dr) {
		for err == nil && more && now.Path < old.Path {
			now, err, more = added()
		}
		if err := cmp.Or(err, errOld); err != nil {
			return err
		}
		switch {
		case more && now.Path == old.Path:
		case keeps(old.Path):
			dr.Files, dr.Bytes = dr.Files+1, dr.Bytes+old.SizeBytes
		default:
			if err := add(result.Planned{Path: old.Path, Deleted: true}); err != nil {
				return err
			}
		}
	}
	return err
}

// keeps returns a function that reports whether the version keeps a file of the version before
// unless it has its own at that path.
func (w *Maker) keeps(item *base.Item, dr *draft) func(path string) bool {
	if item.Spec().Mode != registry.Update {
		return func(string) bool { return false }
	}
	deleted := make(map[string]bool, len(dr.deleted))
	for _, path := range dr.deleted {
		deleted[path] = true
	}
	return func(path string) bool { return !deleted[path] && !isSystem(path) }
}

// formats identifies the producer's files of the version.
func (w *Maker) formats(ctx context.Context, item *base.Item, dr *draft) (*formats.Found, error) {
	find := formats.Finder{Identifier: w.Identifier, Staging: w.Payloads.Staging}
	files := func(ctx context.Context) iter.Seq2[staging.File, error] { return w.producers(ctx, dr) }
	return find.Find(ctx, item, dr.Algorithm, w.before(ctx, dr), files)
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
