package workers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/identity"
)

// deleteWait is how long a deletion waits while another item works on the object.
const deleteWait = time.Minute

// Delete removes an object whose deletion two people have agreed to. It marks the object in the
// Registry, fenced, which ends all reading. In each storage it writes a tombstone before it deletes
// the first byte. It withdraws the object's name at EZID, if it has one there. Finally it records
// the deletion. It may be repeated at any point.
type Delete struct {
	base.Worker
	Registry interface {
		registry.Locking
		registry.Deleting
		registry.Inventory
	}
	Roots   ocfl.Roots // all storages that may have objects
	Names   identity.Names
	Version string
}

// Stage implements base.Handler.
func (w *Delete) Stage() registry.Stage { return registry.Delete }

// Work implements base.Handler.
func (w *Delete) Work(ctx context.Context, item *base.Item) error {
	spec, ok := registry.ObjectSpecIn(item.WorkItem.Spec)
	if !ok {
		return base.Fatal(errors.New("decode spec: it names no object"))
	}
	_, o, err := lockWithFolders(ctx, w.Registry, item, spec.ObjectID, w.Roots)
	var locked *registry.LockedError
	if errors.As(err, &locked) {
		return base.Snooze(deleteWait, registry.ReasonLocked, locked.Error())
	} else if err != nil {
		return err
	}
	d, err := w.mark(ctx, item, o)
	if errors.Is(err, registry.ErrIntentOpen) {
		return base.Snooze(deleteWait, registry.ReasonBlocked, "a version of the object is being written")
	} else if err != nil {
		return err
	}
	text := []byte(d.Tombstone)
	if d.Tombstone == "" {
		if text, err = earlierTombstone(d); err != nil {
			return err
		}
	}
	for _, root := range w.Roots {
		if err := item.Writable(ctx); err != nil {
			return err
		}
		if err := root.Bury(ctx, o.Stored(), d.ObjectID, text); err != nil {
			return err
		}
	}
	if d.EZIDItem != "" {
		if err := w.Names.Withdraw(ctx, item, d.ObjectID, d.EZIDItem); err != nil {
			return err
		}
	}
	return w.Registry.RecordDeletion(ctx, item.Lease(), d.ObjectID, []registry.Premis{{
		ID: premis.EventID(item.ID, string(premis.Deletion), "").Value, ObjectID: d.ObjectID, ItemID: item.ID, // for all versions: they are all gone
		Type: string(premis.Deletion), At: item.Now(), Agent: "Holdfast " + w.Version, Outcome: "success",
		Detail: fmt.Sprintf("asked for by %s, approved by %s: %s", d.AskedBy, d.ApprovedBy, d.Reason),
	}})
}

// mark records a description of the object and hides the object from readers.
func (w *Delete) mark(ctx context.Context, item *base.Item, o registry.Object) (_ registry.Deletion, err error) {
	id := o.ID
	if o.Deletion.Gone() {
		return w.Registry.MarkDeleting(ctx, item.Lease(), id, o.Deletion.Last) // an earlier attempt has marked it
	}
	// A replica that this worker cannot reach would outlive its object.
	for _, v := range o.Versions {
		for _, at := range v.Replicas {
			if _, err := w.Roots.Of(at.Storage); err != nil {
				return registry.Deletion{}, fmt.Errorf("delete %s from storage %q, which this worker does not know; name it in HOLDFAST_STORAGE_URL: %w", id, at.Storage, err)
			}
		}
	}
	last := registry.Remains{Version: o.Head}
	if last.Files, err = w.filesDigest(ctx, o); err != nil {
		return registry.Deletion{}, err
	}
	for _, root := range w.Roots {
		if last.Inventory, err = inventoryDigest(ctx, root.Root, o.Stored()); err != nil || last.Inventory != "" {
			break
		}
	}
	if err != nil {
		return registry.Deletion{}, err
	}
	return w.Registry.MarkDeleting(ctx, item.Lease(), id, last)
}

// filesDigest returns the digest of the list of the last version's files.
func (w *Delete) filesDigest(ctx context.Context, o registry.Object) (string, error) {
	h := sha256.New()
	for after := ""; ; {
		files, err := w.Registry.Files(ctx, o.ID, o.Head, after, filesAtATime)
		if err != nil {
			return "", err
		}
		for _, f := range files {
			digest := f.Digests["sha512"]
			if digest == "" {
				digest = f.Digests["sha256"]
			}
			h.Write([]byte(digest + "  " + f.Path + "\n"))
			after = f.Path
		}
		if len(files) == 0 {
			return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
		}
	}
}

// inventoryDigest returns the digest of an object's root inventory, or "" if there is none: a
// damaged object can be deleted too.
func inventoryDigest(ctx context.Context, root *ocfl.Root, id string) (string, error) {
	if _, err := root.Head(ctx, id); errors.Is(err, ocfl.ErrNotFound) || errors.Is(err, ocfl.ErrIDTaken) {
		return "", nil
	}
	base, err := root.ObjectKey(id)
	if err != nil {
		return "", err
	}
	in, err := root.Store().Open(ctx, base+"/inventory.json", 0, -1)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, in)
	if err := errors.Join(err, in.Close()); err != nil {
		return "", fmt.Errorf("read inventory of %s: %w", id, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// earlierTombstone returns the file that remains in the storages of an object that an earlier program has
// marked, which may have left it in some. All attempts produce the same bytes.
func earlierTombstone(d registry.Deletion) ([]byte, error) {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false)
	err := to.Encode(struct {
		ObjectID   string           `json:"object_id"`
		Reason     string           `json:"reason"`
		AskedBy    string           `json:"asked_by"`
		AskedAt    time.Time        `json:"asked_at"`
		ApprovedBy string           `json:"approved_by"`
		ApprovedAt *time.Time       `json:"approved_at"`
		ItemID     string           `json:"item_id"`
		Last       registry.Remains `json:"last"`
	}{d.ObjectID, d.Reason, d.AskedBy, d.AskedAt.UTC(), d.ApprovedBy, d.ApprovedAt, d.ItemID, d.Last})
	if err != nil {
		return nil, fmt.Errorf("encode tombstone of %s: %w", d.ObjectID, err)
	}
	return out.Bytes(), nil
}
