// Package content opens downloaded payloads: it unpacks containers and judges their contents.
//
// A file, or the files of a manifest, are used as they are. A container is unpacked into staging; a
// repeat continues after the file at which an earlier attempt stopped. Its contents are judged as a
// BagIt bag, or against the container's own mrt-manifest.txt.
//
// The unpacked files are guaranteed to come from the bytes that were downloaded. Staged data that
// was damaged is made again (R6), and the deposit is blamed only for faults that two readings show.
//
// The package does not know what object the files become: that is package version's.
package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/room"
)

// noteContents is the interim entry for the unpacked and judged contents, so that a job that has to
// wait does not repeat the work.
const noteContents = "contents"

// Opener opens payloads. Its methods may be called concurrently for different items.
type Opener struct {
	Payloads payload.Files
	Volume   room.Volume
	Limits   unpack.Limits
	Gate     *gate.Gate // limits the memory for decompressing; nil: no limit
	TempDir  string     // for temporary files, which large bags need
}

// Open returns the producer's files: as downloaded, or as unpacked from the container. It unpacks
// and judges the container unless an earlier attempt did. A payload that breaks its rules is a
// content fault.
func (w *Opener) Open(ctx context.Context, item *base.Item) (result.Contents, error) {
	got, err := result.DownloadOf(item)
	if err != nil {
		return result.Contents{}, err
	}
	if err := got.Contents("").Staged(ctx, w.Payloads.Staging); err != nil {
		return result.Contents{}, payload.BackIfGone(err)
	}
	if !payload.Unpacks(item.Spec().Type) {
		return got.Contents(item.Spec().Type), nil
	}
	c, ok, err := base.Get[result.Contents](ctx, item, noteContents)
	if err != nil {
		return c, err
	}
	if ok && c.From == got.Key {
		err := c.Staged(ctx, w.Payloads.Staging)
		if !errors.Is(err, storage.ErrNotFound) {
			return c, err
		}
	}
	return w.unpackAndNote(ctx, item, got)
}

// OpenAnew unpacks and judges the container, and ignores what was done before.
func (w *Opener) OpenAnew(ctx context.Context, item *base.Item, got result.Downloaded) (result.Contents, error) {
	if err := forgetUnpacked(ctx, item); err != nil {
		return result.Contents{}, err
	}
	return w.unpackAndNote(ctx, item, got)
}

// forgetUnpacked makes the next unpacking start at the first file.
func forgetUnpacked(ctx context.Context, item *base.Item) error {
	return base.PutAll(ctx, item, map[string]any{noteUnpacking: unpacked{}, noteContents: result.Contents{}})
}

// unpackAndNote unpacks the container, starting where an earlier attempt stopped, and notes the
// contents.
func (w *Opener) unpackAndNote(ctx context.Context, item *base.Item, got result.Downloaded) (result.Contents, error) {
	var container staging.File
	for f, err := range got.Contents("").All(ctx, w.Payloads.Staging) {
		if err != nil {
			return result.Contents{}, payload.BackIfGone(err)
		}
		container = f
	}
	once := func() (result.Contents, error) {
		return w.unpack(ctx, item, container, result.Contents{From: got.Key, Kind: registry.ContainerType})
	}
	c, err := once()
	if errors.Is(err, errUnpackedDiffers) {
		err = w.removeUnpacked(ctx, item)
		if err == nil {
			c, err = once()
		}
	}
	if err != nil {
		return c, noteFaults(item, w.checkStaging(ctx, item, got, w.GiveUp(ctx, item, err)))
	}
	return c, base.Put(ctx, item, noteContents, c)
}

// noteFaults records in the item's history all faults of a refused container; the item's note has
// room for only a few.
func noteFaults(item *base.Item, err error) error {
	refusal := intake.ContainerRefusal(err)
	if refusal == nil || !base.ContentFault(err) {
		return err
	}
	return errors.Join(err, item.Event(registry.EventContainerRefused, refusal.Report))
}

// GiveUp removes the unpacked files if no attempt can use them: err blames the deposit, a part of
// them is gone, or others wait for their room. In all other cases the next attempt continues after
// them. Nothing refers to unpacked files before a version is announced. It returns err, joined with
// its own error.
func (w *Opener) GiveUp(ctx context.Context, item *base.Item, err error) error {
	var full *registry.NoSpaceError
	useless := base.ContentFault(err) || errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrNoSpace) || errors.As(err, &full)
	if !useless || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, w.removeUnpacked(ctx, item))
}

// removeUnpacked removes the unpacked files of all attempts so far.
func (w *Opener) removeUnpacked(ctx context.Context, item *base.Item) error {
	if err := forgetUnpacked(ctx, item); err != nil {
		return err
	}
	if err := item.Writable(ctx); err != nil { // delete nothing that a successor may use
		return err
	}
	for n := range item.Lease().N {
		earlier := registry.Lease{ItemID: item.ID, N: n + 1}
		if err := w.Payloads.Staging.DeletePrefix(ctx, staging.Key(earlier, unpackedFolder)); err != nil {
			return fmt.Errorf("remove unpacked files: %w", err)
		}
	}
	return nil
}

// checkStaging replaces a content fault by a system fault if the staged container is damaged (R6).
func (w *Opener) checkStaging(ctx context.Context, item *base.Item, got result.Downloaded, err error) error {
	if !base.ContentFault(err) || ctx.Err() != nil {
		return err
	}
	if damage := w.Payloads.Examine(ctx, item, got); damage != nil {
		return damage
	}
	return err
}

// Mend makes staged data again that err found damaged (R6). A damaged download goes back to
// Download; damaged unpacked files are removed, and the next attempt makes them again. It returns
// other errors unchanged.
func (w *Opener) Mend(ctx context.Context, item *base.Item, err error) error {
	if !errors.Is(err, staging.ErrDamaged) || ctx.Err() != nil {
		return err
	}
	got, missing := result.DownloadOf(item)
	if missing != nil {
		return missing
	}
	if back := w.Payloads.Examine(ctx, item, got); back != nil {
		return back
	}
	return errors.Join(err, w.removeUnpacked(ctx, item))
}
