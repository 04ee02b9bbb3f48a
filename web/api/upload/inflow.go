package upload

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/holdfast/holdfast/web/wire"
)

// inflow is the body of one request on its way into an upload.
type inflow struct {
	body io.Reader
	from *sender
	to   *receiver
	left int64     // how much may come at most; -1: anything
	sum  hash.Hash // of the body; nil: none is wanted
	// save is called whenever enough has come to be acknowledged; nil: not before the end.
	save func() error
}

// cutError says that the sender broke off. What came before is what was sent.
type cutError struct{ err error }

// Error says why.
func (e *cutError) Error() string { return e.err.Error() }

// Unwrap returns why.
func (e *cutError) Unwrap() error { return e.err }

// run moves the body to its end. A *cutError is the sender's, and leaves the receiver usable; after
// any other error it is not. Afterwards the sender has all the time there is.
func (f *inflow) run() error {
	defer f.from.rest()
	buf := make([]byte, copyBuffer)
	for {
		f.from.await()
		n, err := f.body.Read(buf)
		if f.left >= 0 {
			if f.left -= int64(n); f.left < 0 {
				return wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, fmt.Sprintf(
					"more bytes came than upload %s has; nothing of this request was kept beyond what was saved", f.to.in.ID))
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
