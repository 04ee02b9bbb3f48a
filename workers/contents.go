package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// noteContents is the name under which an attempt notes what it unpacked and judged, so that a job that has to wait
// afterwards does not do so again.
const noteContents = "contents"

// contents is a list of the producer's files.
type contents struct {
	From   string               `json:"from"`             // key of the list of what was downloaded
	List   string               `json:"list"`             // key of the list of staged files
	Digest string               `json:"digest,omitempty"` // of that list
	Kind   registry.PayloadType `json:"kind"`             // never auto
	Folder string               `json:"folder,omitempty"` // where the files lie that describe it; "" for the top
}

// all yields the files of the list that was written. One of a program of before, which noted no digest of it, is as one that is damaged.
func (c contents) all(ctx context.Context, s storage.Store) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		if c.Digest == "" {
			yield(staging.File{}, fmt.Errorf("list %s has no digest, as an earlier program wrote it: %w", c.List, staging.ErrDamaged))
			return
		}
		for f, err := range staging.ReadList[staging.File](ctx, s, c.List, c.Digest) {
			if err == nil && !c.owns(f.Key) {
				yield(f, fmt.Errorf("list %s names %s, which is not the item's: %w", c.List, f.Key, staging.ErrDamaged))
				return
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// owns says whether a key is of the item whose list it is.
func (c contents) owns(key string) bool {
	id, _, _ := strings.Cut(strings.TrimPrefix(c.List, staging.ItemsPrefix), "/")
	return staging.Owned(id, key)
}

// contents lists the producer's files: as downloaded, or as they came out of the container.
func (w *Process) contents(ctx context.Context, item *base.Item) (contents, error) {
	got, err := result[downloaded](item, resultDownload, "nothing is noted as downloaded; requeue the item at download")
	if err != nil {
		return contents{}, err
	}
	if _, err := w.payloads.staging.Stat(ctx, got.List); err != nil {
		return contents{}, gone(err)
	}
	if !unpacks(item.Spec().Type) {
		return got.contents(item.Spec().Type), nil
	}
	c, ok, err := base.Get[contents](ctx, item, noteContents)
	if err != nil {
		return c, err
	}
	if ok && c.From == got.List {
		_, err := w.payloads.staging.Stat(ctx, c.List)
		if !errors.Is(err, storage.ErrNotFound) {
			return c, err
		}
	}
	return w.unpacked(ctx, item, got)
}

// unpackAnew takes the container apart whatever was done before.
func (w *Process) unpackAnew(ctx context.Context, item *base.Item, got downloaded) (contents, error) {
	if err := forgetUnpacked(ctx, item); err != nil {
		return contents{}, err
	}
	return w.unpacked(ctx, item, got)
}

// forgetUnpacked makes the next unpacking begin at the first file.
func forgetUnpacked(ctx context.Context, item *base.Item) error {
	return base.PutAll(ctx, item, map[string]any{noteUnpacking: unpacked{}, noteContents: contents{}})
}

// unpacked takes the container apart, from where an earlier attempt stopped.
func (w *Process) unpacked(ctx context.Context, item *base.Item, got downloaded) (contents, error) {
	var container staging.File
	for f, err := range got.contents("").all(ctx, w.payloads.staging) {
		if err != nil {
			return contents{}, gone(err)
		}
		container = f
	}
	unpack := func() (contents, error) {
		return w.unpack(ctx, item, container, contents{From: got.List, Kind: registry.ContainerType})
	}
	c, err := unpack()
	if errors.Is(err, errOtherOrder) {
		err = w.removeUnpacked(ctx, item)
		if err == nil {
			c, err = unpack()
		}
	}
	if err != nil {
		return c, noteFaults(item, w.blame(ctx, item, got, w.giveUp(ctx, item, err)))
	}
	return c, base.Put(ctx, item, noteContents, c)
}

// noteFaults tells in the item's history all that is wrong with a container that is refused: the item's note has room for a
// few.
func noteFaults(item *base.Item, err error) error {
	refusal := intake.ContainerRefusal(err)
	if refusal == nil || !base.ContentFault(err) {
		return err
	}
	return errors.Join(err, item.Event("container-refused", refusal.Report))
}

// giveUp removes what was unpacked, which may be much, and to which nothing refers before a version is announced, when
// nobody is to go on with it: the deposit is at fault, part of it is gone, or others wait for the room that it takes. In
// all other cases the next attempt goes on after it. It returns err, with its own.
func (w *Process) giveUp(ctx context.Context, item *base.Item, err error) error {
	var full *registry.NoSpaceError
	useless := base.ContentFault(err) || errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrNoSpace) || errors.As(err, &full)
	if !useless || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, w.removeUnpacked(ctx, item))
}

// removeUnpacked removes what all attempts so far have unpacked.
func (w *Process) removeUnpacked(ctx context.Context, item *base.Item) error {
	if err := forgetUnpacked(ctx, item); err != nil {
		return err
	}
	if err := item.Writable(ctx); err != nil { // of what a successor may follow nothing is taken away
		return err
	}
	for n := range item.Lease().N {
		earlier := registry.Lease{ItemID: item.ID, N: n + 1}
		if err := w.payloads.staging.DeletePrefix(ctx, staging.Key(earlier, unpackedFolder)); err != nil {
			return fmt.Errorf("remove what was unpacked: %w", err)
		}
	}
	return nil
}

// result returns a durable result of an earlier stage, which is there unless somebody sent the item past it.
func result[T any](item *base.Item, name, missing string) (v T, err error) {
	ok, err := item.Result(name, &v)
	if err == nil && !ok {
		err = base.Fatal(errors.New(missing))
	}
	return v, err
}

// blame makes sure that the depositor is not blamed for what happened to the bytes here (R6).
func (w *Process) blame(ctx context.Context, item *base.Item, got downloaded, err error) error {
	if !base.ContentFault(err) || ctx.Err() != nil {
		return err
	}
	if damage := w.payloads.examine(ctx, item, got); damage != nil {
		return damage
	}
	return err
}

// examine reads back what was downloaded. What is damaged is removed, and the item goes back to Download, which fetches just
// that again. nil means that all is as it came.
func (p payloads) examine(ctx context.Context, item *base.Item, got downloaded) error {
	var bad faults
	for f, err := range got.contents("").all(ctx, p.staging) {
		if err != nil {
			return gone(err)
		}
		err := p.verified(ctx, item, f, func(io.Reader) error { return nil })
		switch {
		case err == nil:
			continue
		case !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, staging.ErrDamaged):
			return err
		}
		if err := p.staging.Delete(ctx, f.Key); err != nil {
			return fmt.Errorf("drop damaged %s: %w", f.Key, err)
		}
		bad.damaged(f)
	}
	return base.Back(registry.Download, bad.err(nil))
}

// verified has fn read a staged file, whose bytes must be those that it was noted with: see [staging.Verified].
func (p payloads) verified(ctx context.Context, item *base.Item, f staging.File, fn func(io.Reader) error) error {
	algorithm := item.Spec().Profile.Digests()
	read := item.Progress("bytes read back", "bytes").Add
	return staging.Verified(ctx, p.staging, f.Key, algorithm, f.Digests[algorithm], func(r io.Reader) error {
		counts := &counted{r: r, count: read}
		if err := fn(counts); err != nil {
			return err
		}
		_, err := p.buffers.Copy(io.Discard, counts)
		return err
	})
}

// mend sees to it that what was found damaged in staging is had anew (R6): what was downloaded by Download, what we made of it by the next
// attempt. Other errors are returned as they are.
func (w *Process) mend(ctx context.Context, item *base.Item, err error) error {
	if !errors.Is(err, staging.ErrDamaged) || ctx.Err() != nil {
		return err
	}
	got, missing := result[downloaded](item, resultDownload, "nothing is noted as downloaded; requeue the item at download")
	if missing != nil {
		return missing
	}
	if back := w.payloads.examine(ctx, item, got); back != nil {
		return back
	}
	return errors.Join(err, w.removeUnpacked(ctx, item))
}

// gone sends the item back when the list of what was downloaded is not there.
func gone(err error) error {
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, staging.ErrDamaged) {
		return base.Back(registry.Download, fmt.Errorf("what was downloaded is gone from staging, or damaged there, and is fetched again: %w", err))
	}
	return err
}

// digestOf reads a staged file back for its digest of another algorithm than it was noted with.
func (w *Process) digestOf(ctx context.Context, item *base.Item, f staging.File, algorithm string) (string, error) {
	d, err := fixity.NewDigester(algorithm)
	if err != nil {
		return "", err
	}
	err = w.payloads.verified(ctx, item, f, func(r io.Reader) error {
		_, err := w.payloads.buffers.Copy(d, r)
		return err
	})
	return d.Sums()[algorithm], err
}
