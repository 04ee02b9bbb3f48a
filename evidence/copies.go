package evidence

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/holdfast/holdfast/registry/receipt"
)

// Copy is the evidence of an object in one of its storages, compared with the other ones.
type Copy struct {
	Object
	Faults []Fault // of its files, each read alone; the first hundred
	// Missing are files that another copy has: receipts that this one lacks, and segments of whose
	// events it lacks some, because the same events may lie in other segments here.
	Missing  []File
	Segments int            // how many it has, right or not
	spans    []receipt.Span // of its files that are right
}

// Copies is the evidence of an object in several storages: each file from the first that has it
// right.
type Copies struct {
	ID     string // of the object
	Copies []Copy
	Files  Files
	from   map[File]Object
	wrong  map[File]bool // no copy has it right
}

// Compare reads each file of evidence in each of an object's storages alone, and chooses the first
// that is right: unchanged and, if there are keys, signed by one of them. Its error is that of a store
// or of ctx. It keeps no more in memory than the names of the files.
func Compare(ctx context.Context, id string, keys []receipt.PublicKey, in ...Object) (*Copies, error) {
	out := &Copies{ID: id, from: map[File]Object{}, wrong: map[File]bool{}}
	has := make([]map[File]bool, len(in))
	for i, o := range in {
		has[i] = map[File]bool{}
		files, err := o.List(ctx)
		if err != nil {
			return nil, err
		}
		out.Copies = append(out.Copies, Copy{Object: o})
		for _, f := range files.all() {
			has[i][f] = true
			if f.Version == 0 {
				out.Copies[i].Segments++
			}
			if err := out.judge(ctx, i, f, keys); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(out.from), compare) {
		out.Files.add(f)
		for i := range in {
			if !has[i][f] && (f.Version > 0 || !out.Copies[i].holds(f)) {
				out.Copies[i].Missing = append(out.Copies[i].Missing, f)
			}
		}
	}
	return out, nil
}

// judge reads a file in a copy alone, and chooses it if there is none before it that is right.
func (c *Copies) judge(ctx context.Context, i int, f File, keys []receipt.PublicKey) error {
	var alone Files
	alone.add(f)
	var span receipt.Span
	report, err := read(ctx, c.ID, alone, c.Copies[i].open, Reader{Keys: keys, span: func(s receipt.Span) { span = s }})
	if err != nil {
		return err
	}
	right := true
	for _, fault := range report.Faults {
		if fault.File == "" {
			continue // the files before it are not read here
		}
		right = false
		if len(c.Copies[i].Faults) < mostFaults {
			c.Copies[i].Faults = append(c.Copies[i].Faults, fault)
		}
	}
	if right {
		c.Copies[i].spans = append(c.Copies[i].spans, span)
	}
	if _, chosen := c.from[f]; !chosen || right && c.wrong[f] {
		c.from[f], c.wrong[f] = c.Copies[i].Object, !right
	}
	return nil
}

// holds reports whether a copy's files that are right have all events of a segment.
func (c *Copy) holds(f File) bool { return c.until(f.First) >= f.Last }

// Last returns the number of the event up to which a copy's files that are right have all events.
func (c *Copy) Last() int64 { return c.until(1) }

// until returns the number of the event up to which they have all from first on.
func (c *Copy) until(first int64) int64 {
	slices.SortFunc(c.spans, func(a, b receipt.Span) int { return cmp.Compare(a.First, b.First) })
	next := first
	for _, s := range c.spans {
		if s.First <= next {
			next = max(next, s.Last()+1)
		}
	}
	return next - 1
}

// Right reports whether some copy has a version's receipt right.
func (c *Copies) Right(version int) bool {
	f := File{Version: version}
	_, there := c.from[f]
	return there && !c.wrong[f]
}

// Header returns the header of a version's receipt, which must be Right.
func (c *Copies) Header(ctx context.Context, version int) (h receipt.Header, err error) {
	f := File{Version: version}
	in, err := c.from[f].open(ctx, f)
	if err != nil {
		return h, fmt.Errorf("read %s of %s: %w", f, c.ID, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	line, err := bufio.NewReaderSize(in, receipt.MaxLine).ReadSlice('\n')
	if err != nil {
		return h, fmt.Errorf("read %s of %s: %w", f, c.ID, err)
	}
	return receipt.ParseHeader(string(line))
}

// Read is Object.Read with each file from the copy that was chosen for it. What a receipt that is not
// Right says must not be relied on; its events are passed on if their hashes say that they are right.
func (c *Copies) Read(ctx context.Context, r Reader) (*Report, error) {
	return read(ctx, c.ID, c.Files, func(ctx context.Context, f File) (io.ReadCloser, error) {
		o, chosen := c.from[f]
		if !chosen {
			return nil, fmt.Errorf("no copy has %s", f)
		}
		return o.open(ctx, f)
	}, r)
}
