package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/pace"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/room"
)

// copyWait is how long a copy waits for what others must do: settle their item, or tell this worker of
// a storage.
const copyWait = time.Minute

// Copy copies an object to storages where it belongs and is missing, with all its versions and its
// evidence. It holds the object's lock, so no version is written and nothing is mended meanwhile. Each
// byte is read from a storage that has it right, and what was written is read back. The Registry counts
// the copy when all of it is there. It may be repeated at any point.
type Copy struct {
	base.Worker
	Registry interface {
		registry.Locking
		registry.Copying
		registry.Inventory
		evidence.Source
	}
	Objects ocfl.Roots
	Limiter *rate.Limiter // of the bytes a second that all copies of the process read
	Version string        // of the program
}

// Stage implements base.Handler.
func (w *Copy) Stage() registry.Stage { return registry.Copy }

// Concurrency implements base.Handler.
func (w *Copy) Concurrency() int {
	if w.Slots > 0 {
		return w.Slots
	}
	return backgroundSlots
}

// Work implements base.Handler.
func (w *Copy) Work(ctx context.Context, item *base.Item) error {
	spec, ok := registry.ObjectSpecIn(item.WorkItem.Spec)
	if !ok {
		return base.Fatal(errors.New("decode spec: it names no object"))
	}
	to, err := w.roots(item.Storages)
	if err != nil {
		return err
	}
	head, object, err := lockWithFolders(ctx, w.Registry, item, spec.ObjectID, to)
	var locked *registry.LockedError
	var gone *registry.GoneError
	switch {
	case errors.As(err, &locked):
		return base.Snooze(copyWait, registry.ReasonLocked, locked.Error())
	case errors.As(err, &gone), errors.Is(err, registry.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	at := slices.IndexFunc(object.Versions, func(v registry.ObjectVersion) bool { return v.Version == head })
	if at < 0 {
		return fmt.Errorf("version %d of %s is not in its list of versions", head, object.ID)
	}
	c := &copied{Copy: w, item: item, object: object, version: object.Versions[at]}
	if err := c.sources(); err != nil {
		return err
	}
	record := registry.CopyRecord{ObjectID: object.ID, Version: head}
	var places []string
	for _, root := range to {
		if c.has(root.Name) {
			continue // a deposit made it
		}
		err := item.Once(ctx, registry.ResultReplica(root.Name), nil, func(ctx context.Context) (any, error) {
			if err := admit(ctx, root, object); err != nil {
				return nil, err
			}
			if err := c.copyTo(ctx, root); err != nil {
				return nil, fmt.Errorf("copy %s to storage %q: %w", object.ID, root.Name, err)
			}
			return result.Replica{VerifiedAt: item.Now()}, nil
		})
		if err != nil {
			return room.Wait(err)
		}
		var done result.Replica
		if _, err := item.Result(registry.ResultReplica(root.Name), &done); err != nil {
			return err
		}
		record.Replicas = append(record.Replicas, registry.Replica{Storage: root.Name, VerifiedAt: done.VerifiedAt})
		places = append(places, root.Address)
	}
	if len(record.Replicas) == 0 {
		return nil
	}
	record.Damaged = c.damaged
	algorithm, _, _ := strings.Cut(c.version.Inventory, ":")
	record.Events = []registry.Premis{{
		ID: premis.EventID(item.ID, string(premis.Replication), "").Value, ObjectID: object.ID, Version: head, ItemID: item.ID,
		Type: string(premis.Replication), At: item.Now(), Agent: "Holdfast " + w.Version, Outcome: "success",
		Detail: fmt.Sprintf("versions 1 to %d copied to %s, every file read back and verified by %s", head, strings.Join(places, ", "), algorithm),
	}}
	return w.Registry.RecordCopy(ctx, item.Lease(), record)
}

// admit refuses to copy an object to a storage whose layout has no folder for it, or where its folder is
// another object's, before anything is written there.
func admit(ctx context.Context, to ocfl.Named, o registry.Object) error {
	err := to.Admit(ctx, o.Stored(), -1)
	path := (*ocfl.PathError)(nil)
	if errors.Is(err, ocfl.ErrIDTaken) || errors.As(err, &path) {
		return base.Fatal(fmt.Errorf("storage %q cannot store %s: %w; nothing was written: have the collection keep its copies in a storage with another layout, such as 0004, or delete the other object",
			to.Name, o.ID, err))
	}
	return err
}

// roots returns storages by name. The item waits while this worker does not know one.
func (w *Copy) roots(names []string) (out ocfl.Roots, err error) {
	for _, name := range names {
		root, err := w.Objects.Of(name)
		if err != nil {
			return nil, base.Snooze(copyWait, registry.ReasonBlocked,
				fmt.Sprintf("this worker does not know storage %q: name it in HOLDFAST_STORAGE_URL of all workers, and restart them", name))
		}
		out = append(out, root)
	}
	return out, nil
}

// copied is the running copy of an object.
type copied struct {
	*Copy
	item    *base.Item
	object  registry.Object
	version registry.ObjectVersion // the newest
	from    ocfl.Roots
	damaged bool // a source has something wrong
}

func (c *copied) has(storage string) bool {
	return slices.ContainsFunc(c.version.Replicas, func(r registry.Replica) bool { return r.Storage == storage && !r.VerifiedAt.IsZero() })
}

// sources sets the storages that have the newest version and that this worker knows.
func (c *copied) sources() error {
	var unknown []string
	for _, r := range c.version.Replicas {
		root, err := c.Objects.Of(r.Storage)
		if err != nil {
			unknown = append(unknown, r.Storage)
			continue
		}
		root.Root = root.Through(pace.Store(root.Store(), c.Limiter))
		c.from = append(c.from, root)
	}
	if len(c.from) == 0 {
		return base.Snooze(copyWait, registry.ReasonBlocked,
			fmt.Sprintf("this worker does not know the storages that have the object: %v; name one in HOLDFAST_STORAGE_URL of all workers, and restart them", registry.AllOf(unknown)))
	}
	return nil
}

// noteVersion is the interim entry with the newest version that this item has verified in a storage.
const noteVersion = "verified in "

// copyTo copies the object to a storage. If a source has a file wrong or cannot be read, the next one is
// asked for what is left, as long as that brings files.
func (c *copied) copyTo(ctx context.Context, to ocfl.Named) error {
	ours, _, err := base.Get[int](ctx, c.item, noteVersion+to.Name)
	if err != nil {
		return err
	}
	first := 0 // the first version that is written now
	run := &copying{
		item: c.item, objectID: c.object.Stored(), version: c.version.Version, files: c.version.Files, bytes: c.version.SizeBytes,
		begin: func(version int, _ string) error {
			if first == 0 {
				first = version
			}
			if version == first || first > ours+1 { // what was there before this item is not its own
				return nil
			}
			return base.Put(ctx, c.item, noteVersion+to.Name, version-1)
		},
	}
	if err := c.fromAny(ctx, run, to); err != nil {
		return err
	}
	if first == 0 || first > ours+1 {
		if err := c.verify(ctx, to); err != nil {
			return err
		}
	}
	in, err := evidence.In(to.Root, c.object.ID, c.object.Place)
	if err != nil {
		return err
	}
	if err := c.item.Writable(ctx); err != nil {
		return err
	}
	return evidence.KeepReceipts(ctx, c.Registry, c.version.Version, in)
}

func (c *copied) fromAny(ctx context.Context, run *copying, to ocfl.Named) error {
	for {
		before := run.stored
		var errs []error
		for _, from := range c.from {
			err := run.copy(ctx, from, to)
			if err == nil {
				return nil
			}
			var wrong *ocfl.DigestError
			var inventory *ocfl.InventoryError
			c.damaged = c.damaged || errors.As(err, &wrong) || errors.As(err, &inventory)
			errs = append(errs, fmt.Errorf("from storage %q: %w", from.Name, err))
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
		if run.stored == before {
			return errors.Join(errs...)
		}
	}
}

// verify reads what was in a storage before this item copied there.
func (c *copied) verify(ctx context.Context, to ocfl.Named) error {
	report, err := to.Through(pace.Store(to.Store(), c.Limiter)).Verify(ctx, c.object.Stored(), ocfl.ValidateOptions{})
	if err != nil {
		return err
	}
	if faults := report.Errors(); len(faults) > 0 {
		return base.Fatal(fmt.Errorf("what was there already is not right: %s; move the object's folder away, then requeue this copy", faults[0]))
	}
	return nil
}

var _ base.Handler = (*Copy)(nil)
