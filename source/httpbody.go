package source

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// errStalled is the cause of the cancellation of a stalled body.
var errStalled = errors.New("no data within the time allowed")

// httpBody is a body that returns io.EOF only when it is complete, and an error when it stalls.
type httpBody struct {
	x     *exchange
	timer *time.Timer // runs only during Read, so a slow reader does not count as a stalled source
	pos   int64       // offset of the next byte in the file
	left  int64       // bytes still expected, -1 if unknown
	err   error       // sticky
	rate  rateCheck
}

// rateCheck measures how fast a source sends. Only time within Read counts, so neither our disk nor
// our limit on bytes makes a source slow.
type rateCheck struct {
	waited time.Duration // time spent waiting since the last check
	came   int64         // bytes since then
}

// tooSlow adds n bytes that came after a wait. It returns true if less than rate bytes per second
// came over a whole window.
func (p *rateCheck) tooSlow(n int, wait, window time.Duration, rate int) bool {
	p.waited, p.came = p.waited+wait, p.came+int64(n)
	if p.waited < window {
		return false
	}
	slow := float64(p.came) < p.waited.Seconds()*float64(rate)
	*p = rateCheck{}
	return slow
}

// body returns the answer's body. offset is the position of its first byte in the file, left the
// number of its bytes, or -1.
func (x *exchange) body(offset, left int64) *httpBody {
	b := &httpBody{x: x, pos: offset, left: left}
	b.timer = time.AfterFunc(x.http.options.StallTimeout, func() { x.cancel(errStalled) })
	b.timer.Stop()
	return b
}

// Read implements io.Reader.
func (b *httpBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if most := b.x.http.options.BytesPerSecond; most > 0 {
		p = p[:min(len(p), most)]
	}
	begun := time.Now()
	n, err := b.readSome(p)
	b.pos += int64(n)
	if o := b.x.http.options; err == nil && b.rate.tooSlow(n, time.Since(begun), o.StallTimeout, o.LeastRate) {
		b.err = b.fault(FaultStalled, fmt.Errorf("less than %d bytes a second came for %s", o.LeastRate, o.StallTimeout))
		return n, b.err
	}
	if n > 0 && err == nil {
		err = b.x.throttle(n)
	}
	if b.left >= 0 {
		if int64(n) > b.left {
			b.err = b.fault(FaultProtocol, errors.New("more data came than were promised"))
			return 0, b.err
		}
		b.left -= int64(n)
	}
	switch ended := err == io.EOF; { //nolint:errorlint // a wrapped io.EOF is a closed connection
	case ended && b.left > 0:
		b.err = b.fault(FaultShort, io.ErrUnexpectedEOF)
	case ended:
		b.err = io.EOF
	case err != nil:
		b.err = b.readFault(err)
	}
	return n, b.err
}

// readSome reads at least one byte, or fails after StallTimeout.
func (b *httpBody) readSome(p []byte) (int, error) {
	b.timer.Reset(b.x.http.options.StallTimeout)
	defer b.timer.Stop()
	for {
		n, err := b.x.resp.Body.Read(p)
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Close implements io.Closer.
func (b *httpBody) Close() error {
	b.x.close()
	return nil
}

// readFault classifies an error that occurred while reading.
func (b *httpBody) readFault(err error) error {
	ended := b.x.ended()
	switch {
	case errors.Is(ended, errStalled):
		return b.fault(FaultStalled, fmt.Errorf("nothing came for %s: %w", b.x.http.options.StallTimeout, errStalled))
	case ended != nil:
		return b.fault(FaultCancelled, ended)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return b.fault(FaultShort, err)
	default:
		return b.fault(FaultOf(err), err)
	}
}

// fault adds the position to an error, which distinguishes a source that always breaks off at the
// same place from a bad connection.
func (b *httpBody) fault(kind Fault, err error) error {
	return &Error{Op: "read", URL: redactURL(b.x.shown), Kind: kind, Err: fmt.Errorf("after byte %d: %w", b.pos, b.x.http.forDepositors(err))}
}
