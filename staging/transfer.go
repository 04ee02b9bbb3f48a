package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// transfer is one pass over a source.
type transfer struct {
	fetch   *Fetch
	key     string
	body    *source.Body
	to      storage.Writer
	digests *fixity.Digester
	format  string // "" if the first bytes came in an earlier attempt
	resumed bool   // it contains an earlier attempt's bytes
	counted int64  // bytes reported to Moved
	kept    int64  // the part of them that a successor can resume from
}

// begin opens the source and the staged file, at the checkpoint if both sides can still resume
// there.
func (t *transfer) begin(ctx context.Context, from *Checkpoint) error {
	var err error
	if t.digests, err = t.fetch.digester(); err != nil {
		return err
	}
	var at source.Point
	if from != nil {
		if at, err = t.resume(ctx, from); err != nil {
			return err
		}
	}
	if t.body, err = t.fetch.Source.Open(ctx, t.fetch.Wanted.URL, at); err != nil {
		return err
	}
	if t.fetch.Wanted.Received == nil { // else its digest tells whether the depositor or staging is at fault
		if err := t.fetch.Wanted.checkSize(t.body.Info.URL, t.body.Info.Size); err != nil {
			return err // the source states this size, so a second fetch would give the same
		}
	}
	if t.resumed && t.body.Offset == at.Offset {
		t.count(at.Offset)
		t.kept = at.Offset
		return nil
	}
	if t.resumed { // the source cannot resume there, or has changed
		t.resumed = false
		if err := t.to.Abort(); err != nil {
			return fmt.Errorf("start %s over: %w", t.key, err)
		}
		if t.digests, err = t.fetch.digester(); err != nil {
			return err
		}
	}
	if t.to, err = t.fetch.Store.Create(ctx, t.key); err != nil {
		return fmt.Errorf("stage %s: %w", t.body.Info.URL, err)
	}
	return nil
}

// resume takes over the bytes of an earlier attempt. It returns the zero Point if they cannot be
// used.
func (t *transfer) resume(ctx context.Context, from *Checkpoint) (source.Point, error) {
	if from.Stored.Size <= 0 || from.Stored.Size != from.Digests.Size || !t.digests.Restore(from.Digests) {
		return source.Point{}, nil // this costs rework (R27)
	}
	w, err := t.fetch.Store.Resume(ctx, t.key, from.Stored)
	if errors.Is(err, storage.ErrNotFound) {
		t.digests, err = t.fetch.digester()
		return source.Point{}, err
	} else if err != nil {
		return source.Point{}, fmt.Errorf("resume %s: %w", from.Key, err)
	}
	t.to, t.resumed = w, true
	return source.Point{
		Offset: from.Stored.Size, Validator: from.Validator, Size: from.SizeBytes, Modified: from.Modified,
		Digest: t.fetch.Wanted.Digest != nil,
	}, nil
}

// run transfers the bytes. It reconnects at once as long as each connection brings a part of the
// file: a long transfer over a bad line is no failure.
func (t *transfer) run(ctx context.Context) error {
	for {
		before := t.digests.Size()
		err := (&pump{transfer: t}).run(ctx)
		var broken *source.Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &broken) || broken.ContentFault() || t.digests.Size()-before < MinPart {
			return err
		}
		if !t.reopen(ctx) {
			return err
		}
	}
}

// reopen opens the source where the connection broke. It reports whether that worked.
func (t *transfer) reopen(ctx context.Context) bool {
	info := t.body.Info
	body, err := t.fetch.Source.Open(ctx, t.fetch.Wanted.URL, source.Point{
		Offset: t.digests.Size(), Validator: info.Validator, Size: info.Size, Modified: info.Modified,
		Digest: t.fetch.Wanted.Digest != nil,
	})
	if err != nil {
		return false
	}
	if body.Offset != t.digests.Size() {
		_ = body.Close()
		return false
	}
	_ = t.body.Close()
	t.body = body
	return true
}

// modified returns when the file was last changed, by the depositor or else by the source. Servers
// that do not know report 1970.
func (t *transfer) modified() time.Time {
	if said := t.fetch.Wanted.Modified; !said.IsZero() {
		return said
	}
	if told := t.body.Info.Modified; told.Unix() != 0 {
		return told
	}
	return time.Time{}
}

// finish commits and checks the file.
func (t *transfer) finish(ctx context.Context) (File, error) {
	file := File{
		Key: t.key, Source: t.body.Info.URL, Modified: t.modified(), SizeBytes: t.digests.Size(),
		Digests: t.digests.Sums(), MIMEType: t.format,
	}
	if _, err := t.to.Commit(ctx); err != nil {
		t.retractCount()
		return File{}, fmt.Errorf("stage %s: %w", file.Source, err)
	}
	if t.resumed {
		// Two attempts wrote it: trust only what was read back (R4).
		if err := t.reread(ctx, &file); err != nil {
			return file, err
		}
	}
	return file, t.fetch.Wanted.check(file)
}

// reread computes the digests of the staged file itself and compares them.
func (t *transfer) reread(ctx context.Context, file *File) error {
	d, err := t.fetch.digester()
	if err != nil {
		return err
	}
	var head format.Head
	err = readBack(ctx, t.fetch.Store, t.fetch.Buffers, file.Key, io.MultiWriter(d, &head), t.fetch.Read)
	if err != nil {
		return err
	}
	file.MIMEType = head.MIME(t.fetch.Wanted.Name, t.fetch.Wanted.MIMEType)
	for algorithm, sum := range d.Sums() {
		if file.Digests[algorithm] != sum {
			return fmt.Errorf("%s: %w: %s %s, not %s", file.Source, ErrDamaged, algorithm, sum, file.Digests[algorithm])
		}
	}
	return nil
}

func (t *transfer) count(n int64) {
	t.counted += n
	t.fetch.moved(n)
}

// retractCount takes back the counted progress of an incomplete file, except what a successor
// resumes from.
func (t *transfer) retractCount() {
	t.fetch.moved(t.kept - t.counted)
	t.counted = t.kept
}

// discard deletes what was written with its checkpoints: it will not be resumed.
func (t *transfer) discard() {
	t.kept = 0
	_ = t.to.Abort() // anything it misses is deleted with the item
}

// close closes both sides. Checkpointed bytes stay.
func (t *transfer) close() {
	if t.body != nil {
		_ = t.body.Close() // only read from
	}
	if t.to != nil {
		_ = t.to.Close() // uncommitted bytes are not needed
	}
}
