// Package restore writes a version of an object as one tar, a bag, to the staging volume.
//
// It writes the tar under a name of the attempt's own, from any storage that has the bytes right
// (package replica). It reads the tar back and judges it, and only then gives it its final name, in
// one step. Incomplete or damaged output thus never gets its final name. A successor continues at
// the last mark, inside a file. Archived files are thawed all at once; meanwhile the item waits
// without a worker or room. The package does not know who may download the tar, or for how long.
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
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/workers/room"
)

// Restorer restores versions. Its methods may be called concurrently for different items.
type Restorer struct {
	Registry registry.Inventory
	Objects  ocfl.Roots
	Staging  storage.Store
	Volume   room.Volume // the volume of Staging
	Version  string      // of the program
	Part     int64       // bytes between two marks from which a successor can continue; 0: 16 MiB, and more for very large files
}

// Restored describes a tar under its final name.
type Restored struct {
	registry.RestoredParcel
	ObjectID string
	Findings string // what was wrong in which storage, for people; "" if nothing was
}

// Restore writes a requested version to its final name, continuing where an earlier attempt
// stopped. It does not record that in the Registry. If no storage has a file right, a person is
// needed. It waits for archived files.
func (w *Restorer) Restore(ctx context.Context, item *base.Item, known registry.Restoration) (made Restored, err error) {
	o, err := w.Registry.Object(ctx, known.ObjectID)
	if err != nil {
		return made, err
	}
	if o.Gone != "" {
		return made, base.Content(fmt.Errorf("object %s was deleted: %s", o.ID, o.Deletion.Text()))
	}
	source, err := w.findReplicas(o, known.Version)
	if err != nil {
		return made, err
	}
	r := &restoreRun{Restorer: w, item: item, source: source, bytes: item.Progress(base.TransferredBytes, "bytes").Kept()}
	if err := r.layOut(ctx, o, known.Version); err != nil {
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

// restoreRun is a running restore.
type restoreRun struct {
	*Restorer
	item   *base.Item
	source *replicas
	bag    *export.Package
	size   int64 // of the tar
	files  int64 // of the object in the tar
	done   restoreNote
	bytes  *base.Progress
}

// layOut plans the tar, with the same bytes as an earlier attempt: they depend on the attempt only
// by the agent, which is recorded.
func (r *restoreRun) layOut(ctx context.Context, o registry.Object, version int) (err error) {
	if r.done, _, err = base.Get[restoreNote](ctx, r.item, noteRestore); err != nil {
		return err
	}
	if r.done.Agent == "" {
		r.done.Agent = "Holdfast " + r.Version
	}
	r.bag, err = export.New(ctx, o, version, r.source.files, r.source.reader, export.Options{Bag: true, System: true, At: r.item.CreatedAt, Agent: r.done.Agent})
	if errors.Is(err, export.ErrName) {
		return base.Content(fmt.Errorf("%w; no bag can hold it: fetch the files by `holdfast object export`", err))
	} else if err != nil {
		return err
	}
	if r.size, err = r.bag.TarSize(ctx); err != nil {
		return err
	}
	for e, err := range r.bag.Entries(ctx) {
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

// name returns the file's name, cut to a valid length.
func (r *restoreRun) name() string {
	const most, end = 200, ".tar"
	name := r.bag.Base()
	return name[:min(len(name), most)] + end
}

// validate reads the file back, judges it as depositors would, and returns its SHA-256. If it is
// not a valid bag of the right size, the next attempt writes it again.
func (r *restoreRun) validate(ctx context.Context) (sum string, err error) {
	ctx, span := tracing.Start(ctx, "tar read back")
	defer func() { span.End(err) }()
	in, err := r.Staging.Open(ctx, r.done.Key, 0, -1)
	if err != nil {
		return "", fmt.Errorf("read restored file back: %w", err)
	}
	defer in.Close()
	h := sha256.New()
	progress := r.item.Progress("bytes read back", "bytes")
	progress.SetEnd(r.size)
	read := progress.Reader(io.TeeReader(storage.Interruptible(ctx, in), h))
	report, err := bagit.ValidateTar(ctx, read, bagit.Options{})
	if err == nil {
		_, err = io.Copy(io.Discard, read) // the bytes after the end of the tar
	}
	if err != nil {
		return "", fmt.Errorf("read restored file back: %w", err)
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
	return "", fmt.Errorf("the restored file on the staging volume is damaged: %s; it will be written again", strings.Join(faults, "; "))
}

// publish gives the judged file its final name. The name contains this attempt's number, so a
// superseded attempt cannot write it.
func (r *restoreRun) publish(ctx context.Context) (place string, err error) {
	place = registry.RestoredKey(r.item.Lease(), r.name())
	if err := r.item.Writable(ctx); err != nil {
		return "", err
	}
	if _, err := storage.Copy(ctx, r.Staging, place, r.Staging, r.done.Key); err != nil {
		return "", fmt.Errorf("name the restored file: %w", err)
	}
	return place, nil
}
