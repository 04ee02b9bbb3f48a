package storage

import (
	"context"
	"io"
)

// Interruptible returns a reader of r that ends with ctx's error, between two reads, once ctx has
// ended. It offers Read alone, so that io.CopyBuffer uses the buffer that it is given.
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
