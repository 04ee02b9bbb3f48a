package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// Condition is what a file of evidence is, compared with the Registry.
type Condition int

// The conditions of a file of evidence.
const (
	Right   Condition = iota // it says what the Registry says
	Damaged                  // it is not what anybody wrote: its own digests do not agree with it
	Other                    // it is whole, and says something else than the Registry
	Gone                     // there is no such file
)

// judgeEvents compares a segment with the Registry's chain. It reads all of it, through something; nil:
// nothing. A right one proves that the Registry has exactly its events, because a hash of the chain
// stands for all events before it.
func (o Object) judgeEvents(ctx context.Context, from Events, f File, through func(io.Reader) io.Reader) (Condition, error) {
	in, err := o.open(ctx, f)
	if errors.Is(err, storage.ErrNotFound) {
		return Gone, nil
	} else if err != nil {
		return 0, fmt.Errorf("read evidence: %w", err)
	}
	var text io.Reader = in
	if through != nil {
		text = through(in)
	}
	result, err := receipt.VerifyEvents(text, receipt.Options{})
	err = errors.Join(err, in.Close())
	if err != nil {
		return 0, fmt.Errorf("read evidence %s of %s: %w", f, o.ID, err)
	}
	if !result.Valid() {
		return Damaged, nil
	}
	h := result.Header
	if h.Object != o.ID || h.Events.First != f.First || h.Events.Last() != f.Last {
		return Other, nil
	}
	for seq, signed := range map[int64]string{f.First - 1: h.Events.Before, f.Last: h.Events.After} {
		if seq == 0 {
			continue // whole, and so receipt.Zero
		}
		page, err := from.PremisEvents(ctx, o.ID, registry.AfterSeq(seq-1), 1)
		if err != nil {
			return 0, err
		}
		if len(page.Rows) == 0 || page.Rows[0].Seq != seq || page.Rows[0].Hash != signed {
			return Other, nil
		}
	}
	return Right, nil
}

// Merge merges segments of an object in one storage if there are more than most, at least 2. First it
// writes the new one and reads it back, then it removes the old ones that it replaces: with both there
// the evidence is the same. It merges the newest ones, and an older one only if it is not much longer
// than they are together; so each event is written again a few times only, however many there are. A
// segment that is not right stays, and so does the new one beside it. It returns how many are left, and an
// error that names each that is not right, but for events whose loss was accepted. known is what the Registry
// says of the object's events.
func Merge(ctx context.Context, from Events, known registry.EvidencePlaces, sign Signer, most int, in Object) (left int, err error) {
	files, err := in.List(ctx)
	if err != nil || len(files.Segments) <= most {
		return len(files.Segments), err
	}
	left = len(files.Segments)
	var run, others []File
	var wrong error
	for _, f := range newest(files.Segments, most) {
		condition, err := in.judgeEvents(ctx, from, f, nil)
		if err != nil {
			return left, err
		}
		switch condition {
		case Right:
			run = append(run, f)
		case Gone:
			left--
		case Other:
			others = append(others, f)
		case Damaged:
			wrong = errors.Join(wrong, wrongFile(in, f, condition))
		}
	}
	lost, err := losses{from: from, known: known}.of(ctx, in, others)
	if err != nil {
		return left, err
	}
	for _, f := range others {
		if !slices.Contains(lost, f) {
			wrong = errors.Join(wrong, wrongFile(in, f, Other))
		}
	}
	if len(run) < 2 {
		return left, wrong
	}
	whole := File{First: run[0].First, Last: run[0].Last}
	for _, f := range run {
		whole.First, whole.Last = min(whole.First, f.First), max(whole.Last, f.Last)
	}
	if err := KeepEvents(ctx, from, sign, whole.First, whole.Last, in); err != nil {
		return left, err
	}
	if condition, err := in.judgeEvents(ctx, from, whole, nil); err != nil || condition != Right {
		return left, errors.Join(err, wrongFile(in, whole, condition))
	}
	if !slices.Contains(files.Segments, whole) {
		left++
	}
	for _, f := range run {
		if f == whole {
			continue
		}
		if err := in.Store.Delete(ctx, in.Key(f)); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return left, fmt.Errorf("remove %s of %s, which is merged into %s: %w", f, in.ID, whole, err)
		}
		left--
	}
	return left, wrong
}

// wrongFile is the error for a file that is not right; nil if it is.
func wrongFile(o Object, f File, c Condition) error {
	switch c {
	case Right:
		return nil
	case Other:
		return fmt.Errorf("%s of %s says something else than the record", f, o.ID)
	case Damaged, Gone:
	}
	return fmt.Errorf("%s of %s is damaged or missing", f, o.ID)
}

// newest returns the segments to be merged.
func newest(segments []File, most int) []File {
	all := slices.SortedFunc(slices.Values(segments), func(a, b File) int { return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.First, b.First)) })
	size := func(f File) int64 { return f.Last - f.First + 1 }
	from, events := len(all)-1, size(all[len(all)-1])
	for from > 0 && (from+1 > most || size(all[from-1]) <= 2*events) {
		from--
		events += size(all[from])
	}
	return all[from:]
}
