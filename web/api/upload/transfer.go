package upload

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/holdfast/holdfast/web/wire"
)

// transfer moves the body of one request into an upload.
type transfer struct {
	body io.Reader
	from *sender
	to   *receiver
	left int64     // most bytes to accept; -1: no limit
	sum  hash.Hash // of the body; nil: not wanted
	// save is called whenever enough bytes have come to acknowledge; nil: only at the end.
	save func() error
}

// cutError says that the sender broke off. The bytes before that are valid.
type cutError struct{ err error }

// Error returns the text of the read error.
func (e *cutError) Error() string { return e.err.Error() }

// Unwrap returns the read error.
func (e *cutError) Unwrap() error { return e.err }

// run reads the body to its end. After a *cutError the receiver is still usable, after other errors
// it is not. At the end it removes the sender's deadline.
func (f *transfer) run() error {
	defer f.from.finishBody()
	buf := make([]byte, copyBuffer)
	for {
		f.from.await()
		n, err := f.body.Read(buf)
		if f.left >= 0 {
			if f.left -= int64(n); f.left < 0 {
				return wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, fmt.Sprintf(
					"the request has more bytes than upload %s; the bytes after the last saved offset were dropped", f.to.in.ID))
			}
		}
		if _, failed := f.to.Write(buf[:n]); failed != nil {
			return failed
		}
		if f.sum != nil {
			f.sum.Write(buf[:n])
		}
		if f.save != nil && f.to.size-f.to.in.Offset >= f.to.part() {
			if failed := f.save(); failed != nil {
				return failed
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &cutError{err}
		}
	}
}
