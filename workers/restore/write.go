package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// sha256Name is the digest by which people check what they fetch.
const sha256Name = "sha256"

// noteRestore is the key of the note of how far a restore's file is.
const noteRestore = "restore"

// restoreNote is how far a restore's file is.
type restoreNote struct {
	Agent string `json:"agent"`           // that the file names: the program of the attempt that began it
	Key   string `json:"key,omitempty"`   // of the file, once Whole
	Whole bool   `json:"whole,omitempty"` // it is committed, and was not judged yet
	// SHA256 is that of what was written, once Whole: what is read back has to come to the same.
	SHA256 string `json:"sha256,omitempty"`
	// Last is how far it came, and Sound the last place up to which all files were compared with
	// their digests: what is found wrong behind it is written anew from there.
	Last  *mark `json:"last,omitempty"`
	Sound *mark `json:"sound,omitempty"`
}

// mark is a place in the file that a writer can go on from.
type mark struct {
	Key    string             `json:"key"` // of its writer
	Stored storage.Checkpoint `json:"stored"`
	Point  export.Point       `json:"point"`
	Sum    fixity.State       `json:"sum"` // of all bytes before it
}

// offset is where the mark is; a nil one is at the beginning.
func (m *mark) offset() int64 {
	if m == nil {
		return 0
	}
	return m.Stored.Size
}

// write brings the file to its end, from where an earlier attempt stood.
func (r *restoring) write(ctx context.Context) error {
	if r.done.Whole {
		_, err := r.Staging.Stat(ctx, r.done.Key)
		if err == nil {
			r.bytes.Set(r.size)
			return nil
		} else if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		r.done = restoreNote{Agent: r.done.Agent}
	}
	for n := 0; ; n++ {
		nowhere := new(replica.NowhereError)
		err := r.writeOn(ctx, staging.Key(r.item.Lease(), fmt.Sprintf("restore-%d.tar", n)))
		switch {
		case err == nil:
			return nil
		case errors.As(err, &nowhere) && errors.Is(err, storage.ErrArchived):
			return r.askThaw(ctx, nowhere.Path)
		case errors.Is(err, export.ErrPoint) && r.done.Last.offset() > r.done.Sound.offset():
		case errors.As(err, new(*export.RewriteError)):
		default:
			return r.source.unreadable(ctx, err)
		}
		r.done.Last = r.done.Sound
		if err := r.save(ctx); err != nil {
			return err
		}
	}
}

// writeOn writes from the last mark to the end. Room is reserved before the first byte: for the
// whole file, and while what an earlier writer has left is still needed, for that, too (R24).
func (r *restoring) writeOn(ctx context.Context, key string) error {
	if err := r.reserve(ctx, r.size+r.done.Last.offset()); err != nil {
		return err
	}
	sum, err := fixity.NewDigester(sha256Name)
	if err != nil {
		return err
	}
	d := &parcelWriter{restoring: r, key: key, sum: sum, part: cmp.Or(r.Part, max(staging.MinPart, r.size/10_000))}
	at, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	r.bytes.Set(at.Offset)
	if at.Offset > 0 && at.Digests == nil {
		if err := d.mark(ctx, at); err != nil { // what the predecessor has left is not needed any more
			return err
		}
	}
	err = r.parcel.ContinueTar(ctx, io.MultiWriter(d.to, d.sum), at, func(size int64, between bool, point func() (export.Point, error)) error {
		return d.reached(ctx, size, between, point)
	})
	if err != nil {
		return err
	}
	if _, err := d.to.Commit(ctx); err != nil {
		return err
	}
	return d.note(ctx, restoreNote{Agent: r.done.Agent, Key: key, Whole: true, SHA256: d.sum.Sums()[sha256Name]})
}

func (r *restoring) reserve(ctx context.Context, bytes int64) error {
	return r.Volume.Reserve(ctx, r.item, bytes, 0, r.Volume.Full)
}

// shrink gives room back, as far as the volume's state lets the Registry write it down: what was
// promised holds in any case.
func (r *restoring) shrink(ctx context.Context, bytes int64) error {
	err := r.reserve(ctx, bytes)
	if full := new(registry.NoSpaceError); errors.As(err, &full) {
		return nil
	}
	return err
}

// startOver forgets a file that is not right, and removes it.
func (r *restoring) startOver(ctx context.Context) error {
	old := r.done
	r.done = restoreNote{Agent: old.Agent}
	if err := r.save(ctx); err != nil {
		return err
	}
	r.bytes.Set(0)
	return r.Staging.Delete(ctx, old.Key)
}

func (r *restoring) save(ctx context.Context) error {
	return base.Put(ctx, r.item, noteRestore, r.done)
}

// parcelWriter is one writer of the file.
type parcelWriter struct {
	*restoring
	key  string
	to   storage.Writer
	sum  *fixity.Digester // of all that was written, by whomever
	part int64            // bytes between two marks
}

// reached makes a mark when it is time for one.
func (d *parcelWriter) reached(ctx context.Context, size int64, between bool, point func() (export.Point, error)) error {
	d.bytes.Set(size)
	since := d.done.Last.offset()
	if between {
		since = d.done.Sound.offset()
	}
	if size-since < d.part {
		return nil
	}
	at, err := point()
	if err != nil {
		return err
	}
	return d.mark(ctx, at)
}

// mark makes what was written durable and then notes it, in this order (R4).
func (d *parcelWriter) mark(ctx context.Context, at export.Point) error {
	stored, err := d.to.Checkpoint(ctx)
	if err != nil {
		return fmt.Errorf("checkpoint restored parcel: %w", err)
	}
	next := d.done
	sum, err := d.sum.State()
	if err != nil {
		return err
	}
	next.Last = &mark{Key: d.key, Stored: stored, Point: at, Sum: sum}
	if at.Digests == nil {
		next.Sound = next.Last
	}
	return d.note(ctx, next)
}

// note keeps how far the file is, and then discards what no attempt goes on after any more.
func (d *parcelWriter) note(ctx context.Context, next restoreNote) error {
	old := d.done
	d.done = next
	if err := d.save(ctx); err != nil {
		return err
	}
	discarded := false
	for _, m := range []*mark{old.Last, old.Sound} {
		if m == nil || m.Key == d.key || next.needs(m.Key) {
			continue
		}
		if err := d.Staging.Discard(ctx, m.Stored); err != nil {
			return fmt.Errorf("discard what is not needed any more: %w", err)
		}
		discarded = true
	}
	if !discarded {
		return nil
	}
	return d.shrink(ctx, d.size)
}

// open begins the writer, where the last mark is, if what it names is still there.
func (d *parcelWriter) open(ctx context.Context) (at export.Point, err error) {
	if last := d.done.Last; last != nil && last.Sum.Size == last.Stored.Size && d.sum.Restore(last.Sum) {
		d.to, err = d.Staging.Resume(ctx, d.key, last.Stored)
		if err == nil {
			return last.Point, nil
		} else if !errors.Is(err, storage.ErrNotFound) {
			return at, fmt.Errorf("go on with restored parcel: %w", err)
		}
		if d.sum, err = fixity.NewDigester(sha256Name); err != nil {
			return at, err
		}
	}
	d.done = restoreNote{Agent: d.done.Agent} // if there was more, the price is rework
	d.to, err = d.Staging.Create(ctx, d.key)
	return at, err
}

// close lets go of the writer. It discards what no attempt can go on after.
func (d *parcelWriter) close() {
	if d.done.needs(d.key) {
		_ = d.to.Close() // what is not marked is not wanted
		return
	}
	_ = d.to.Abort() // nothing depends on it; what it misses goes with the item
}

// needs says whether a mark is of the writer of a key.
func (d restoreNote) needs(key string) bool {
	return d.Last != nil && d.Last.Key == key || d.Sound != nil && d.Sound.Key == key
}
