package tidy

import (
	"cmp"
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

// Orphans looks for orphaned data. It lists volumes and interim data, and asks the Registry about
// the owner that a name tells of afterwards, so that nothing is taken for an orphan whose owner
// came meanwhile.
type Orphans struct {
	Registry registry.ForWorkers
	Staging  storage.Store
	Interim  interim.Store
	Objects  ocfl.Roots
	Bounds   SweepBounds
}

// SweepBounds are how many files of a preservation storage a search for strays looks at before it
// notes how far it is, and before it takes a rest. The zero value has defaults.
type SweepBounds struct{ Note, Rest int }

// The defaults of [SweepBounds].
const (
	sweepNote = 10_000
	sweepRest = 500_000
)

// swept is how far a search for strays is.
type swept struct {
	Storage string                `json:"storage"`
	After   string                `json:"after"` // key of the last file that was looked at
	Report  registry.OrphanReport `json:"report"`
}

const (
	sweptNote  = "swept"
	sweepPause = time.Second // others may have the worker
	strayNames = 20          // that a failed search tells in its note
)

// search is one search for orphans.
type search struct {
	*Orphans
	registry.OrphanSearch
	item     *base.Item
	looked   *base.Progress
	youngest time.Time // what changed later is not looked at
	report   registry.OrphanReport
}

// removedNote begins the keys of interim data that tell what was removed.
const removedNote = "removed "

// Run looks for orphans as what says, and notes with the item what it found. What cannot be removed
// it reports, and goes on. After a search for strays that found some, the error leaves the item for
// a person.
func (o *Orphans) Run(ctx context.Context, item *base.Item, what registry.OrphanSearch) error {
	s := &search{
		Orphans: o, OrphanSearch: what, item: item, looked: item.Progress("looked at", "names"),
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
	looks := []func(context.Context) error{s.lookAtStaging, s.lookAtInterim, s.lookAtStorages}
	if what.Strays {
		looks = []func(context.Context) error{s.sweep}
	}
	for _, look := range looks {
		if err := look(ctx); err != nil {
			return err
		}
	}
	if err := item.SetResult(registry.ResultOrphans, s.report); err != nil || !what.Strays {
		return err
	}
	// Sent back, it looks at everything again.
	if err := base.Put(ctx, item, sweptNote, swept{}); err != nil || s.report.Total() == 0 {
		return err
	}
	return base.Fatal(errors.New(strayText(s.report)))
}

// strayText tells people what was found.
func strayText(r registry.OrphanReport) string {
	var files []string
	for _, o := range r.Found[:min(len(r.Found), strayNames)] {
		files = append(files, fmt.Sprintf("%q in storage %s", o.Name, o.Storage))
	}
	if more := r.Total() - int64(len(files)); more > 0 {
		files = append(files, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("files belong to no object: %s; look what they are and move them away, then requeue this search", strings.Join(files, ", "))
}

// sweep looks for strays from where the attempt before was.
func (s *search) sweep(ctx context.Context) error {
	at, _, err := base.Get[swept](ctx, s.item, sweptNote)
	if err != nil {
		return err
	}
	if at.Storage != "" {
		s.report = at.Report
	}
	note, rest := cmp.Or(s.Bounds.Note, sweepNote), cmp.Or(s.Bounds.Rest, sweepRest)
	looked := 0
	for _, root := range s.Objects {
		if at.Storage != "" && at.Storage != root.Name {
			continue // it is done
		}
		after := at.After
		at = swept{}
		err := s.strays(ctx, root, after, func(key string) error {
			if looked++; looked%note != 0 && looked < rest {
				return nil
			}
			if err := base.Put(ctx, s.item, sweptNote, swept{Storage: root.Name, After: key, Report: s.report}); err != nil || looked < rest {
				return err
			}
			return base.Snooze(sweepPause, registry.ReasonNotDue, fmt.Sprintf("it goes on in storage %s", root.Name))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strays looks for files of a storage behind a key that belong to no object, and tells each, of
// whatever kind, after it was looked at.
func (s *search) strays(ctx context.Context, root ocfl.Named, after string, each func(key string) error) error {
	for f, err := range root.Walk(ctx, after) {
		if err != nil {
			return fmt.Errorf("list the files of storage %s: %w", root.Name, err)
		}
		s.looked.Add(1)
		if f.Stray && !f.Modified.After(s.youngest) {
			s.report.Add(registry.Orphan{
				Kind: registry.OrphanForeign, Name: f.Name, Storage: root.Name, Files: 1, SizeBytes: f.Size, ChangedAt: f.Modified.UTC(),
				Why: "it belongs to no object",
			})
		}
		if err := each(f.Key); err != nil {
			return err
		}
	}
	return nil
}

// lookAtStaging goes through the staging volume a folder at a time: its keys follow each other.
func (s *search) lookAtStaging(ctx context.Context) error {
	var at registry.Orphan
	for info, err := range s.Staging.List(ctx, "") {
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
	}{{staging.ItemsPrefix, registry.OrphanStaged}, {source.UploadsPrefix, registry.OrphanUpload}, {registry.RestoredPrefix, ""}} {
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
	remove := func(ctx context.Context) error { return s.Staging.DeletePrefix(ctx, o.Name) }
	switch o.Kind {
	case registry.OrphanStaged:
		o.Kind, o.Why, err = s.whyNotItems(ctx, o.Kind, id)
	case registry.OrphanUpload:
		o.Kind, o.Why, err = s.whyNotUploads(ctx, id)
		remove = func(ctx context.Context) error {
			// Nobody can submit it any more; somebody may have, since it was looked at.
			released, err := s.Registry.ReleaseUpload(ctx, s.item.Lease(), id)
			if err == nil && !released {
				err = errors.New("it was submitted meanwhile")
			}
			if err != nil {
				return err
			}
			return s.Staging.DeletePrefix(ctx, o.Name)
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

// unheard says of what the Registry never heard: another one may use this volume, or this one came
// back from a backup that is older.
const unheard = "the Registry has never heard of its owner; another Registry may have, or this one before it was brought back from a backup"

// whyNotItems says why an item has no right to something of a kind any more; "" when it has. What
// is of an item without any event, which outlive items, is not ours to judge.
func (s *search) whyNotItems(ctx context.Context, kind registry.OrphanKind, id string) (registry.OrphanKind, string, error) {
	it, err := s.Registry.Item(ctx, id)
	if err == nil {
		return kind, whyOver(it, s.youngest), nil
	} else if !errors.Is(err, registry.ErrNotFound) {
		return kind, "", err
	}
	events, err := s.Registry.Events(ctx, id, 0, 1)
	if err == nil && len(events) == 0 {
		return registry.OrphanForeign, unheard, nil
	}
	return kind, "its item was purged", err
}

// whyOver says that an item is over and since when; "" when it is not, or not for long enough. What
// failed or was cancelled may be sent back, and then needs what it has.
func whyOver(it registry.WorkItem, youngest time.Time) string {
	if !slices.Contains(over, it.State) || it.FinishedAt == nil || it.FinishedAt.After(youngest) {
		return ""
	}
	return fmt.Sprintf("item %s is %s since %s", it.ID, it.State, it.FinishedAt.UTC().Format(time.DateTime))
}

// whyNotUploads returns why an upload is not needed any more; "" when it is needed, or may still be
// submitted.
func (s *search) whyNotUploads(ctx context.Context, id string) (registry.OrphanKind, string, error) {
	const kind = registry.OrphanUpload
	if _, err := s.Registry.IncomingByID(ctx, id); err == nil || !errors.Is(err, registry.ErrNotFound) {
		return kind, "", err
	}
	batches, err := s.Registry.BatchesOf(ctx, id)
	if err != nil {
		return kind, "", err
	}
	for _, b := range batches {
		if needed, err := needsUpload(ctx, s.Registry, b); needed || err != nil {
			return kind, "", err
		}
		if whyOver(b, s.youngest) == "" {
			return kind, "", nil
		}
	}
	if len(batches) > 0 {
		return kind, whyOver(batches[0], s.youngest), nil
	}
	u, err := s.Registry.UploadByID(ctx, id)
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
	for id, err := range s.Interim.Items(ctx) {
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
		err = s.found(ctx, registry.Orphan{Kind: kind, Name: id, Why: why}, func(ctx context.Context) error { return s.Interim.Drop(ctx, id) })
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
	for _, root := range s.Objects {
		for object, err := range root.Objects(ctx) {
			if err != nil {
				return fmt.Errorf("list the objects of storage %s: %w", root.Name, err)
			}
			s.looked.Add(1)
			known, err := s.Registry.KnowsObject(ctx, object.ID)
			if err != nil {
				return err
			}
			if !known {
				o := registry.Orphan{Kind: registry.OrphanObject, Name: object.ID, Storage: root.Name, Why: "no record leads to it; it lies in " + object.Key}
				if err := measure(ctx, root, object.Key, &o); err != nil {
					return err
				}
				s.report.Add(o)
			}
		}
		if err := s.strays(ctx, root, "", func(string) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// measure counts the files below a folder of a storage.
func measure(ctx context.Context, root ocfl.Named, folder string, o *registry.Orphan) error {
	for info, err := range root.Store().List(ctx, folder+"/") {
		if err != nil {
			return fmt.Errorf("list the files of %s in storage %s: %w", o.Name, root.Name, err)
		}
		o.Files, o.SizeBytes = o.Files+1, o.SizeBytes+info.Size
		if info.Modified.After(o.ChangedAt) {
			o.ChangedAt = info.Modified.UTC()
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
