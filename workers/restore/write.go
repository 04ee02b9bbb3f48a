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
	"github.com/holdfast/holdfast/tracing"
)

// sha256Name is the digest by which people check the downloaded tar.
const sha256Name = "sha256"

// noteRestore is the interim entry for the progress of a restore's file.
const noteRestore = "restore"

// restoreNote is the progress of a restore's file.
type restoreNote struct {
	Agent string `json:"agent"`           // named in the file: the program of the attempt that started it
	Key   string `json:"key,omitempty"`   // of the file, once Whole
	Whole bool   `json:"whole,omitempty"` // it is committed, but not yet judged
	// SHA256 is the digest of the written bytes, once Whole: reading back must give the same.
	SHA256 string `json:"sha256,omitempty"`
	// Last is the last mark. Sound is the last mark before which all files were compared with their
	// digests: if something behind it is wrong, writing continues from there.
	Last  *mark `json:"last,omitempty"`
	Sound *mark `json:"sound,omitempty"`
}

// mark is a place in the file from which a writer can continue.
type mark struct {
	Key    string             `json:"key"` // of its writer
	Stored storage.Checkpoint `json:"stored"`
	Point  export.Point       `json:"point"`
	Sum    fixity.State       `json:"sum"` // of all bytes before the mark
}

// offset returns the mark's position; 0 for a nil mark.
func (m *mark) offset() int64 {
	if m == nil {
		return 0
	}
	return m.Stored.Size
}

// write completes the file, continuing where an earlier attempt stopped.
func (r *restoreRun) write(ctx context.Context) (err error) {
	ctx, span := tracing.Start(ctx, "tar write")
	defer func() { span.End(err) }()
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
		err := r.writeRest(ctx, staging.Key(r.item.Lease(), fmt.Sprintf("restore-%d.tar", n)))
		switch {
		case err == nil:
			return nil
		case errors.As(err, &nowhere) && errors.Is(err, storage.ErrArchived):
			return r.startThaw(ctx, nowhere.Path)
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

// writeRest writes from the last mark to the end. It reserves room before the first byte: for the
// whole file and, while it is needed, for what an earlier writer has left (R24).
func (r *restoreRun) writeRest(ctx context.Context, key string) error {
	if err := r.reserve(ctx, r.size+r.done.Last.offset()); err != nil {
		return err
	}
	sum, err := fixity.NewDigester(sha256Name)
	if err != nil {
		return err
	}
	d := &tarWriter{restoreRun: r, key: key, sum: sum, part: cmp.Or(r.Part, max(staging.MinPart, r.size/10_000))}
	at, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	r.bytes.Set(at.Offset)
	if at.Offset > 0 && at.Digests == nil {
		if err := d.mark(ctx, at); err != nil { // what the predecessor left is no longer needed
			return err
		}
	}
	err = r.bag.ContinueTar(ctx, io.MultiWriter(d.to, d.sum), at, func(size int64, between bool, point func() (export.Point, error)) error {
		return d.markIfDue(ctx, size, between, point)
	})
	if err != nil {
		return err
	}
	if _, err := d.to.Commit(ctx); err != nil {
		return err
	}
	return d.note(ctx, restoreNote{Agent: r.done.Agent, Key: key, Whole: true, SHA256: d.sum.Sums()[sha256Name]})
}

func (r *restoreRun) reserve(ctx context.Context, bytes int64) error {
	return r.Volume.Reserve(ctx, r.item, bytes, 0, r.Volume.Full)
}

// releaseRoom releases room. It ignores a full volume: what was reserved remains in any case.
func (r *restoreRun) releaseRoom(ctx context.Context, bytes int64) error {
	err := r.reserve(ctx, bytes)
	if full := new(registry.NoSpaceError); errors.As(err, &full) {
		return nil
	}
	return err
}

// startOver drops a damaged file and its record.
func (r *restoreRun) startOver(ctx context.Context) error {
	old := r.done
	r.done = restoreNote{Agent: old.Agent}
	if err := r.save(ctx); err != nil {
		return err
	}
	r.bytes.Set(0)
	return r.Staging.Delete(ctx, old.Key)
}

func (r *restoreRun) save(ctx context.Context) error {
	return base.Put(ctx, r.item, noteRestore, r.done)
}

// tarWriter is one writer of the file.
type tarWriter struct {
	*restoreRun
	key  string
	to   storage.Writer
	sum  *fixity.Digester // of all written bytes, also by predecessors
	part int64            // bytes between two marks
}

// markIfDue makes a mark if it is due.
func (d *tarWriter) markIfDue(ctx context.Context, size int64, between bool, point func() (export.Point, error)) error {
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

// mark makes the written bytes durable, and then records the mark, in this order (R4).
func (d *tarWriter) mark(ctx context.Context, at export.Point) error {
	stored, err := d.to.Checkpoint(ctx)
	if err != nil {
		return fmt.Errorf("checkpoint restored file: %w", err)
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

// note records the progress, and then discards data from which no attempt will continue.
func (d *tarWriter) note(ctx context.Context, next restoreNote) error {
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
			return fmt.Errorf("discard data that is no longer needed: %w", err)
		}
		discarded = true
	}
	if !discarded {
		return nil
	}
	return d.releaseRoom(ctx, d.size)
}

// open starts the writer at the last mark, if its data is still there.
func (d *tarWriter) open(ctx context.Context) (at export.Point, err error) {
	if last := d.done.Last; last != nil && last.Sum.Size == last.Stored.Size && d.sum.Restore(last.Sum) {
		d.to, err = d.Staging.Resume(ctx, d.key, last.Stored)
		if err == nil {
			return last.Point, nil
		} else if !errors.Is(err, storage.ErrNotFound) {
			return at, fmt.Errorf("continue restored file: %w", err)
		}
		if d.sum, err = fixity.NewDigester(sha256Name); err != nil {
			return at, err
		}
	}
	d.done = restoreNote{Agent: d.done.Agent} // if there was more, this costs rework
	d.to, err = d.Staging.Create(ctx, d.key)
	return at, err
}

// close ends the writer. It discards data from which no attempt can continue.
func (d *tarWriter) close() {
	if d.done.needs(d.key) {
		_ = d.to.Close() // unmarked bytes are not needed
		return
	}
	_ = d.to.Abort() // what it misses is deleted with the item
}

// needs reports whether a mark belongs to the writer of a key.
func (d restoreNote) needs(key string) bool {
	return d.Last != nil && d.Last.Key == key || d.Sound != nil && d.Sound.Key == key
}
