package storage

import (
	"context"
	"io"
)

// Interruptible returns a reader of r that fails with ctx's error after ctx has ended. It checks
// between two reads. It has only the method Read, so that io.CopyBuffer uses the given buffer.
func Interruptible(ctx context.Context, r io.Reader) io.Reader {
	return &interruptible{ended: ctx.Err, r: r}
}

type interruptible struct {
	ended func() error
	r     io.Reader
}

// Read implements io.Reader.
func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ended(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}
