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

// Orphans looks for orphaned data. It first lists volumes and interim data, and then asks the
// Registry about the owner that a name implies. Data whose owner appears meanwhile thus never
// counts as orphaned.
type Orphans struct {
	Registry registry.ForWorkers
	Staging  storage.Store
	Interim  interim.Store
	Objects  ocfl.Roots
	Bounds   SweepBounds
}

// SweepBounds are how many files of a preservation storage a search for strays checks before it
// records its progress, and before it pauses. The zero value has defaults.
type SweepBounds struct{ Note, Rest int }

// Defaults of [SweepBounds].
const (
	sweepNote = 10_000
	sweepRest = 500_000
)

// sweepProgress is the progress of a search for strays.
type sweepProgress struct {
	Storage string                `json:"storage"`
	After   string                `json:"after"` // key of the last checked file
	Report  registry.OrphanReport `json:"report"`
}

const (
	noteSweep     = "swept"
	sweepPause    = time.Second // lets other items have the worker
	maxStrayNames = 20          // listed in the note of a failed search
)

// search is one search for orphaned data.
type search struct {
	*Orphans
	registry.OrphanSearch
	item     *base.Item
	progress *base.Progress
	youngest time.Time // skip what changed later
	report   registry.OrphanReport
}

// removedNote begins the keys of interim entries that record what was removed.
const removedNote = "removed "

// Run searches for orphaned data as what specifies, and records its findings with the item. It
// reports what it cannot remove, and continues. If a search for strays found some, the error leaves
// the item for a person.
func (o *Orphans) Run(ctx context.Context, item *base.Item, what registry.OrphanSearch) error {
	s := &search{
		Orphans: o, OrphanSearch: what, item: item, progress: item.Progress("names checked", "names"),
		youngest: item.Now().Add(-what.Older), report: registry.OrphanReport{Search: what},
	}
	// An earlier attempt's removals are no longer found, but belong into the report.
	err := base.Each(ctx, item, removedNote, func(_ string, o registry.Orphan) error {
		s.report.Add(o)
		return nil
	})
	if err != nil {
		return err
	}
	looks := []func(context.Context) error{s.searchStaging, s.searchInterim, s.searchStorages}
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
	// After a requeue the search starts over.
	if err := base.Put(ctx, item, noteSweep, sweepProgress{}); err != nil || s.report.Total() == 0 {
		return err
	}
	return base.Fatal(errors.New(strayText(s.report)))
}

// strayText describes the findings for people.
func strayText(r registry.OrphanReport) string {
	var files []string
	for _, o := range r.Found[:min(len(r.Found), maxStrayNames)] {
		files = append(files, fmt.Sprintf("%q in storage %s", o.Name, o.Storage))
	}
	if more := r.Total() - int64(len(files)); more > 0 {
		files = append(files, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("files belong to no object: %s; find out what they are and move them away, then requeue this search", strings.Join(files, ", "))
}

// sweep searches for strays, starting where the earlier attempt stopped.
func (s *search) sweep(ctx context.Context) error {
	at, _, err := base.Get[sweepProgress](ctx, s.item, noteSweep)
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
			continue // already done
		}
		after := at.After
		at = sweepProgress{}
		err := s.strays(ctx, root, after, func(key string) error {
			if looked++; looked%note != 0 && looked < rest {
				return nil
			}
			if err := base.Put(ctx, s.item, noteSweep, sweepProgress{Storage: root.Name, After: key, Report: s.report}); err != nil || looked < rest {
				return err
			}
			return base.Snooze(sweepPause, registry.ReasonNotDue, fmt.Sprintf("continues in storage %s", root.Name))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strays finds files of a storage after a key that belong to no object. It calls each after every
// file.
func (s *search) strays(ctx context.Context, root ocfl.Named, after string, each func(key string) error) error {
	for f, err := range root.Walk(ctx, after) {
		if err != nil {
			return fmt.Errorf("list the files of storage %s: %w", root.Name, err)
		}
		s.progress.Add(1)
		if f.Stray && !f.Modified.After(s.youngest) {
			s.report.Add(registry.Orphan{
				Kind: registry.OrphanForeign, Name: f.Name, Storage: root.Name, Files: 1, SizeBytes: f.Size, ChangedAt: f.Modified.UTC(),
				Why: "belongs to no object",
			})
		}
		if err := each(f.Key); err != nil {
			return err
		}
	}
	return nil
}

// searchStaging checks the staging volume folder by folder: the keys of a folder are consecutive.
func (s *search) searchStaging(ctx context.Context) error {
	var at registry.Orphan
	for info, err := range s.Staging.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("list the staging volume: %w", err)
		}
		s.progress.Add(1)
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

// stagedAs returns the folder of the staging volume that has a key, and the kind of such folders.
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
		o.Kind, o.Why, err = s.whyItemOrphaned(ctx, o.Kind, id)
	case registry.OrphanUpload:
		o.Kind, o.Why, err = s.whyUploadOrphaned(ctx, id)
		remove = func(ctx context.Context) error {
			// Nobody can submit it any more, but somebody may have since it was listed.
			released, err := s.Registry.ReleaseUpload(ctx, s.item.Lease(), id)
			if err == nil && !released {
				err = errors.New("submitted meanwhile")
			}
			if err != nil {
				return err
			}
			return s.Staging.DeletePrefix(ctx, o.Name)
		}
	case registry.OrphanForeign:
		o.Why = "Holdfast does not use such names"
	case registry.OrphanInterim, registry.OrphanObject:
	}
	if err != nil || o.Why == "" {
		return err // the Registry removes restored files when their time is over
	}
	return s.record(ctx, o, remove)
}

// unknownOwner is the reason for data of an owner that the Registry never knew. Another Registry
// may use this volume, or this one was restored from an older backup.
const unknownOwner = "the Registry does not know its owner; another Registry may, or this one was restored from an older backup"

// whyItemOrphaned returns why an item no longer needs data of a kind; "" if it does. Events outlive
// items: if the item has none, the data counts as foreign.
func (s *search) whyItemOrphaned(ctx context.Context, kind registry.OrphanKind, id string) (registry.OrphanKind, string, error) {
	it, err := s.Registry.Item(ctx, id)
	if err == nil {
		return kind, whySettled(it, s.youngest), nil
	} else if !errors.Is(err, registry.ErrNotFound) {
		return kind, "", err
	}
	events, err := s.Registry.Events(ctx, id, 0, 1)
	if err == nil && len(events) == 0 {
		return registry.OrphanForeign, unknownOwner, nil
	}
	return kind, "its item was purged", err
}

// whySettled says that an item reached a final state and when; "" if it did not, or too recently. A
// failed or cancelled item can be requeued, and then needs its data.
func whySettled(it registry.WorkItem, youngest time.Time) string {
	if !slices.Contains(finalStates, it.State) || it.FinishedAt == nil || it.FinishedAt.After(youngest) {
		return ""
	}
	return fmt.Sprintf("item %s is %s since %s", it.ID, it.State, it.FinishedAt.UTC().Format(time.DateTime))
}

// whyUploadOrphaned returns why an upload is no longer needed; "" if it is needed, or can still be
// submitted.
func (s *search) whyUploadOrphaned(ctx context.Context, id string) (registry.OrphanKind, string, error) {
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
		if whySettled(b, s.youngest) == "" {
			return kind, "", nil
		}
	}
	if len(batches) > 0 {
		return kind, whySettled(batches[0], s.youngest), nil
	}
	u, err := s.Registry.UploadByID(ctx, id)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return registry.OrphanForeign, unknownOwner, nil
	case err != nil || u.CreatedAt.After(s.youngest):
		return kind, "", err
	}
	return kind, "never submitted, or its batch was purged", nil
}

// searchInterim checks the items that have interim data.
func (s *search) searchInterim(ctx context.Context) error {
	for id, err := range s.Interim.Items(ctx) {
		if err != nil {
			return fmt.Errorf("list interim data: %w", err)
		}
		s.progress.Add(1)
		if createdAfter(id, s.youngest) {
			continue
		}
		kind, why, err := s.whyItemOrphaned(ctx, registry.OrphanInterim, id)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		err = s.record(ctx, registry.Orphan{Kind: kind, Name: id, Why: why}, func(ctx context.Context) error { return s.Interim.Drop(ctx, id) })
		if err != nil {
			return err
		}
	}
	return nil
}

// createdAfter reports whether an item was created after a time, by the time in its id (RFC 9562,
// 5.7).
func createdAfter(id string, t time.Time) bool {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return false
	}
	seconds, nanos := u.Time().UnixTime()
	return time.Unix(seconds, nanos).After(t)
}

// searchStorages checks the objects of the preservation storages, if requested.
func (s *search) searchStorages(ctx context.Context) error {
	if !s.Storages {
		return nil
	}
	for _, root := range s.Objects {
		for object, err := range root.Objects(ctx) {
			if err != nil {
				return fmt.Errorf("list the objects of storage %s: %w", root.Name, err)
			}
			s.progress.Add(1)
			known, err := s.Registry.KnowsObject(ctx, object.ID)
			if err != nil {
				return err
			}
			if !known {
				o := registry.Orphan{Kind: registry.OrphanObject, Name: object.ID, Storage: root.Name, Why: "the Registry has no record of it; it is in " + object.Key}
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

// record counts orphaned data, and removes it if that is requested and allowed.
func (s *search) record(ctx context.Context, o registry.Orphan, remove func(context.Context) error) error {
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
