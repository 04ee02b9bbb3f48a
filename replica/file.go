package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/registry"
)

// File reads a file of the version from one storage after another until its bytes are right.
type File struct {
	reader *Reader
	file   registry.File
	used   []string // storages that the last copy was read from
}

// File returns a reader of a file.
func (r *Reader) File(f registry.File) *File { return &File{reader: r, file: f} }

// Copy writes the file's bytes from offset on to w. It compares only files of at most Ahead bytes
// with their digests. The caller must judge a larger file, and call Blame if it is wrong. A
// *NowhereError says that no storage has the right bytes. Other errors are those of w, of ctx, and
// of a Source that names no storage.
func (f *File) Copy(ctx context.Context, w io.Writer, offset int64) error {
	if f.file.SizeBytes > f.reader.Ahead || offset == f.file.SizeBytes {
		return f.copy(ctx, w, offset)
	}
	for {
		text, err := f.whole(ctx)
		if err == nil {
			_, err = w.Write(text[offset:])
			return err
		}
		if !errors.Is(err, ErrDamaged) || !f.Blame(err) {
			return err
		}
	}
}

// Blame records that the last copy, from byte 0 on, gave wrong bytes, as err says. It reports
// whether to copy the file again: another storage may have it right, or the same one at a second
// reading.
func (f *File) Blame(err error) (again bool) {
	if len(f.used) == 1 && f.used[0] != "" {
		f.reader.note(f.file.Path, f.used[0], err, func(t *storageFault) {
			t.wrongReads++
			t.excluded = t.wrongReads >= maxWrongReads
		})
		return true
	}
	return len(f.used) > 1 // any of them may be at fault; the next copy uses only the last one
}

// whole reads and judges the whole file.
func (f *File) whole(ctx context.Context) ([]byte, error) {
	digester, err := NewDigester(f.file.Digests)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := f.copy(ctx, io.MultiWriter(&text, digester), 0); err != nil {
		return nil, err
	}
	return text.Bytes(), Judge(digester, f.file.SizeBytes, f.file.Digests)
}

// copy writes the file's bytes from offset on without judging them. If reading one storage fails,
// it continues with another.
func (f *File) copy(ctx context.Context, w io.Writer, offset int64) error {
	f.used = nil
	for offset < f.file.SizeBytes {
		n, storage, err := f.copyFrom(ctx, w, offset)
		offset += n
		switch {
		case errors.Is(err, ErrNowhere):
			return f.reader.verdict(f.file.Path)
		case err == nil || storage == "":
			return err
		}
		f.reader.note(f.file.Path, storage, err, func(t *storageFault) { t.excluded = true })
	}
	return nil
}

// copyFrom writes the bytes of one storage. If the error is that storage's, storage names it.
func (f *File) copyFrom(ctx context.Context, w io.Writer, offset int64) (n int64, storage string, err error) {
	body, storage, err := f.open(ctx, offset)
	if err != nil {
		return 0, blamed(ctx, storage), err
	}
	f.reportElsewhere(storage)
	f.used = append(f.used, storage)
	in := &watchedReader{r: io.LimitReader(body, f.file.SizeBytes-offset+1)} // one extra byte lets the judge notice a longer file
	n, err = io.Copy(w, in)
	if in.err == nil && err != nil {
		return n, "", errors.Join(err, body.Close())
	}
	if err == nil && offset+n < f.file.SizeBytes {
		err = fmt.Errorf("%w: the file has %d bytes, %d are recorded", ErrDamaged, offset+n, f.file.SizeBytes)
	}
	return n, blamed(ctx, storage), errors.Join(err, body.Close())
}

// open opens the file in a storage without faults, or else in one that may be read once more.
func (f *File) open(ctx context.Context, offset int64) (body io.ReadCloser, storage string, err error) {
	var useless, met []string
	for _, t := range f.reader.of(f.file.Path).faults {
		met = append(met, t.storage)
		if t.excluded {
			useless = append(useless, t.storage)
		}
	}
	body, storage, err = f.reader.Source.Open(ctx, f.file, offset, met)
	if errors.Is(err, ErrNowhere) && len(useless) < len(met) {
		body, storage, err = f.reader.Source.Open(ctx, f.file, offset, useless)
	}
	return body, storage, err
}

// reportElsewhere calls Elsewhere once for each new fault.
func (f *File) reportElsewhere(storage string) {
	t := f.reader.of(f.file.Path)
	if t.reported || len(t.faults) == 0 || t.find(storage) != nil {
		return
	}
	t.reported = true
	if f.reader.Elsewhere != nil {
		f.reader.Elsewhere(f.file.Path, storage, f.reader.verdict(f.file.Path))
	}
}

// blamed returns the storage to blame for an error: none if ctx has ended, since that may be the
// cause.
func blamed(ctx context.Context, storage string) string {
	if ctx.Err() != nil {
		return ""
	}
	return storage
}

// watchedReader keeps the error of a reader, to distinguish it from the writer's.
type watchedReader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
