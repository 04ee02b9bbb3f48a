package evidence

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// Reader says what is done with evidence as it is read. A nil function skips its part. The error of
// a function ends the reading, and Read returns it.
//
// The functions are called before a file was read to its end. So what they get counts only if the
// report has no fault of that file. For an event that suffices; the files of a version are those of
// its receipt if the receipt has no fault.
type Reader struct {
	// Keys are the trusted keys. Without any, evidence is only compared with itself.
	Keys []receipt.PublicKey
	// Head is called with the first line of each receipt and its signature, as they are, before
	// Receipt.
	Head func(version int, head string, signature []byte) error
	// Receipt is called with the header of each receipt, by version. The events before those of the
	// receipt, as far as there are any, were read by then.
	Receipt func(receipt.Header) error
	// File is called for every file of a receipt, by path, after Receipt.
	File func(version int, f receipt.File) error
	// Event is called for every event of the chain once, in its order, with its hash.
	Event func(e receipt.Event, hash string) error

	header func(receipt.Header) // is called with the header of each file; nil: none
	most   *int64               // events after this one do not count; nil: all do
}

// Header returns the header of a version's receipt; there is false if there is none that can be read. It
// does not verify it. An error is that of the store.
func (o Object) Header(ctx context.Context, version int) (h receipt.Header, there bool, err error) {
	in, err := o.Store.Open(ctx, o.Key(File{Version: version}), 0, -1)
	if errors.Is(err, storage.ErrNotFound) {
		return h, false, nil
	} else if err != nil {
		return h, false, fmt.Errorf("read the receipt of version %d in %q: %w", version, o.Folder, err)
	}
	line, err := bufio.NewReaderSize(in, receipt.MaxLine).ReadSlice('\n')
	if err := errors.Join(err, in.Close()); err != nil {
		return h, false, nil //nolint:nilerr // whoever verifies it says so
	}
	h, err = receipt.ParseHeader(string(line))
	return h, err == nil, nil
}

// ARK returns the ARK that the object's receipts name, without verifying them; "": none that can be read.
func (o Object) ARK(ctx context.Context) (string, error) {
	files, err := o.List(ctx)
	if err != nil {
		return "", err
	}
	for _, version := range files.Receipts {
		h, there, err := o.Header(ctx, version)
		if there || err != nil {
			return h.Object, err
		}
	}
	return "", nil
}

// Report is what Read found.
type Report struct {
	// Last is the number of the chain's last event, Hash its hash (receipt.Zero if there is none).
	// Whether later events were cut off, only a checkpoint tells.
	Last int64
	Hash string
	// Missing counts events that no file has, before Last.
	Missing int64
	// Unsigned and Untrusted count files that nobody signed, and that none of the keys signed.
	Unsigned, Untrusted int
	Faults              []Fault // the first hundred
	Total               int64   // of all faults
}

// Valid says whether there are no faults.
func (r *Report) Valid() bool { return r.Total == 0 }

// Fault is one thing that is wrong with a file of evidence.
type Fault struct {
	File string `json:"file"` // its name; "": the chain as a whole
	receipt.Fault
}

// Error says what is wrong, and where.
func (f Fault) Error() string {
	if f.File == "" {
		return f.Fault.Error()
	}
	return f.File + ": " + f.Fault.Error()
}

// mostFaults is how many faults a report lists. It counts the others.
const mostFaults = 100

func (r *Report) add(file string, f receipt.Fault) {
	r.Total++
	if len(r.Faults) < mostFaults {
		r.Faults = append(r.Faults, Fault{File: file, Fault: f})
	}
}

// reading is a Read that runs.
type reading struct {
	Reader
	*Report
	id     string // of the object; "": not known yet
	files  Files
	limits map[File]int64 // of files whose later events do not count
	open   func(context.Context, File) (io.ReadCloser, error)
}

// Read reads all evidence of an object: the receipts in the order of their versions, and the
// segments with the events that no receipt has. It verifies every file that it reads, and that the
// events form one chain. It does not read a segment whose events it has from other files. Its error
// is that of the store, of ctx or of a function of r; everything else is a fault in the report.
func (o Object) Read(ctx context.Context, files Files, r Reader) (*Report, error) {
	return read(ctx, o.ID, files, nil, o.open, r)
}

// open opens a file of evidence.
func (o Object) open(ctx context.Context, f File) (io.ReadCloser, error) {
	return o.Store.Open(ctx, o.Key(f), 0, -1)
}

// read is Object.Read with files from anywhere.
func read(ctx context.Context, id string, files Files, limits map[File]int64, open func(context.Context, File) (io.ReadCloser, error), r Reader) (*Report, error) {
	in := &reading{Reader: r, Report: &Report{Hash: receipt.Zero}, id: id, files: files, limits: limits, open: open}
	for _, version := range files.Receipts {
		if err := in.receipt(ctx, File{Version: version}); err != nil {
			return in.Report, err
		}
	}
	return in.Report, in.segments(ctx, math.MaxInt64)
}

// receipt reads a receipt. Before its own events it reads those that were before.
func (r *reading) receipt(ctx context.Context, f File) error {
	return r.verify(ctx, f, receipt.Verify, receipt.Options{
		Head: func(head string, signature []byte) error {
			if r.Head == nil {
				return nil
			}
			return r.Head(f.Version, head, signature)
		},
		Header: func(h receipt.Header) error {
			if h.Version != f.Version {
				r.add(f.String(), receipt.Fault{Line: 1, Where: "header", Message: fmt.Sprintf("it is of version %d", h.Version)})
			}
			if err := r.segments(ctx, h.Events.First-1); err != nil {
				return err
			}
			r.join(f, h)
			if r.Receipt == nil {
				return nil
			}
			return r.Receipt(h)
		},
		File: func(file receipt.File) error {
			if r.File == nil {
				return nil
			}
			return r.File(f.Version, file)
		},
	})
}

// segments reads segments, each at most once, until event to was read or none is left.
func (r *reading) segments(ctx context.Context, to int64) error {
	for r.Last < to {
		next, found := r.next(to)
		if !found {
			return nil
		}
		r.files.Segments = slices.DeleteFunc(slices.Clone(r.files.Segments), func(s File) bool { return s == next })
		err := r.verify(ctx, next, receipt.VerifyEvents, receipt.Options{
			Header: func(h receipt.Header) error {
				if h.Events.First != next.First || h.Events.Last() != next.Last {
					r.add(next.String(), receipt.Fault{Line: 1, Where: "header", Message: fmt.Sprintf("it is of events %d to %d", h.Events.First, h.Events.Last())})
				}
				r.join(next, h)
				return nil
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// next returns the segment that continues the chain farthest. If none does, it returns the first
// one after a gap that begins no later than event to.
func (r *reading) next(to int64) (best File, found bool) {
	for _, s := range r.files.Segments {
		switch {
		case r.ends(s) <= r.Last || s.First > to:
		case s.First <= r.Last+1 && (!found || best.First > r.Last+1 || r.ends(s) > r.ends(best)), !found:
			best, found = s, true
		}
	}
	return best, found
}

// ends returns the number of the last event that counts of a segment.
func (r *reading) ends(s File) int64 {
	if last, limited := r.limits[s]; limited {
		return last
	}
	return s.Last
}

// join compares a file's place in the chain with the chain as read so far. After a gap, or another
// chain, it goes on from what the file says.
func (r *reading) join(f File, h receipt.Header) {
	if r.header != nil {
		r.header(h)
	}
	s := h.Events
	switch before := s.First - 1; {
	case before > r.Last:
		r.Missing += before - r.Last
		r.add("", receipt.Fault{Where: "events", Message: fmt.Sprintf("events %d to %d are missing before %s", r.Last+1, before, f)})
		r.Last, r.Hash = before, s.Before
	case before == r.Last && s.Before != r.Hash:
		r.add(f.String(), receipt.Fault{Where: "events", Message: fmt.Sprintf("event %d has another hash than in the files before it", before)})
		r.Hash = s.Before
	}
}

// event takes the next event of the chain from a file.
func (r *reading) event(f File, e receipt.Event, hash string) error {
	if f.Version == 0 && e.Seq > r.ends(f) || r.most != nil && e.Seq > *r.most {
		return nil
	}
	switch {
	case e.Seq == r.Last && hash != r.Hash:
		r.add(f.String(), receipt.Fault{Where: fmt.Sprintf("event %d", e.Seq), Message: "it has another hash than in the files before"})
		return nil
	case e.Seq <= r.Last:
		return nil
	case e.Seq > r.Last+1: // the file's own fault names what is wrong between
		r.Missing += e.Seq - r.Last - 1
	}
	r.Last, r.Hash = e.Seq, hash
	if r.Event == nil {
		return nil
	}
	return r.Event(e, hash)
}

// otherObjectError ends the reading of a file that is not about the object.
type otherObjectError struct{ object string }

// Error names the object that the file is about.
func (e *otherObjectError) Error() string { return "it is of another object, " + e.object }

// verify reads a file, and reports what is wrong with it.
func (r *reading) verify(ctx context.Context, f File, verify func(io.Reader, receipt.Options) (*receipt.Result, error), o receipt.Options) error {
	in, err := r.open(ctx, f)
	if errors.Is(err, storage.ErrNotFound) {
		r.add(f.String(), receipt.Fault{Where: "file", Message: "it was removed meanwhile"})
		return nil
	} else if err != nil {
		return fmt.Errorf("read evidence: %w", err)
	}
	defer in.Close()
	// A function's error must end the reading, and not become a fault.
	stop := func(err error) error {
		if err != nil {
			err = errors.Join(receipt.ErrStop, err)
		}
		return err
	}
	o.Keys = r.Keys
	header := o.Header
	o.Header = func(h receipt.Header) error {
		if r.id == "" {
			r.id = h.Object
		}
		if h.Object != r.id {
			return &otherObjectError{h.Object}
		}
		return header(h)
	}
	if file := o.File; file != nil {
		o.File = func(f receipt.File) error { return stop(file(f)) }
	}
	o.Event = func(e receipt.Event, hash string) error { return stop(r.event(f, e, hash)) }
	result, err := verify(in, o)
	var other *otherObjectError
	if errors.As(err, &other) {
		result.Add(receipt.Fault{Line: 1, Where: "header", Message: other.Error()})
	} else if err != nil {
		return fmt.Errorf("read evidence %s of %s: %w", f, r.id, err)
	}
	for _, fault := range result.Faults {
		r.add(f.String(), fault)
	}
	r.Total += result.Total - int64(len(result.Faults))
	switch {
	case !result.Signed:
		r.Unsigned++
	case !result.Trusted:
		r.Untrusted++
	}
	return nil
}
