package receipt

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the most bytes that a line may have.
const MaxLine = 1 << 20

// maxFaults is how many faults are told; the others are counted.
const maxFaults = 100

// Options say what to verify a receipt with.
type Options struct {
	// Keys are those that are trusted. Without any it is only verified that the receipt is whole
	// and unchanged since whoever has its key signed it.
	Keys []PublicKey
	// File, when it is set, is called for every file, in the receipt's order. What it returns is a
	// fault of that file; ErrStop ends the reading, with the error that it is joined with.
	File func(File) error
}

// ErrStop ends Verify when Options.File returns it, with the error that it came in.
var ErrStop = errors.New("stop reading the receipt")

// Result is what verifying a receipt came to.
type Result struct {
	Header  Header // as read; nothing of it holds unless there are no faults
	Trusted bool   // it is signed by one of Options.Keys
	Files   int64  // lines that were read
	Events  int64
	Faults  []Fault // the first hundred
	Total   int64   // of all faults
}

// Valid says that nothing is wrong.
func (r *Result) Valid() bool { return r.Total == 0 }

// Add notes one more thing that is wrong.
func (r *Result) Add(f Fault) {
	r.Total++
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, f)
	}
}

// Fault is one thing that is wrong.
type Fault struct {
	Line    int64  `json:"line,omitempty"` // of the receipt, from 1; 0: it is about no one line
	Where   string `json:"where"`          // header, signature, key, files, events, or file PATH, event N
	Message string `json:"message"`
}

// Error says where and what.
func (f Fault) Error() string {
	if f.Line == 0 {
		return f.Where + ": " + f.Message
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, f.Where, f.Message)
}

// Verify reads a receipt and says everything that is wrong with it. It holds a line at a time,
// never more than MaxLine bytes, and reads no further than the header says that the receipt goes.
// The error is the reader's, or Options.File's; what was found until then is in the result.
func Verify(r io.Reader, o Options) (*Result, error) {
	v := &verifier{Result: &Result{}, Options: o, in: bufio.NewReaderSize(r, 64<<10)}
	return v.Result, v.all()
}

type verifier struct {
	*Result
	Options
	in       *bufio.Reader
	line     int64
	buf      []byte
	manifest Manifest
	last     string // path of the file before
	chain    string // hash of the event before
}

func (v *verifier) fault(line int64, where, format string, args ...any) {
	v.Add(Fault{Line: line, Where: where, Message: fmt.Sprintf(format, args...)})
}

// errTooLong ends the reading of what is no receipt.
var errTooLong = errors.New("line too long")

// next reads a line with its end. io.EOF: there is none.
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
			return v.buf, nil // without its end, so that it has not the form
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (v *verifier) all() error {
	err := v.head()
	if err == nil {
		err = v.body()
	}
	switch {
	case errors.Is(err, errTooLong):
		v.fault(v.line+1, "line", "it is longer than %d bytes; no line of a receipt is", MaxLine)
		return nil
	case errors.Is(err, errOver):
		return nil
	}
	return err
}

// errOver ends a reading whose fault is told.
var errOver = errors.New("nothing more can be read")

// head verifies header, key and signature.
func (v *verifier) head() error {
	text, err := v.next()
	if errors.Is(err, io.EOF) {
		v.fault(0, "header", "the file is empty")
		return errOver
	} else if err != nil {
		return err
	}
	signed := bytes.Clone(text)
	if v.Header, err = parseHeader(signed); err != nil {
		v.fault(1, "header", "%v", err)
		return errOver
	}
	public, err := ParsePublicKey(v.Header.PublicKey)
	if err != nil {
		v.fault(1, "key", "%v", err)
		return errOver
	}
	if public.ID() != v.Header.Key {
		v.fault(1, "key", "it is named %s, and its public key is that of %s", v.Header.Key, public.ID())
	}
	text, err = v.next()
	if errors.Is(err, io.EOF) {
		v.fault(2, "signature", "it is missing: the receipt is cut off")
		return errOver
	} else if err != nil {
		return err
	}
	signature, err := parseSignature(text)
	if err != nil {
		v.fault(2, "signature", "%v", err)
		return nil
	}
	if !ed25519.Verify(ed25519.PublicKey(public), signed, signature) {
		v.fault(2, "signature", "it is not the header's: the header was changed after it was signed, or somebody else signed")
	}
	v.trust(public)
	return nil
}

func (v *verifier) trust(public PublicKey) {
	for _, k := range v.Keys {
		v.Trusted = v.Trusted || bytes.Equal(k, public)
	}
	if len(v.Keys) > 0 && !v.Trusted {
		v.fault(1, "key", "the receipt is signed by key %s, which is not among those given", public.ID())
	}
}

// body verifies the lists of files and events.
func (v *verifier) body() error {
	v.chain = v.Header.Events.Before
	for v.Files < v.Header.Files || v.Events < v.Header.Events.Count {
		text, err := v.next()
		if errors.Is(err, io.EOF) {
			v.fault(0, "receipt", "it is cut off after %d of %d files and %d of %d events",
				v.Files, v.Header.Files, v.Events, v.Header.Events.Count)
			return nil
		} else if err != nil {
			return err
		}
		if v.Files < v.Header.Files {
			err = v.file(text)
		} else {
			v.event(text)
		}
		if err != nil {
			return err
		}
	}
	v.sums()
	if _, err := v.next(); err == nil {
		v.fault(v.line, "receipt", "there is more than the %d files and %d events that are signed", v.Header.Files, v.Header.Events.Count)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// sums compares what all lines come to with what is signed.
func (v *verifier) sums() {
	if got := v.manifest.Digest(); got != v.Header.Manifest {
		v.fault(0, "files", "the list of files was changed: it comes to %s, and %s is signed", got, v.Header.Manifest)
	}
	if v.manifest.Bytes != v.Header.Bytes {
		v.fault(0, "files", "their sizes come to %d bytes, and %d are signed", v.manifest.Bytes, v.Header.Bytes)
	}
	if v.chain != v.Header.Events.After {
		v.fault(0, "events", "the chain of events ends at %s, and %s is signed: events were changed", v.chain, v.Header.Events.After)
	}
}

func (v *verifier) file(text []byte) error {
	v.Files++
	f, err := parseFile(text, v.Header.Format)
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
	err = v.File(f)
	if errors.Is(err, ErrStop) {
		return err
	} else if err != nil {
		v.fault(0, where, "%v", err)
	}
	return nil
}

// event goes on with the hash that stands there, so that of changed events each is named and none
// after it.
func (v *verifier) event(text []byte) {
	v.Events++
	seq := v.Header.Events.First + v.Events - 1
	where := fmt.Sprintf("event %d", seq)
	e, hash, err := parseEvent(text)
	if err != nil {
		v.fault(v.line, where, "%v", err)
		return
	}
	where += " (" + e.Type + ")"
	switch {
	case e.Seq != seq:
		v.fault(v.line, where, "its number in the chain is %d: an event is missing, or out of place", e.Seq)
	case e.Object != v.Header.Object:
		v.fault(v.line, where, "it is about another object, %s", e.Object)
	}
	if want := e.Hash(v.chain); want != hash {
		v.fault(v.line, where, "it was changed, or the hash of the event before it was: it comes to %s, and %s stands there", want, hash)
	}
	v.chain = hash
}
