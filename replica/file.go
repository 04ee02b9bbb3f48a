package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/registry"
)

// File is a file of the version: its bytes come from one storage after the other, until they are
// right.
type File struct {
	reader *Reader
	file   registry.File
	used   []string // storages that the bytes of the last copy came from
}

// File returns a file to read.
func (r *Reader) File(f registry.File) *File { return &File{reader: r, file: f} }

// Copy writes the file's bytes from offset on to w. Only those of a file that Ahead holds back were
// compared with the digests: of a larger one the caller judges the whole, and calls Blame when it
// is wrong. A *NowhereError says that no storage has the bytes. The other errors are those of w, of
// ctx, and of a Source that names no storage.
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

// Blame notes that all of the last copy, from byte 0 on, came to wrong bytes, as err says. It
// returns whether to copy the file again: another storage may have it right, or the same one in a
// second reading.
func (f *File) Blame(err error) (again bool) {
	if len(f.used) == 1 && f.used[0] != "" {
		f.reader.note(f.file.Path, f.used[0], err, func(t *trouble) {
			t.wrong++
			t.useless = t.wrong >= condemned
		})
		return true
	}
	return len(f.used) > 1 // any of them may be at fault; the next copy is by the last one
}

// whole reads all of the file, which is right, or ErrDamaged.
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

// copy writes the file's bytes from offset on as they are. Where reading breaks off in one storage
// it goes on in another.
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
		f.reader.note(f.file.Path, storage, err, func(t *trouble) { t.useless = true })
	}
	return nil
}

// copyFrom writes what one storage has. The error is that storage's when it is named.
func (f *File) copyFrom(ctx context.Context, w io.Writer, offset int64) (n int64, storage string, err error) {
	body, storage, err := f.open(ctx, offset)
	if err != nil {
		return 0, charged(ctx, storage), err
	}
	f.tell(storage)
	f.used = append(f.used, storage)
	in := &watchedReader{r: io.LimitReader(body, f.file.SizeBytes-offset+1)} // one byte too many is seen by the judge
	n, err = io.Copy(w, in)
	if in.err == nil && err != nil {
		return n, "", errors.Join(err, body.Close())
	}
	if err == nil && offset+n < f.file.SizeBytes {
		err = fmt.Errorf("%w: %d bytes are there, %d are recorded", ErrDamaged, offset+n, f.file.SizeBytes)
	}
	return n, charged(ctx, storage), errors.Join(err, body.Close())
}

// open opens the file in a storage that was not wrong about it yet; else in one that may be read
// once more.
func (f *File) open(ctx context.Context, offset int64) (body io.ReadCloser, storage string, err error) {
	var useless, met []string
	for _, t := range f.reader.of(f.file.Path).in {
		met = append(met, t.storage)
		if t.useless {
			useless = append(useless, t.storage)
		}
	}
	body, storage, err = f.reader.Source.Open(ctx, f.file, offset, met)
	if errors.Is(err, ErrNowhere) && len(useless) < len(met) {
		body, storage, err = f.reader.Source.Open(ctx, f.file, offset, useless)
	}
	return body, storage, err
}

// tell says once that the file is read elsewhere.
func (f *File) tell(storage string) {
	t := f.reader.of(f.file.Path)
	if t.told || len(t.in) == 0 || t.find(storage) != nil {
		return
	}
	t.told = true
	if f.reader.Elsewhere != nil {
		f.reader.Elsewhere(f.file.Path, storage, f.reader.verdict(f.file.Path))
	}
}

// charged returns the storage to blame for an error: none when ctx has ended, since that may be the
// cause.
func charged(ctx context.Context, storage string) string {
	if ctx.Err() != nil {
		return ""
	}
	return storage
}

// watchedReader keeps the error of a reader, so that it is told from the writer's.
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
