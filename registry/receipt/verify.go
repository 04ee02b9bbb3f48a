package receipt

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the largest number of bytes in a line.
const MaxLine = 1 << 20

// maxFaults is how many faults a result lists. It counts the others.
const maxFaults = 100

// Options are what a receipt is verified against.
type Options struct {
	// Keys are the trusted keys. Without any, Verify only checks that the receipt is complete and
	// unchanged since the holder of its own key signed it.
	Keys []PublicKey
	// Head is called with the first line and its signature as they are, before Header, unless it is
	// nil. A text that is not signed has no signature. Its error ends the reading.
	Head func(head string, signature []byte) error
	// Header is called with the header before anything below it, unless it is nil. A wrong
	// signature is known by then, as a fault of the result. Its error ends the reading.
	Header func(Header) error
	// File is called for every file, in the receipt's order, unless it is nil. Its error becomes a
	// fault of the file. An error that wraps ErrStop ends the reading.
	File func(File) error
	// Event is called for every event that is what its hash says, with this hash, in the order of
	// the chain, unless it is nil. What its error means is as for File.
	Event func(e Event, hash string) error
}

// ErrStop ends Verify when a function of Options returns it. Verify returns the error that wraps it.
var ErrStop = errors.New("stop reading the receipt")

// Result is the outcome of a verification.
type Result struct {
	Header  Header // as read; do not rely on it if there are faults
	Signed  bool   // whether it names a key; otherwise nothing shows who made it
	Trusted bool   // whether one of Options.Keys signed it
	Files   int64  // lines that were read
	Events  int64
	Faults  []Fault // the first hundred
	Total   int64   // of all faults
}

// Valid says whether there are no faults.
func (r *Result) Valid() bool { return r.Total == 0 }

// Add adds a fault.
func (r *Result) Add(f Fault) {
	r.Total++
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, f)
	}
}

// Fault is one thing that is wrong.
type Fault struct {
	Line    int64  `json:"line,omitempty"` // of the receipt, from 1; 0: no single line
	Where   string `json:"where"`          // header, signature, key, files, events, or file PATH, event N
	Message string `json:"message"`
}

// Error says what is wrong, and where.
func (f Fault) Error() string {
	if f.Line == 0 {
		return f.Where + ": " + f.Message
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, f.Where, f.Message)
}

// Verify reads a receipt and reports everything that is wrong with it. It keeps one line in memory,
// at most MaxLine bytes, and reads no further than the header announces. Its error is that of the
// reader or of a function of Options; the result then has the faults found so far.
func Verify(r io.Reader, o Options) (*Result, error) {
	v := newVerifier(r, o)
	return v.Result, v.verify()
}

func newVerifier(r io.Reader, o Options) *verifier {
	return &verifier{Result: &Result{}, Options: o, in: bufio.NewReaderSize(r, 64<<10), parse: parseHeader}
}

type verifier struct {
	*Result
	Options
	parse    func(text []byte) (Header, error) // of the first line
	in       *bufio.Reader
	line     int64
	buf      []byte
	first    string // the first line
	signed   []byte // its signature
	manifest Manifest
	last     string // path of the previous file
	chain    string // hash of the previous event
}

func (v *verifier) fault(line int64, where, format string, args ...any) {
	v.Add(Fault{Line: line, Where: where, Message: fmt.Sprintf(format, args...)})
}

// errTooLong ends the reading: no receipt has such a line.
var errTooLong = errors.New("line too long")

// next reads a line with its line feed. It returns io.EOF at the end.
func (v *verifier) next() ([]byte, error) {
	v.buf = v.buf[:0]
	for {
		part, err := v.in.ReadSlice('\n')
		v.buf = append(v.buf, part...)
		switch {
		case len(v.buf) > MaxLine:
			return nil, errTooLong
		case err == nil:
			v.line++
			return v.buf, nil
		case errors.Is(err, io.EOF) && len(v.buf) > 0:
			v.line++
			return v.buf, nil // the missing line feed fails the check of its form
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (v *verifier) verify() error {
	err := v.head()
	if err == nil && v.Head != nil {
		err = v.Head(v.first, v.signed)
	}
	if err == nil && v.Options.Header != nil {
		err = v.Options.Header(v.Result.Header)
	}
	if err == nil {
		err = v.body()
	}
	switch {
	case errors.Is(err, errTooLong):
		v.fault(v.line+1, "line", "it is longer than %d bytes, the limit of a receipt's line", MaxLine)
		return nil
	case errors.Is(err, errStopped):
		return nil
	}
	return err
}

// errStopped ends the reading after a fault that makes the rest unreadable.
var errStopped = errors.New("nothing more can be read")

// head verifies header, key and signature.
func (v *verifier) head() error {
	text, err := v.next()
	if errors.Is(err, io.EOF) {
		v.fault(0, "header", "the file is empty")
		return errStopped
	} else if err != nil {
		return err
	}
	signed := bytes.Clone(text)
	v.first = string(signed)
	if v.Result.Header, err = v.parse(signed); err != nil {
		v.fault(1, "header", "%v", err)
		return errStopped
	}
	if v.Signed = v.Result.Header.Key != ""; !v.Signed {
		if len(v.Keys) > 0 {
			v.fault(1, "key", "the receipt is not signed: nothing shows who made it")
		}
		return nil
	}
	public, err := ParsePublicKey(v.Result.Header.PublicKey)
	if err != nil {
		v.fault(1, "key", "%v", err)
		return errStopped
	}
	if public.ID() != v.Result.Header.Key {
		v.fault(1, "key", "the header names key %s, but its public key has the id %s", v.Result.Header.Key, public.ID())
	}
	text, err = v.next()
	if errors.Is(err, io.EOF) {
		v.fault(2, "signature", "it is missing: the receipt is cut off")
		return errStopped
	} else if err != nil {
		return err
	}
	signature, err := parseSignature(text)
	if err != nil {
		v.fault(2, "signature", "%v", err)
		return nil
	}
	v.signed = signature
	if !ed25519.Verify(ed25519.PublicKey(public), signed, signature) {
		v.fault(2, "signature", "it does not match the header: the header was changed after signing, or another key signed it")
	}
	v.trust(public)
	return nil
}

func (v *verifier) trust(public PublicKey) {
	for _, k := range v.Keys {
		v.Trusted = v.Trusted || bytes.Equal(k, public)
	}
	if len(v.Keys) > 0 && !v.Trusted {
		v.fault(1, "key", "the receipt is signed by key %s, which is not among the keys given", public.ID())
	}
}

// body verifies the lists of files and events.
func (v *verifier) body() error {
	v.chain = v.Result.Header.Events.Before
	for v.Files < v.Result.Header.Files || v.Events < v.Result.Header.Events.Count {
		text, err := v.next()
		if errors.Is(err, io.EOF) {
			v.fault(0, "receipt", "it is cut off after %d of %d files and %d of %d events",
				v.Files, v.Result.Header.Files, v.Events, v.Result.Header.Events.Count)
			return nil
		} else if err != nil {
			return err
		}
		if v.Files < v.Result.Header.Files {
			err = v.file(text)
		} else {
			err = v.event(text)
		}
		if err != nil {
			return err
		}
	}
	v.compareSums()
	if _, err := v.next(); err == nil {
		v.fault(v.line, "receipt", "there is more than the %d files and %d events of the signed header", v.Result.Header.Files, v.Result.Header.Events.Count)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// compareSums compares the sums over all lines with the signed header.
func (v *verifier) compareSums() {
	if got := v.manifest.Digest(); got != v.Result.Header.Manifest {
		v.fault(0, "files", "the list of files was changed: its digest is %s, and the header says %s", got, v.Result.Header.Manifest)
	}
	if v.manifest.Bytes != v.Result.Header.Bytes {
		v.fault(0, "files", "the sizes add up to %d bytes, and the header says %d", v.manifest.Bytes, v.Result.Header.Bytes)
	}
	if v.chain != v.Result.Header.Events.After {
		v.fault(0, "events", "events were changed: the chain ends at %s, and the header says %s", v.chain, v.Result.Header.Events.After)
	}
}

func (v *verifier) file(text []byte) error {
	v.Files++
	f, err := parseFile(text, v.Result.Header.Format)
	if err != nil {
		v.fault(v.line, "file", "%v", err)
		return nil
	}
	v.manifest.Add(f)
	where := "file " + EscapePath(f.Path)
	if v.Files > 1 && f.Path <= v.last {
		v.fault(v.line, where, "it does not come after the file before it")
	}
	v.last = f.Path
	if v.File == nil {
		return nil
	}
	return v.told(where, v.File(f))
}

// told makes an error of a function of Options the fault of a line, unless it ends the reading.
func (v *verifier) told(where string, err error) error {
	if errors.Is(err, ErrStop) {
		return err
	} else if err != nil {
		v.fault(0, where, "%v", err)
	}
	return nil
}

// event continues with the hash in the line. So each changed event is reported, and none after it.
func (v *verifier) event(text []byte) error {
	v.Events++
	seq := v.Result.Header.Events.First + v.Events - 1
	where := fmt.Sprintf("event %d", seq)
	e, hash, err := parseEvent(text)
	if err != nil {
		v.fault(v.line, where, "%v", err)
		return nil
	}
	where += " (" + e.Type + ")"
	switch {
	case e.Seq != seq:
		v.fault(v.line, where, "its number in the chain is %d: an event is missing, or out of place", e.Seq)
	case e.Object != v.Result.Header.Object:
		v.fault(v.line, where, "it is about another object, %s", e.Object)
	}
	want := e.Hash(v.chain)
	if want != hash {
		v.fault(v.line, where, "it was changed, or the hash of the event before it: its hash must be %s, but the line has %s", want, hash)
	}
	v.chain = hash
	if v.Event == nil || want != hash || e.Seq != seq || e.Object != v.Result.Header.Object {
		return nil
	}
	return v.told(where, v.Event(e, hash))
}
