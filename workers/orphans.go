package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// orphans looks for what belongs to nobody. Volumes and interim data are listed, and the Registry is asked about each owner that
// a name tells of afterwards, so that nothing is taken for an orphan whose owner came meanwhile.
type orphans struct {
	registry registry.ForWorkers
	staging  storage.Store
	interim  interim.Store
	objects  ocfl.Roots
}

// search is one search for orphans.
type search struct {
	*orphans
	registry.OrphanSearch
	item     *base.Item
	looked   *base.Progress
	youngest time.Time // what changed later is not looked at
	report   registry.OrphanReport
}

// removedNote begins the keys of interim data that tell what was removed.
const removedNote = "removed "

// run looks for orphans as the item says, and notes what it found with the item. What cannot be removed is told, and does not
// keep the others from it.
func (o *orphans) run(ctx context.Context, item *base.Item, what registry.OrphanSearch) error {
	s := &search{
		orphans: o, OrphanSearch: what, item: item, looked: item.Progress("looked at", "names"),
		youngest: item.Now().Add(-what.Older), report: registry.OrphanReport{Search: what},
	}
	// What an attempt before has removed is not found any more, and was found all the same.
	err := base.Each(ctx, item, removedNote, func(_ string, o registry.Orphan) error {
		s.report.Add(o)
		return nil
	})
	if err != nil {
		return err
	}
	for _, look := range []func(context.Context) error{s.lookAtStaging, s.lookAtInterim, s.lookAtStorages} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return item.SetResult(registry.ResultOrphans, s.report)
}

// lookAtStaging goes through the staging volume a folder at a time: its keys follow each other.
func (s *search) lookAtStaging(ctx context.Context) error {
	var at registry.Orphan
	for info, err := range s.staging.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("list the staging volume: %w", err)
		}
		s.looked.Add(1)
		next := stagedAs(info.Key)
		if next.Name != at.Name {
			if err := s.judge(ctx, at); err != nil {
				return err
			}
			at = next
		}
		at.Files, at.SizeBytes = at.Files+1, at.SizeBytes+info.Size
		if info.Modified.After(at.ChangedAt) {
			at.ChangedAt = info.Modified.UTC()
		}
	}
	return s.judge(ctx, at)
}

// stagedAs says which folder of the staging volume a key lies in, and what such folders are for.
func stagedAs(key string) registry.Orphan {
	for _, kind := range []struct {
		prefix string
		kind   registry.OrphanKind
	}{{staging.ItemsPrefix, registry.OrphanStaged}, {source.UploadsPrefix, registry.OrphanUpload}, {staging.RestoredPrefix, ""}} {
		if rest, ok := strings.CutPrefix(key, kind.prefix); ok {
			if id, _, inside := strings.Cut(rest, "/"); inside {
				return registry.Orphan{Kind: kind.kind, Name: kind.prefix + id}
			}
		}
	}
	return registry.Orphan{Kind: registry.OrphanForeign, Name: key}
}

// judge decides about a folder of the staging volume.
func (s *search) judge(ctx context.Context, o registry.Orphan) (err error) {
	if o.Name == "" || o.ChangedAt.After(s.youngest) {
		return nil
	}
	_, id, _ := strings.Cut(o.Name, "/")
	remove := func(ctx context.Context) error { return s.staging.DeletePrefix(ctx, o.Name) }
	switch o.Kind {
	case registry.OrphanStaged:
		o.Kind, o.Why, err = s.whyNotItems(ctx, o.Kind, id)
	case registry.OrphanUpload:
		o.Kind, o.Why, err = s.whyNotUploads(ctx, id)
		remove = func(ctx context.Context) error {
			// Nobody can submit it any more; somebody may have, since it was looked at.
			retired, err := s.registry.RetireUpload(ctx, id, "")
			if err == nil && !retired {
				err = errors.New("it was submitted meanwhile")
			}
			if err != nil {
				return err
			}
			return s.staging.DeletePrefix(ctx, o.Name)
		}
	case registry.OrphanForeign:
		o.Why = "it has no name of ours"
	case registry.OrphanInterim, registry.OrphanObject:
	}
	if err != nil || o.Why == "" {
		return err // and what was restored is removed when its time is over, by the Registry
	}
	return s.found(ctx, o, remove)
}

// unheard says of what the Registry never heard: another one may use this volume, or this one came back from a backup that is older.
const unheard = "the Registry has never heard of its owner; another Registry may have, or this one before it was brought back from a backup"

// whyNotItems says why an item has no right to something of a kind any more; "" when it has. What is of an item without any
// event, which outlive items, is not ours to judge.
func (s *search) whyNotItems(ctx context.Context, kind registry.OrphanKind, id string) (registry.OrphanKind, string, error) {
	it, err := s.registry.Item(ctx, id)
	if err == nil {
		return kind, whyOver(it, s.youngest), nil
	} else if !errors.Is(err, registry.ErrNotFound) {
		return kind, "", err
	}
	events, err := s.registry.Events(ctx, id, 0, 1)
	if err == nil && len(events) == 0 {
		return registry.OrphanForeign, unheard, nil
	}
	return kind, "its item was purged", err
}

// whyOver says that an item is over and since when; "" when it is not, or not for long enough. What failed or was cancelled may be
// sent back, and then needs what it has.
func whyOver(it registry.WorkItem, youngest time.Time) string {
	if !slices.Contains(over, it.State) || it.FinishedAt == nil || it.FinishedAt.After(youngest) {
		return ""
	}
	return fmt.Sprintf("item %s is %s since %s", it.ID, it.State, it.FinishedAt.UTC().Format(time.DateTime))
}

// whyNotUploads says why nobody needs an upload any more; "" when somebody does, or still may submit it.
func (s *search) whyNotUploads(ctx context.Context, id string) (registry.OrphanKind, string, error) {
	const kind = registry.OrphanUpload
	if _, err := s.registry.IncomingByID(ctx, id); err == nil || !errors.Is(err, registry.ErrNotFound) {
		return kind, "", err
	}
	batches, err := s.registry.BatchesOf(ctx, id)
	if err != nil {
		return kind, "", err
	}
	for _, b := range batches {
		if needed, err := needsUpload(ctx, s.registry, b, false); needed || err != nil {
			return kind, "", err
		}
		if whyOver(b, s.youngest) == "" {
			return kind, "", nil
		}
	}
	if len(batches) > 0 {
		return kind, whyOver(batches[0], s.youngest), nil
	}
	u, err := s.registry.UploadByID(ctx, id)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return registry.OrphanForeign, unheard, nil
	case err != nil || u.CreatedAt.After(s.youngest):
		return kind, "", err
	}
	return kind, "no batch was made of it, or it was purged", nil
}

// lookAtInterim goes through the items that have interim data.
func (s *search) lookAtInterim(ctx context.Context) error {
	for id, err := range s.interim.Items(ctx) {
		if err != nil {
			return fmt.Errorf("list interim data: %w", err)
		}
		s.looked.Add(1)
		if bornAfter(id, s.youngest) {
			continue
		}
		kind, why, err := s.whyNotItems(ctx, registry.OrphanInterim, id)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		err = s.found(ctx, registry.Orphan{Kind: kind, Name: id, Why: why}, func(ctx context.Context) error { return s.interim.Drop(ctx, id) })
		if err != nil {
			return err
		}
	}
	return nil
}

// bornAfter says whether an item was made after a time, which its id tells (RFC 9562, 5.7).
func bornAfter(id string, t time.Time) bool {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return false
	}
	seconds, nanos := u.Time().UnixTime()
	return time.Unix(seconds, nanos).After(t)
}

// lookAtStorages goes through the objects of the preservation storages, when that is asked for.
func (s *search) lookAtStorages(ctx context.Context) error {
	if !s.Storages {
		return nil
	}
	for _, root := range s.objects {
		for object, err := range root.Objects(ctx) {
			if err != nil {
				return fmt.Errorf("list the objects of storage %s: %w", root.Name, err)
			}
			s.looked.Add(1)
			known, err := s.registry.KnowsObject(ctx, object.ID)
			if err != nil {
				return err
			}
			if !known {
				s.report.Add(registry.Orphan{Kind: registry.OrphanObject, Name: object.ID, Storage: root.Name, Why: "no record leads to it; it lies in " + object.Key})
			}
		}
	}
	return nil
}

// found counts an orphan, and removes it when that is asked for and may be done.
func (s *search) found(ctx context.Context, o registry.Orphan, remove func(context.Context) error) error {
	if s.Remove && o.Kind.Removable() {
		if err := s.item.Writable(ctx); err != nil {
			return err
		}
		err := remove(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o.Removed = err == nil; err != nil {
			o.Error = err.Error()
		} else if err := base.Put(ctx, s.item, removedNote+string(o.Kind)+" "+o.Name, o); err != nil {
			return err
		}
	}
	s.report.Add(o)
	return nil
}
