package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// MinPart is the least number of bytes between two checkpoints of a file; of large files it is size / 10,000 (I5).
const MinPart = 16 << 20

// Checkpoint is how far a file has come: offset, digests and the source's validator in one record (R4).
type Checkpoint struct {
	Stored    storage.Checkpoint `json:"stored"`
	Digests   fixity.State       `json:"digests"`
	Validator string             `json:"validator,omitempty"`
	SizeBytes int64              `json:"size_bytes"`
	Modified  time.Time          `json:"modified,omitzero"`
}

// Fetch is one file on its way into staging.
type Fetch struct {
	Source source.Fetcher
	Store  storage.Store
	Key    string // of this attempt's own
	Wanted Wanted

	From  *Checkpoint                                   // where an earlier attempt stood; nil: from the start
	Save  func(ctx context.Context, c Checkpoint) error // keeps a checkpoint; nil: none is kept
	Moved func(n int64)                                 // n more bytes are there, or fewer when it starts over; may be nil
}

// Run fetches the file and checks it. A digest or size that differs from the depositor's is a *MismatchError only
// when a second, whole fetch gives the same wrong bytes; otherwise it is the source's or the network's fault (R6).
func (f *Fetch) Run(ctx context.Context) (File, error) {
	first, err := f.once(ctx, f.From)
	if err == nil {
		return first, nil
	}
	var wrong *MismatchError
	if !errors.As(err, &wrong) || first.Key == "" {
		return File{}, err
	}
	f.moved(-first.SizeBytes)
	if err := f.Store.Delete(ctx, first.Key); err != nil {
		return File{}, fmt.Errorf("drop %s: %w", first.Key, err)
	}
	second, again := f.once(ctx, nil)
	if again == nil {
		return second, nil
	}
	var same *MismatchError
	if errors.As(again, &same) && *same != *wrong {
		return File{}, fmt.Errorf("%s gives different bytes each time: %s, then %s", same.URL, wrong.Found, same.Found)
	}
	return File{}, again
}

func (f *Fetch) moved(n int64) {
	if f.Moved != nil && n != 0 {
		f.Moved(n)
	}
}

// once makes one fetch. With a *MismatchError it returns the file too when it was fetched whole.
func (f *Fetch) once(ctx context.Context, from *Checkpoint) (File, error) {
	digester, err := f.digester()
	if err != nil {
		return File{}, err
	}
	if from != nil && !digester.Restore(from.Digests) {
		from = nil
	}
	w, err := f.open(ctx, &from)
	if err != nil {
		return File{}, err
	}
	defer w.Close() //nolint:errcheck // what is not committed is not wanted
	if from == nil {
		digester, err = f.digester()
		if err != nil {
			return File{}, err
		}
	}
	body, w, digester, err := f.connect(ctx, from, w, digester)
	if err != nil {
		return File{}, err
	}
	defer body.Close() //nolint:errcheck // read only
	file := File{Key: f.Key, Source: body.Info.URL, Modified: body.Info.Modified, SizeBytes: body.Info.Size}
	if f.Wanted.SizeBytes >= 0 && body.Info.Size >= 0 && body.Info.Size != f.Wanted.SizeBytes {
		file.Key = "" // nothing was fetched: the source itself says so, and a second fetch would say the same
		return file, errors.Join(check(Wanted{SizeBytes: f.Wanted.SizeBytes}, file), w.Abort())
	}
	return f.receive(ctx, file, body, w, digester, from != nil && body.Offset > 0)
}

func (f *Fetch) digester() (*fixity.Digester, error) {
	algorithms := f.Wanted.Algorithms
	if f.Wanted.Digest != nil {
		if _, err := fixity.New(f.Wanted.Digest.Algorithm); err != nil {
			return nil, &UnsupportedDigest{Algorithm: f.Wanted.Digest.Algorithm, Err: err}
		}
		algorithms = append([]string{f.Wanted.Digest.Algorithm}, algorithms...)
	}
	return fixity.NewDigester(algorithms...)
}

// open starts the staged file, with the predecessor's bytes when they are still there.
func (f *Fetch) open(ctx context.Context, from **Checkpoint) (storage.Writer, error) {
	if *from != nil {
		w, err := f.Store.Resume(ctx, f.Key, (*from).Stored)
		if err == nil || !errors.Is(err, storage.ErrNotFound) {
			return w, err
		}
		*from = nil
	}
	return f.Store.Create(ctx, f.Key)
}

// connect opens the source where the staged file ends, or starts the file over when the source cannot go on there.
func (f *Fetch) connect(ctx context.Context, from *Checkpoint, w storage.Writer, d *fixity.Digester) (
	*source.Body, storage.Writer, *fixity.Digester, error,
) {
	var at source.Point
	if from != nil {
		at = source.Point{
			Offset: from.Stored.Size, Validator: from.Validator, Size: from.SizeBytes, Modified: from.Modified,
			Digest: f.Wanted.Digest != nil,
		}
	}
	body, err := f.Source.Open(ctx, f.Wanted.URL, at)
	if err != nil {
		return nil, nil, nil, errors.Join(err, w.Close())
	}
	if body.Offset == at.Offset {
		f.moved(at.Offset)
		return body, w, d, nil
	}
	if err := w.Abort(); err != nil {
		return nil, nil, nil, errors.Join(err, body.Close())
	}
	if w, err = f.Store.Create(ctx, f.Key); err != nil {
		return nil, nil, nil, errors.Join(err, body.Close())
	}
	d, err = f.digester()
	return body, w, d, err
}

// receive takes the bytes in one pass, commits them and checks them.
func (f *Fetch) receive(ctx context.Context, file File, body *source.Body, w storage.Writer, d *fixity.Digester, resumed bool) (File, error) {
	p := pump{fetch: f, from: body, to: w, digester: d}
	err := p.run(ctx)
	if err != nil {
		f.moved(-d.Size())
		return File{}, err
	}
	file.SizeBytes, file.Digests = d.Size(), d.Sums()
	_, err = w.Commit(ctx)
	if err != nil && !errors.Is(err, storage.ErrExists) {
		return File{}, fmt.Errorf("stage %s: %w", file.Source, err)
	}
	if resumed || err != nil {
		// Two attempts wrote it, or an earlier try of this one: trust nothing that was not read back (R4).
		if err := f.reread(ctx, file); err != nil {
			return File{}, err
		}
	}
	return file, check(f.Wanted, file)
}

func (f *Fetch) reread(ctx context.Context, file File) error {
	d, err := f.digester()
	if err != nil {
		return err
	}
	r, err := f.Store.Open(ctx, file.Key, 0, -1)
	if err != nil {
		return fmt.Errorf("read %s back: %w", file.Key, err)
	}
	defer r.Close() //nolint:errcheck // read only
	if _, err := io.CopyBuffer(d, r, make([]byte, chunk)); err != nil {
		return fmt.Errorf("read %s back: %w", file.Key, err)
	}
	for algorithm, sum := range d.Sums() {
		if file.Digests[algorithm] != sum {
			return errors.Join(fmt.Errorf("%s as staged has %s %s, as received %s: it is fetched again",
				file.Source, algorithm, sum, file.Digests[algorithm]), f.Store.Delete(ctx, file.Key))
		}
	}
	return nil
}
