// Package content opens what was downloaded: it unpacks containers and judges what came out.
//
// A file or a manifest's files are taken as they are. A container is unpacked into staging, and
// goes on after the file at which an earlier attempt stopped. What came out is judged as a BagIt
// bag, or against the container's own mrt-manifest.txt. Everything that came out of a container
// came out of the very bytes that were downloaded: otherwise what was damaged here is had anew
// (R6), and only what two readings show is called the deposit's fault.
//
// It does not know what object the files become: that is package version's.
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

// noteContents is the name under which an attempt notes what it unpacked and judged, so that a job
// that has to wait afterwards does not do so again.
const noteContents = "contents"

// Opener opens payloads. Its methods may be called concurrently, for different items.
type Opener struct {
	Payloads payload.Files
	Volume   room.Volume
	Limits   unpack.Limits
	Gate     *gate.Gate // for memory to decompress containers in; nil: as much as they take
	TempDir  string     // of temporary files, which large bags need
}

// Open lists the producer's files: as downloaded, or as they came out of the container, which is
// unpacked and judged unless an earlier attempt did. A payload that breaks its rules is a content
// fault.
func (w *Opener) Open(ctx context.Context, item *base.Item) (result.Contents, error) {
	got, err := result.DownloadOf(item)
	if err != nil {
		return result.Contents{}, err
	}
	if _, err := w.Payloads.Staging.Stat(ctx, got.List); err != nil {
		return result.Contents{}, payload.Gone(err)
	}
	if !payload.Unpacks(item.Spec().Type) {
		return got.Contents(item.Spec().Type), nil
	}
	c, ok, err := base.Get[result.Contents](ctx, item, noteContents)
	if err != nil {
		return c, err
	}
	if ok && c.From == got.List {
		_, err := w.Payloads.Staging.Stat(ctx, c.List)
		if !errors.Is(err, storage.ErrNotFound) {
			return c, err
		}
	}
	return w.unpacked(ctx, item, got)
}

// OpenAnew unpacks and judges the container whatever was done before.
func (w *Opener) OpenAnew(ctx context.Context, item *base.Item, got result.Downloaded) (result.Contents, error) {
	if err := forgetUnpacked(ctx, item); err != nil {
		return result.Contents{}, err
	}
	return w.unpacked(ctx, item, got)
}

// forgetUnpacked makes the next unpacking begin at the first file.
func forgetUnpacked(ctx context.Context, item *base.Item) error {
	return base.PutAll(ctx, item, map[string]any{noteUnpacking: unpacked{}, noteContents: result.Contents{}})
}

// unpacked takes the container apart, from where an earlier attempt stopped.
func (w *Opener) unpacked(ctx context.Context, item *base.Item, got result.Downloaded) (result.Contents, error) {
	var container staging.File
	for f, err := range got.Contents("").All(ctx, w.Payloads.Staging) {
		if err != nil {
			return result.Contents{}, payload.Gone(err)
		}
		container = f
	}
	once := func() (result.Contents, error) {
		return w.unpack(ctx, item, container, result.Contents{From: got.List, Kind: registry.ContainerType})
	}
	c, err := once()
	if errors.Is(err, errOtherOrder) {
		err = w.removeUnpacked(ctx, item)
		if err == nil {
			c, err = once()
		}
	}
	if err != nil {
		return c, noteFaults(item, w.blame(ctx, item, got, w.GiveUp(ctx, item, err)))
	}
	return c, base.Put(ctx, item, noteContents, c)
}

// noteFaults tells in the item's history all that is wrong with a container that is refused: the
// item's note has room for a few.
func noteFaults(item *base.Item, err error) error {
	refusal := intake.ContainerRefusal(err)
	if refusal == nil || !base.ContentFault(err) {
		return err
	}
	return errors.Join(err, item.Event("container-refused", refusal.Report))
}

// GiveUp removes what was unpacked when no attempt can use it: by err the deposit is at fault, part
// of it is gone, or others wait for the room that it takes. In all other cases the next attempt
// goes on after it. Nothing refers to what was unpacked before a version is announced. It returns
// err, joined with its own error.
func (w *Opener) GiveUp(ctx context.Context, item *base.Item, err error) error {
	var full *registry.NoSpaceError
	useless := base.ContentFault(err) || errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrNoSpace) || errors.As(err, &full)
	if !useless || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, w.removeUnpacked(ctx, item))
}

// removeUnpacked removes what all attempts so far have unpacked.
func (w *Opener) removeUnpacked(ctx context.Context, item *base.Item) error {
	if err := forgetUnpacked(ctx, item); err != nil {
		return err
	}
	if err := item.Writable(ctx); err != nil { // of what a successor may follow nothing is taken away
		return err
	}
	for n := range item.Lease().N {
		earlier := registry.Lease{ItemID: item.ID, N: n + 1}
		if err := w.Payloads.Staging.DeletePrefix(ctx, staging.Key(earlier, unpackedFolder)); err != nil {
			return fmt.Errorf("remove what was unpacked: %w", err)
		}
	}
	return nil
}

// blame makes sure that the depositor is not blamed for what happened to the bytes here (R6).
func (w *Opener) blame(ctx context.Context, item *base.Item, got result.Downloaded, err error) error {
	if !base.ContentFault(err) || ctx.Err() != nil {
		return err
	}
	if damage := w.Payloads.Examine(ctx, item, got); damage != nil {
		return damage
	}
	return err
}

// Mend has what err found damaged in staging made anew (R6): what was downloaded by Download, what
// was made of it by the next attempt. It returns other errors as they are.
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
