package parcel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
)

// doubt is what was met in the storages that a file is not read in any more, as long as the parcel lives.
type doubt struct {
	storages []string
	faults   []error
	told     bool
}

// origin is where a file of the object comes from: one storage after the other, until its bytes are right.
type origin struct {
	parcel   *Parcel
	file     registry.File
	judge    func(d *fixity.Digester) error
	storages []string // that the bytes of the last writing came from
}

// write writes the file's bytes from offset on.
func (o *origin) write(ctx context.Context, w io.Writer, offset int64) error {
	if o.file.SizeBytes > o.parcel.opts.Ahead || offset == o.file.SizeBytes {
		return o.pass(ctx, w, offset)
	}
	for {
		text, err := o.whole(ctx)
		if err == nil {
			_, err = w.Write(text[offset:])
			return err
		}
		if !errors.Is(err, ErrDamaged) || !o.blame(err) {
			return err
		}
	}
}

// whole reads all of the file, which is right, or ErrDamaged.
func (o *origin) whole(ctx context.Context) ([]byte, error) {
	digester, err := Entry{Name: o.file.Path, Digests: o.file.Digests}.digester()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := o.pass(ctx, io.MultiWriter(&text, digester), 0); err != nil {
		return nil, err
	}
	return text.Bytes(), o.judge(digester)
}

// pass writes the file's bytes from offset on as they are. Where reading breaks off in one storage it goes on in another.
func (o *origin) pass(ctx context.Context, w io.Writer, offset int64) error {
	o.storages = nil
	for offset < o.file.SizeBytes {
		n, storage, err := o.passFrom(ctx, w, offset)
		offset += n
		switch {
		case errors.Is(err, ErrNowhere):
			return o.verdict()
		case err == nil || storage == "":
			return err
		}
		o.distrust(storage, err)
	}
	return nil
}

// passFrom writes what one storage has. The error is that storage's when it is named.
func (o *origin) passFrom(ctx context.Context, w io.Writer, offset int64) (n int64, storage string, err error) {
	body, storage, err := o.parcel.source.Open(ctx, o.file, offset, o.doubt().storages)
	if err != nil {
		return 0, o.charged(ctx, storage), err
	}
	o.tell(storage)
	o.storages = append(o.storages, storage)
	in := &watchedReader{r: io.LimitReader(body, o.file.SizeBytes-offset+1)} // one byte too many is seen by the judge
	n, err = io.Copy(w, in)
	if in.err == nil && err != nil {
		return n, "", errors.Join(err, body.Close())
	}
	if err == nil && offset+n < o.file.SizeBytes {
		err = fmt.Errorf("%d of %d bytes: %w", offset+n, o.file.SizeBytes, io.ErrUnexpectedEOF)
	}
	return n, o.charged(ctx, storage), errors.Join(err, body.Close())
}

// charged is the storage, unless ctx has ended: then nobody knows whose fault it was.
func (o *origin) charged(ctx context.Context, storage string) string {
	if ctx.Err() != nil {
		return ""
	}
	return storage
}

// blame finds the storage at fault for bytes that err says to be wrong, and whether it is worth while to write all of them again.
func (o *origin) blame(err error) bool {
	switch {
	case len(o.storages) == 1 && o.storages[0] != "":
		o.distrust(o.storages[0], err)
		return true
	case len(o.storages) > 1: // nobody knows which; the next writing is by the last one
		return true
	}
	return false
}

// doubt is what is known against storages; empty for most files.
func (o *origin) doubt() *doubt {
	if d := o.parcel.doubts[o.file.Path]; d != nil {
		return d
	}
	return &doubt{}
}

func (o *origin) distrust(storage string, fault error) {
	d := o.doubt()
	d.storages, d.faults, d.told = append(d.storages, storage), append(d.faults, fault), false
	o.parcel.doubts[o.file.Path] = d
}

// tell says once that the file is read elsewhere.
func (o *origin) tell(storage string) {
	d := o.doubt()
	if d.told || len(d.storages) == 0 {
		return
	}
	d.told = true
	if o.parcel.opts.Elsewhere != nil {
		o.parcel.opts.Elsewhere(o.file.Path, storage, o.verdict())
	}
}

// verdict is what was met in all the storages: ErrDamaged when nothing else was.
func (o *origin) verdict() error {
	d := o.doubt()
	if len(d.faults) == 0 {
		return ErrNowhere
	}
	if len(d.faults) == 1 {
		return fmt.Errorf("in storage %q: %w", d.storages[0], d.faults[0])
	}
	kind := ErrDamaged
	var said []string
	for i, fault := range d.faults {
		if !errors.Is(fault, ErrDamaged) {
			kind = fault
		}
		said = append(said, fmt.Sprintf("in storage %q: %v", d.storages[i], fault))
	}
	return &nowhereError{text: strings.Join(said, "; "), kind: kind}
}

// nowhereError tells of several storages, and is what tells most about what to do.
type nowhereError struct {
	text string
	kind error
}

// Error implements error.
func (e *nowhereError) Error() string { return e.text }

// Unwrap returns the fault that counts: one that may pass, or else ErrDamaged.
func (e *nowhereError) Unwrap() error { return e.kind }

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
