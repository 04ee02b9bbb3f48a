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

	"github.com/holdfast/holdfast/registry"
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
	spans    []receipt.Span // of its files that are right, as far as they count
}

// Copies is the evidence of an object in several storages: each file from the first that has it
// right.
type Copies struct {
	ID     string // of the object
	Copies []Copy
	Files  Files
	// Keys are those that signed files that are right, each with the first time that these know of.
	Keys []registry.ReceiptKey
	from map[File]*judged
	// vouched is the last event that a file signed by one of the keys vouches for, by its own hash or as one before
	// it; nil: without keys, all count.
	vouched *int64
}

// judged is a file of evidence in a copy.
type judged struct {
	File
	copy    int
	right   bool // unchanged, and signed as it must be
	span    receipt.Span
	key     registry.ReceiptKey // that signed it, if it is right; no ID: nobody did
	limited bool                // its last events are of a lost branch: it counts up to span.Last()
	links   []link              // of a forked chain, if the file is right: its events, and the one before them
}

// Compare reads each file of evidence in each of an object's storages alone, and chooses the first
// that is right: unchanged and, if there are keys, signed by one of them. What is of a lost branch of a
// forked chain does not count. Its error is that of a store or of ctx. It keeps no more in memory than the
// names of the files, and of a forked chain the hashes of events.
func Compare(ctx context.Context, id string, keys []receipt.PublicKey, fork Fork, in ...Object) (*Copies, error) {
	out := &Copies{ID: id, from: map[File]*judged{}}
	var all []*judged
	for i, o := range in {
		files, err := o.List(ctx)
		if err != nil {
			return nil, err
		}
		out.Copies = append(out.Copies, Copy{Object: o})
		for _, f := range files.all() {
			if f.Version == 0 {
				out.Copies[i].Segments++
			}
			j, err := out.judge(ctx, i, f, keys, len(fork.Gaps) > 0)
			if err != nil {
				return nil, err
			}
			all = append(all, j)
		}
	}
	for _, j := range all {
		out.addKey(j)
	}
	fork.leave(all)
	if len(keys) > 0 {
		out.vouched = new(int64)
		for _, j := range all {
			if j.right {
				*out.vouched = max(*out.vouched, j.span.Last())
			}
		}
	}
	has := make([]map[File]bool, len(in))
	for i := range in {
		has[i] = map[File]bool{}
	}
	for _, j := range all {
		if j.limited && j.span.Count == 0 {
			continue
		}
		has[j.copy][j.File] = true
		if j.right {
			out.Copies[j.copy].spans = append(out.Copies[j.copy].spans, j.span)
		}
		if chosen, ok := out.from[j.File]; !ok || j.better(chosen) {
			out.from[j.File] = j
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(out.from), compare) {
		out.Files.add(f)
		for i := range in {
			if !has[i][f] && (f.Version > 0 || !out.Copies[i].holds(f.First, out.from[f].ends())) {
				out.Copies[i].Missing = append(out.Copies[i].Missing, f)
			}
		}
	}
	return out, nil
}

// addKey adds the key of a file that is right.
func (c *Copies) addKey(j *judged) {
	if !j.right || j.key.ID == "" {
		return
	}
	i := slices.IndexFunc(c.Keys, func(k registry.ReceiptKey) bool { return k.ID == j.key.ID })
	switch {
	case i < 0:
		c.Keys = append(c.Keys, j.key)
	case j.key.FirstUsedAt.Before(c.Keys[i].FirstUsedAt):
		c.Keys[i].FirstUsedAt = j.key.FirstUsedAt
	}
}

// better reports whether a file is to be chosen instead of one of the same name.
func (j *judged) better(than *judged) bool {
	return j.right && (!than.right || than.limited && !j.limited)
}

// ends returns the number of the last event that counts of a segment.
func (j *judged) ends() int64 {
	if j.limited {
		return j.span.Last()
	}
	return j.Last
}

// judge reads a file in a copy alone, with its events if the chain is forked.
func (c *Copies) judge(ctx context.Context, i int, f File, keys []receipt.PublicKey, forked bool) (*judged, error) {
	j := &judged{File: f, copy: i, right: true}
	var alone Files
	alone.add(f)
	r := Reader{Keys: keys}
	r.header = func(h receipt.Header) {
		j.span, j.key = h.Events, registry.ReceiptKey{ID: h.Key, PublicKey: h.PublicKey, FirstUsedAt: h.Recorded}
	}
	r.Event = func(e receipt.Event, hash string) error {
		if f.Version == 0 { // a segment's header has no time: it was signed after its last event
			j.key.FirstUsedAt = e.At
		}
		if forked {
			j.links = append(j.links, link{e.Seq, hash})
		}
		return nil
	}
	report, err := read(ctx, c.ID, alone, nil, c.Copies[i].open, r)
	if err != nil {
		return nil, err
	}
	for _, fault := range report.Faults {
		if fault.File == "" {
			continue // the files before it are not read here
		}
		j.right = false
		if len(c.Copies[i].Faults) < mostFaults {
			c.Copies[i].Faults = append(c.Copies[i].Faults, fault)
		}
	}
	switch {
	case !j.right:
		j.links = nil
	case len(j.links) > 0:
		j.links = append(j.links, link{j.span.First - 1, j.span.Before})
	}
	return j, nil
}

// Strange returns a file that is right, that none of some keys signed, and that says more than a record which
// has versions up to head and events up to last; there is false if there is none. Events that a file of one of
// these keys follows are not strange, because the chain of hashes covers them.
func (c *Copies) Strange(keys []receipt.PublicKey, head int, last int64) (strange File, there bool) {
	known := func(j *judged) bool {
		return j.right && slices.ContainsFunc(keys, func(k receipt.PublicKey) bool { return k.String() == j.key.PublicKey })
	}
	for _, j := range c.from {
		if known(j) {
			last = max(last, j.span.Last())
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(c.from), compare) {
		if j := c.from[f]; j.right && !known(j) && (f.Version > head || j.span.Last() > last) {
			return f, true
		}
	}
	return File{}, false
}

// holds reports whether a copy's files that are right have all events from first to last.
func (c *Copy) holds(first, last int64) bool { return c.until(first) >= last }

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
	j, there := c.from[File{Version: version}]
	return there && j.right
}

// Header returns the header of a version's receipt, which must be Right.
func (c *Copies) Header(ctx context.Context, version int) (h receipt.Header, err error) {
	f := File{Version: version}
	in, err := c.open(ctx, f)
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
// Right says must not be relied on; its events are passed on if their hashes say that they are right. Of trusted
// keys no events are passed on after the last one for which a file that is right vouches.
func (c *Copies) Read(ctx context.Context, r Reader) (*Report, error) {
	limits := map[File]int64{}
	for f, j := range c.from {
		if j.limited {
			limits[f] = j.ends()
		}
	}
	r.most = c.vouched
	return read(ctx, c.ID, c.Files, limits, c.open, r)
}

// open opens the chosen copy of a file.
func (c *Copies) open(ctx context.Context, f File) (io.ReadCloser, error) {
	j, chosen := c.from[f]
	if !chosen {
		return nil, fmt.Errorf("no copy has %s", f)
	}
	return c.Copies[j.copy].open(ctx, f)
}

// Ends returns the number of the last event that counts of any segment; 0: there is none.
func (c *Copies) Ends() (last int64) {
	for _, f := range c.Files.Segments {
		last = max(last, c.from[f].ends())
	}
	if c.vouched != nil {
		last = min(last, *c.vouched)
	}
	return last
}
