package evidence

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// Judge compares an object's evidence in storages with the Registry, and mends it. The caller sees to it
// that no version is recorded meanwhile. It is for one goroutine.
type Judge struct {
	From Source
	// Known is what the Registry says of the object's events.
	Known registry.EvidencePlaces
	// Through is what every file is read through; nil: nothing.
	Through func(io.Reader) io.Reader

	receipts map[int]*expected
}

// Place is an object's evidence in one storage, as the Registry says that it is.
type Place struct {
	Object
	Head int   // the newest version that the storage has, and of which it has all receipts
	Kept int64 // the event up to which all must be there
}

// expected is a receipt as the Registry has it.
type expected struct {
	registry.DepositReceipt
	format int
	sum    [sha256.Size]byte // of the whole text
}

// Judgement is what is wrong with an object's evidence in one storage.
type Judgement struct {
	In      Place
	Damaged []File // it is not what anybody wrote, and the Registry has all that was in it
	Missing []File // receipts, and events as segments
	// Other are files that are whole but say something else than the Registry, or that might say more
	// than it knows. A person must look at them.
	Other []File
	// Lost are segments of events that the record lost, and whose loss two people accepted. They stay as they are.
	Lost []File
	// Early are receipts that are not there because none were kept when their versions were recorded.
	Early []File
}

// Right says whether nothing is wrong.
func (j *Judgement) Right() bool { return len(j.Damaged)+len(j.Missing)+len(j.Other) == 0 }

// mostNamed is how many files of a kind a text names.
const mostNamed = 5

// kind is one thing that may be wrong with files, as people are told.
type kind struct {
	what  string
	files []File
}

func (j *Judgement) kinds() []kind {
	return []kind{{"damaged", j.Damaged}, {"missing", j.Missing}, {"not what the record says", j.Other}}
}

// Wrong returns the files that are not right, and what is wrong with each.
func (j *Judgement) Wrong() iter.Seq2[File, string] {
	return func(yield func(File, string) bool) {
		for _, k := range j.kinds() {
			for _, f := range k.files {
				if !yield(f, k.what) {
					return
				}
			}
		}
	}
}

// String names what is wrong for people; "" if nothing is.
func (j *Judgement) String() string {
	var parts []string
	for _, k := range j.kinds() {
		for i, f := range k.files {
			if i == mostNamed {
				parts = append(parts, fmt.Sprintf("%d more %s", len(k.files)-i, k.what))
				break
			}
			parts = append(parts, f.String()+" "+k.what)
		}
	}
	return strings.Join(parts, ", ")
}

// mostLooks is how often a storage is looked at while its segments are being merged.
const mostLooks = 5

// Of judges the evidence in one storage. It reads every file. Its error is that of the Registry, which is
// ErrChanged if the record does not agree with its own receipts, of the storage, or of ctx.
func (j *Judge) Of(ctx context.Context, in Place) (*Judgement, error) {
	for look := 1; ; look++ {
		files, err := in.List(ctx)
		if err != nil {
			return nil, err
		}
		out := &Judgement{In: in}
		if err := j.ofReceipts(ctx, out, files); err != nil {
			return nil, err
		}
		if err := j.ofSegments(ctx, out, files); err != nil {
			return nil, err
		}
		now, err := in.List(ctx)
		if err != nil {
			return nil, err
		}
		if slices.Equal(files.Segments, now.Segments) {
			return out, nil
		}
		if look == mostLooks {
			return nil, fmt.Errorf("the events of %s are being written and merged again and again", in.ID)
		}
	}
}

func (j *Judge) ofReceipts(ctx context.Context, out *Judgement, files Files) error {
	var versions []int
	for version := range out.In.Head {
		versions = append(versions, version+1)
	}
	for _, version := range files.Receipts { // a name may have any number
		if version > out.In.Head {
			versions = append(versions, version)
		}
	}
	for _, version := range versions {
		f := File{Version: version}
		want, err := j.receipt(ctx, out.In.ID, version)
		if err != nil {
			return err
		}
		_, there := slices.BinarySearch(files.Receipts, version)
		switch {
		case want == nil && there:
			out.Other = append(out.Other, f)
			continue
		case want == nil:
			continue
		case !there && want.format < 3:
			out.Early = append(out.Early, f)
			continue
		}
		condition, err := j.ofReceipt(ctx, out.In.Object, f, want)
		if err != nil {
			return err
		}
		out.add(f, condition)
	}
	return nil
}

func (j *Judgement) add(f File, c Condition) {
	switch c {
	case Right:
	case Damaged:
		j.Damaged = append(j.Damaged, f)
	case Other:
		j.Other = append(j.Other, f)
	case Gone:
		j.Missing = append(j.Missing, f)
	}
}

// receipt returns a version's receipt as the Registry has it; nil: it has none.
func (j *Judge) receipt(ctx context.Context, id string, version int) (*expected, error) {
	if want, known := j.receipts[version]; known {
		return want, nil
	}
	if j.receipts == nil {
		j.receipts = map[int]*expected{}
	}
	kept, err := j.From.DepositReceipt(ctx, id, version)
	if errors.Is(err, registry.ErrNotFound) {
		j.receipts[version] = nil
		return nil, nil //nolint:nilnil // a version from before there were receipts has none
	} else if err != nil {
		return nil, err
	}
	h, err := receipt.ParseHeader(kept.Head)
	if err != nil {
		return nil, fmt.Errorf("receipt of version %d of %s: %w", version, id, ErrChanged)
	}
	want := &expected{DepositReceipt: kept, format: h.Format}
	sum := sha256.New()
	if err := WriteReceipt(ctx, sum, j.From, kept); err != nil {
		return nil, err
	}
	sum.Sum(want.sum[:0])
	j.receipts[version] = want
	return want, nil
}

func (j *Judge) open(ctx context.Context, in Object, f File) (io.ReadCloser, io.Reader, error) {
	file, err := in.open(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	if j.Through == nil {
		return file, file, nil
	}
	return file, j.Through(file), nil
}

// ofReceipt compares a receipt with the Registry's, byte for byte. One that differs is read again, to
// learn whether it is whole.
func (j *Judge) ofReceipt(ctx context.Context, in Object, f File, want *expected) (Condition, error) {
	file, through, err := j.open(ctx, in, f)
	if errors.Is(err, storage.ErrNotFound) {
		return Gone, nil
	} else if err != nil {
		return 0, fmt.Errorf("read evidence: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, through)
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, fmt.Errorf("read evidence %s of %s: %w", f, in.ID, err)
	}
	if [sha256.Size]byte(sum.Sum(nil)) == want.sum {
		return Right, nil
	}
	if file, through, err = j.open(ctx, in, f); err != nil {
		return 0, fmt.Errorf("read evidence: %w", err)
	}
	result, err := receipt.Verify(through, receipt.Options{})
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, fmt.Errorf("read evidence %s of %s: %w", f, in.ID, err)
	}
	if result.Valid() {
		return Other, nil
	}
	return Damaged, nil
}

// ofSegments judges the segments, and finds the events that must be there and that neither they nor receipts
// have.
func (j *Judge) ofSegments(ctx context.Context, out *Judgement, files Files) (err error) {
	kept := out.In.Kept
	var others []File
	var have []File // segments, right or not, and what receipts have or will have
	for version, want := range j.receipts {
		if _, there := slices.BinarySearch(files.Receipts, version); want != nil && (there || version <= out.In.Head) {
			have = append(have, File{First: want.FirstEvent, Last: want.LastEvent})
		}
	}
	for _, f := range files.Segments {
		var condition Condition
		if condition, err = out.In.judgeEvents(ctx, j.From, f, j.Through); err != nil {
			return err
		}
		if condition == Gone {
			continue // it was merged
		}
		if condition == Damaged && f.Last > j.Known.Last {
			condition = Other
		}
		if condition == Other {
			others = append(others, f)
			continue
		}
		out.add(f, condition)
		have = append(have, f)
	}
	if out.Lost, err = (losses{from: j.From, known: j.Known, through: j.Through}).of(ctx, out.In.Object, others); err != nil {
		return err
	}
	for _, f := range others {
		if !slices.Contains(out.Lost, f) {
			out.add(f, Other)
			have = append(have, f)
		}
	}
	slices.SortFunc(have, compare)
	next := int64(1)
	for _, f := range append(have, File{First: kept + 1, Last: kept}) {
		if f.First > next {
			out.Missing = append(out.Missing, File{First: next, Last: min(f.First-1, kept)})
		}
		if next = max(next, f.Last+1); next > kept {
			break
		}
	}
	return nil
}

// Mend removes what is damaged, writes it and what is missing anew from the Registry, and judges the
// storage again. A repeat goes on where it was killed. It leaves what a person must look at.
func (j *Judge) Mend(ctx context.Context, wrong *Judgement, sign Signer) error {
	in := wrong.In
	for _, f := range wrong.Damaged {
		if err := in.Store.Delete(ctx, in.Key(f)); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("remove damaged %s of %s: %w", f, in.ID, err)
		}
	}
	if err := KeepReceipts(ctx, j.From, in.Head, in.Object); err != nil {
		return err
	}
	now, err := j.Of(ctx, in) // which events are missing without what was damaged
	if err != nil {
		return err
	}
	for _, f := range now.Missing {
		if f.Version > 0 {
			continue // the last look tells of it
		}
		if err := KeepEvents(ctx, j.From, sign, f.First, f.Last, in.Object); err != nil {
			return err
		}
	}
	if now, err = j.Of(ctx, in); err == nil && len(now.Damaged)+len(now.Missing) > 0 {
		err = fmt.Errorf("the evidence of %s was written anew, and is still wrong: %s", in.ID, now)
	}
	return err
}
