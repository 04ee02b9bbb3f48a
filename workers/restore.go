package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/parcel"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// restoreStuck is how long a restore may go without progress: of a large one the store takes that long to put the file together.
const restoreStuck = 2 * time.Hour

// Restore brings a version of an object to where its depositors fetch it: one tar file on the staging volume, which holds a valid bag.
// It is written under a name of the attempt's own, from whatever storage has the bytes right, read back and judged there, and only then
// given the name that the Registry tells people, in one step. So nobody ever finds half of it, or a wrong byte in it.
type Restore struct {
	base.Worker
	Registry interface {
		registry.Preserving
		registry.Consulting
	}
	Objects ocfl.Roots
	Staging storage.Store
	Interim interim.Store
	Version string
	Keep    time.Duration // for how long it can be fetched
	Part    int64         // bytes between two marks that a successor goes on from; 0: 16 MiB, and more of very large files

	volume volume
}

// Stage implements base.Handler.
func (w *Restore) Stage() registry.Stage { return registry.Restore }

// StuckAfter implements base.Handler.
func (w *Restore) StuckAfter() time.Duration {
	if w.StuckFor > 0 {
		return w.StuckFor
	}
	return restoreStuck
}

// Work implements base.Handler.
func (w *Restore) Work(ctx context.Context, item *base.Item) error {
	known, err := w.Registry.RestorationOf(ctx, item.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return base.Fatal(err)
	} else if err != nil {
		return err
	}
	if known.ReadyAt == nil {
		if err := w.restore(ctx, item, known); err != nil {
			return err
		}
	}
	return release(ctx, item, item.ID, w.Staging, w.Interim)
}

// restore does all that is left to do of a restore that is not ready.
func (w *Restore) restore(ctx context.Context, item *base.Item, known registry.Restoration) error {
	o, err := w.Registry.Object(ctx, known.ObjectID)
	if err != nil {
		return err
	}
	if o.Gone != "" {
		return base.Content(fmt.Errorf("object %s is no more: %s", o.ID, o.Deletion.Text()))
	}
	source, err := w.source(o, known.Version)
	if err != nil {
		return err
	}
	r := &restoring{Restore: w, item: item, source: source, bytes: item.Progress(base.TransferredBytes, "bytes").Kept()}
	if err := r.begin(ctx, o, known.Version); err != nil {
		return err
	}
	if err := r.thaw(ctx); err != nil {
		return err
	}
	if err := r.write(ctx); err != nil {
		return err
	}
	sum, err := r.validate(ctx)
	if err != nil {
		return err
	}
	place, err := r.publish(ctx)
	if err != nil {
		return err
	}
	item.SetSize(r.size, r.files)
	item.SetDone(r.size, r.files)
	_, err = w.Registry.RecordRestoration(ctx, item.Lease(), registry.RestorationRecord{
		RestoredParcel: registry.RestoredParcel{Name: r.name(), Place: place, SizeBytes: r.size, SHA256: sum, Files: r.files},
		Keep:           w.Keep,
		Events: []registry.Premis{{
			ID: premis.EventID(item.ID, string(premis.Dissemination), "").Value, ObjectID: o.ID, Version: known.Version, ItemID: item.ID,
			Type: string(premis.Dissemination), At: item.Now(), Agent: "Holdfast " + w.Version, Outcome: "success",
			Detail: fmt.Sprintf("restored as %s, a bag of %d files, %d bytes, sha256 %s, for %s%s", r.name(), r.files, r.size, sum, known.AskedBy, source.findings()),
		}},
	})
	return err
}

// restoring is a restore under way.
type restoring struct {
	*Restore
	item   *base.Item
	source *copies
	parcel *parcel.Parcel
	size   int64 // of the tar
	files  int64 // of the object that are in it
	done   restoreNote
	bytes  *base.Progress
}

// begin lays the parcel out, as an earlier attempt did: the same bytes, since nothing of it depends on the attempt but the agent, which
// is noted.
func (r *restoring) begin(ctx context.Context, o registry.Object, version int) (err error) {
	if r.done, _, err = base.Get[restoreNote](ctx, r.item, noteRestore); err != nil {
		return err
	}
	if r.done.Agent == "" {
		r.done.Agent = "Holdfast " + r.Version
	}
	r.parcel, err = parcel.New(ctx, o, version, r.source.files, r.source.reader, parcel.Options{Bag: true, System: true, At: r.item.CreatedAt, Agent: r.done.Agent})
	if errors.Is(err, parcel.ErrName) {
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

// validate reads the file back, judges it as whoever fetches it will, and returns its SHA-256. What is not a valid bag of the size that it
// must have is written anew by the next attempt.
func (r *restoring) validate(ctx context.Context) (sum string, err error) {
	in, err := r.Staging.Open(ctx, r.done.Key, 0, -1)
	if err != nil {
		return "", fmt.Errorf("read restored parcel back: %w", err)
	}
	defer in.Close()
	h := sha256.New()
	progress := r.item.Progress("bytes read back", "bytes")
	progress.SetEnd(r.size)
	read := &counted{r: io.TeeReader(storage.Interruptible(ctx, in), h), count: progress.Add}
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

// publish gives the file, which was judged, its final name, of this attempt alone: what a superseded one may still write is told to nobody.
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

var _ base.Handler = (*Restore)(nil)
