// Package restore writes a version of an object as one tar, a bag, onto the staging volume.
//
// The tar is written under a name of the attempt's own, from whatever storage has the bytes right
// (package replica), read back and judged there, and only then given its final name, in one step.
// So nobody ever finds half of it, or a wrong byte in it. A successor goes on at the last mark,
// inside a file. Archived files are thawed all at once, and the item waits without a worker or
// room.
package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/room"
)

// Restorer makes restored parcels. Its methods may be called concurrently, for different items.
type Restorer struct {
	Registry registry.Inventory
	Objects  ocfl.Roots
	Staging  storage.Store
	Volume   room.Volume // that Staging is
	Version  string      // of the program
	Part     int64       // bytes between two marks that a successor goes on from; 0: 16 MiB, and more of very large files
}

// Restored is a parcel that lies under its final name.
type Restored struct {
	registry.RestoredParcel
	ObjectID string
	Findings string // what was wrong in which storage, for people; "" when nothing was
}

// Restore brings what was asked for to its final name, from where an earlier attempt stood. It does
// not tell the Registry. A file that is right in no storage needs a person; archived files are
// waited for.
func (w *Restorer) Restore(ctx context.Context, item *base.Item, known registry.Restoration) (made Restored, err error) {
	o, err := w.Registry.Object(ctx, known.ObjectID)
	if err != nil {
		return made, err
	}
	if o.Gone != "" {
		return made, base.Content(fmt.Errorf("object %s is no more: %s", o.ID, o.Deletion.Text()))
	}
	source, err := w.source(o, known.Version)
	if err != nil {
		return made, err
	}
	r := &restoring{Restorer: w, item: item, source: source, bytes: item.Progress(base.TransferredBytes, "bytes").Kept()}
	if err := r.begin(ctx, o, known.Version); err != nil {
		return made, err
	}
	if err := r.thaw(ctx); err != nil {
		return made, err
	}
	if err := r.write(ctx); err != nil {
		return made, err
	}
	made.SHA256, err = r.validate(ctx)
	if err != nil {
		return made, err
	}
	made.Name, made.SizeBytes, made.Files = r.name(), r.size, r.files
	made.ObjectID, made.Findings = o.ID, source.findings()
	made.Place, err = r.publish(ctx)
	return made, err
}

// restoring is a restore under way.
type restoring struct {
	*Restorer
	item   *base.Item
	source *replicas
	parcel *export.Parcel
	size   int64 // of the tar
	files  int64 // of the object that are in it
	done   restoreNote
	bytes  *base.Progress
}

// begin lays the parcel out, as an earlier attempt did: the same bytes, since nothing of it depends
// on the attempt but the agent, which is noted.
func (r *restoring) begin(ctx context.Context, o registry.Object, version int) (err error) {
	if r.done, _, err = base.Get[restoreNote](ctx, r.item, noteRestore); err != nil {
		return err
	}
	if r.done.Agent == "" {
		r.done.Agent = "Holdfast " + r.Version
	}
	r.parcel, err = export.New(ctx, o, version, r.source.files, r.source.reader, export.Options{Bag: true, System: true, At: r.item.CreatedAt, Agent: r.done.Agent})
	if errors.Is(err, export.ErrName) {
		return base.Content(fmt.Errorf("%w; no bag can hold it: fetch the files by `holdfast object export`", err))
	} else if err != nil {
		return err
	}
	if r.size, err = r.parcel.TarSize(ctx); err != nil {
		return err
	}
	for e, err := range r.parcel.Entries(ctx) {
		if err != nil {
			return err
		}
		if e.Path != "" {
			r.files++
		}
	}
	r.bytes.SetEnd(r.size)
	return nil
}

// name is that of the file, for people: no longer than names may be.
func (r *restoring) name() string {
	const most, end = 200, ".tar"
	name := r.parcel.Base()
	return name[:min(len(name), most)] + end
}

// validate reads the file back, judges it as depositors will, and returns its SHA-256. A file that
// is not a valid bag of the right size is written anew by the next attempt.
func (r *restoring) validate(ctx context.Context) (sum string, err error) {
	in, err := r.Staging.Open(ctx, r.done.Key, 0, -1)
	if err != nil {
		return "", fmt.Errorf("read restored parcel back: %w", err)
	}
	defer in.Close()
	h := sha256.New()
	progress := r.item.Progress("bytes read back", "bytes")
	progress.SetEnd(r.size)
	read := progress.Reader(io.TeeReader(storage.Interruptible(ctx, in), h))
	report, err := bagit.ValidateTar(ctx, read, bagit.Options{})
	if err == nil {
		_, err = io.Copy(io.Discard, read) // what stands behind the end of the tar
	}
	if err != nil {
		return "", fmt.Errorf("read restored parcel back: %w", err)
	}
	var faults []string
	for _, f := range report.Errors() {
		faults = append(faults, f.String())
	}
	if n := progress.Position(); n != r.size {
		faults = append(faults, fmt.Sprintf("it has %d bytes, not %d", n, r.size))
	}
	if sum = hex.EncodeToString(h.Sum(nil)); sum != r.done.SHA256 {
		faults = append(faults, fmt.Sprintf("its sha256 is %s, and %s was written", sum, r.done.SHA256))
	}
	if report.Valid && len(faults) == 0 {
		return sum, nil
	}
	if err := r.startOver(ctx); err != nil {
		return "", err
	}
	return "", fmt.Errorf("what was written on the staging volume does not read as it was written: %s; it is written anew", strings.Join(faults, "; "))
}

// publish gives the file, which was judged, its final name. The name is this attempt's alone, so a
// superseded attempt cannot write it.
func (r *restoring) publish(ctx context.Context) (place string, err error) {
	place = registry.RestoredKey(r.item.Lease(), r.name())
	if err := r.item.Writable(ctx); err != nil {
		return "", err
	}
	if _, err := storage.Copy(ctx, r.Staging, place, r.Staging, r.done.Key); err != nil {
		return "", fmt.Errorf("give the restored parcel its name: %w", err)
	}
	return place, nil
}
