package source

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// errStalled is the cause with which a body that stopped coming is cancelled.
var errStalled = errors.New("no data within the time allowed")

// httpBody is a body that ends with io.EOF only when it is whole, and with an error when it stops
// coming.
type httpBody struct {
	x     *exchange
	timer *time.Timer // runs only within Read: a slow reader is not a stalled source
	pos   int64       // where in the file the next byte lies
	left  int64       // bytes still promised, -1 when unknown
	err   error       // sticky
	pace  pace
}

// pace judges how fast a source sends: only the time within Read counts, so that neither our disk
// nor our own limit on bytes makes a source slow.
type pace struct {
	waited time.Duration // for bytes, since the last judgement
	came   int64         // bytes since then
}

// tooSlow notes that n bytes came after a wait. It says so when less than rate bytes a second came
// over a whole window.
func (p *pace) tooSlow(n int, wait, window time.Duration, rate int) bool {
	p.waited, p.came = p.waited+wait, p.came+int64(n)
	if p.waited < window {
		return false
	}
	slow := float64(p.came) < p.waited.Seconds()*float64(rate)
	*p = pace{}
	return slow
}

// body returns the answer's body, whose first byte lies at offset and of which left bytes are
// promised, -1 for unknown.
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
	if o := b.x.http.options; err == nil && b.pace.tooSlow(n, time.Since(begun), o.StallTimeout, o.LeastRate) {
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
	switch ended := err == io.EOF; { //nolint:errorlint // wrapped, it is a connection that was closed
	case ended && b.left > 0:
		b.err = b.fault(FaultShort, io.ErrUnexpectedEOF)
	case ended:
		b.err = io.EOF
	case err != nil:
		b.err = b.readFault(err)
	}
	return n, b.err
}

// readSome reads at least a byte, within the time that is allowed for that.
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

// readFault gives an error met while reading its meaning.
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

// fault says how far reading came, which tells a source that always breaks off at one place from a
// bad line.
func (b *httpBody) fault(kind Fault, err error) error {
	return &Error{Op: "read", URL: redactURL(b.x.shown), Kind: kind, Err: fmt.Errorf("after byte %d: %w", b.pos, b.x.http.told(err))}
}
