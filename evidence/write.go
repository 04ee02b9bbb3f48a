package evidence

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// Events is where the events of chains come from: the Registry.
type Events interface {
	// PremisEvents is that of registry.Evidencing.
	PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error)
}

// Source is what receipts are made from: the Registry.
type Source interface {
	registry.Evidencing
	// Files is that of registry.Inventory.
	Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error)
}

// rowsAtOnce is how many rows are asked for at a time.
const rowsAtOnce = 500

// ErrChanged says that the Registry's rows are not those of which a receipt was made.
var ErrChanged = errors.New("the record has changed since the receipt was made")

// WriteReceipt writes the receipt whose head the Registry keeps. The same receipt gives the same
// bytes. If the rows are not those that the head sums up, it writes them all, so that a verifier
// finds the changes, and returns ErrChanged.
func WriteReceipt(ctx context.Context, w io.Writer, from Source, kept registry.DepositReceipt) error {
	head, err := receipt.ParseHeader(kept.Head)
	if err != nil {
		return fmt.Errorf("read receipt of version %d of %s: %w", kept.Version, kept.ObjectID, err)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if _, err := out.Write(receipt.Head(kept.Head, kept.Signature)); err != nil {
		return err
	}
	var manifest receipt.Manifest
	for after, more := "", true; more; {
		files, err := from.Files(ctx, kept.ObjectID, kept.Version, after, rowsAtOnce)
		if err != nil {
			return err
		}
		for _, f := range files {
			if _, err := out.Write(manifest.Add(receipt.FileOf(f, head.Format))); err != nil {
				return err
			}
			after = f.Path
		}
		more = len(files) == rowsAtOnce
	}
	end, _, err := writeEvents(ctx, out, from, kept.ObjectID, head.Events.Before, kept.FirstEvent, kept.LastEvent)
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if manifest.Digest() != head.Manifest || end != head.Events.After {
		return fmt.Errorf("receipt of version %d of %s: %w", kept.Version, kept.ObjectID, ErrChanged)
	}
	return nil
}

// writeEvents writes events of a chain, as far as they are there. It returns the hash of the last, and
// whether all have the hashes that the record says.
func writeEvents(ctx context.Context, w io.Writer, from Events, objectID, hash string, first, last int64) (end string, whole bool, err error) {
	whole = true
	for after := first - 1; after < last; {
		page, err := from.PremisEvents(ctx, objectID, registry.AfterSeq(after), rowsAtOnce)
		if err != nil || len(page.Rows) == 0 {
			return hash, false, err
		}
		for _, row := range page.Rows {
			if row.Seq > last {
				return hash, whole && after == last, nil
			}
			e := receipt.EventOf(row)
			if _, err := w.Write(e.Line(row.Hash)); err != nil {
				return hash, false, err
			}
			whole = whole && e.Seq == after+1
			after, hash = e.Seq, e.Hash(hash)
			whole = whole && hash == row.Hash
		}
	}
	return hash, whole, nil
}

// KeepReceipts writes the receipts of all versions up to head into the evidence of the object, in
// each of the storages that lacks them: one that is new to the object lacks them all. It returns when
// they are durable everywhere. A version that was recorded before there were receipts has none, which
// is no error. A repeat finds what is there and changes nothing; so does a concurrent call, because
// both write the same bytes.
func KeepReceipts(ctx context.Context, from Source, head int, in ...Object) error {
	lacking := map[int][]Object{head: in}
	if head > 1 { // a new object has nothing to be listed
		clear(lacking)
		for _, o := range in {
			files, err := o.List(ctx)
			if err != nil {
				return err
			}
			for version := 1; version <= head; version++ {
				if _, there := slices.BinarySearch(files.Receipts, version); !there {
					lacking[version] = append(lacking[version], o)
				}
			}
		}
	}
	for _, version := range slices.Sorted(maps.Keys(lacking)) {
		if err := keepReceipt(ctx, from, version, lacking[version]); err != nil {
			return err
		}
	}
	return nil
}

// keepReceipt writes the receipt of a version into several storages.
func keepReceipt(ctx context.Context, from Source, version int, in []Object) error {
	if len(in) == 0 {
		return nil
	}
	kept, err := from.DepositReceipt(ctx, in[0].ID, version)
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	f := File{Version: version}
	_, err = create(ctx, f, in, func(w io.Writer) error { return WriteReceipt(ctx, w, from, kept) })
	if err != nil {
		return fmt.Errorf("keep the receipt of version %d of %s beside its bytes: %w", version, in[0].ID, err)
	}
	return nil
}

// Signer returns the head of a text of events first to last of an object's chain:
// registry.EventsSigning.SignEvents.
type Signer func(ctx context.Context, objectID string, first, last int64) (head []byte, err error)

// KeepEvents writes events first to last of the object's chain into a segment in each of the storages.
// It returns when they are durable. A repeat finds them there and changes nothing; so does a concurrent
// call, because both write the same bytes. Where other events have the segment's name, such as lost ones, the
// segment begins one event earlier. If the Registry's events are not those that the head sums
// up, it writes nothing, and returns ErrChanged.
func KeepEvents(ctx context.Context, from Events, sign Signer, first, last int64, in ...Object) error {
	if len(in) == 0 {
		return nil
	}
	err := keepEvents(ctx, from, sign, first, last, in)
	if err != nil {
		return fmt.Errorf("keep events %d to %d of %s beside its bytes: %w", first, last, in[0].ID, err)
	}
	return nil
}

func keepEvents(ctx context.Context, from Events, sign Signer, first, last int64, in []Object) error {
	head, err := sign(ctx, in[0].ID, first, last)
	if err != nil {
		return err
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	h, err := receipt.ParseEventsHeader(append(bytes.Clone(line), '\n'))
	if err != nil {
		return fmt.Errorf("read the head: %w", err)
	}
	f := File{First: first, Last: last}
	there, err := create(ctx, f, in, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		if _, err := out.Write(head); err != nil {
			return err
		}
		end, whole, err := writeEvents(ctx, out, from, in[0].ID, h.Events.Before, first, last)
		if err == nil && (!whole || end != h.Events.After) {
			err = ErrChanged
		}
		return errors.Join(err, out.Flush())
	})
	if err != nil {
		return err
	}
	var taken []Object
	for _, o := range there {
		condition, err := o.judgeEvents(ctx, from, f, nil)
		if err != nil {
			return err
		}
		if condition == Other {
			taken = append(taken, o)
		}
	}
	switch {
	case len(taken) == 0:
		return nil
	case first == 1:
		return wrongFile(taken[0], f, Other)
	}
	return keepEvents(ctx, from, sign, first-1, last, taken)
}

// create creates a file with the same content in the evidence of each of the objects. Where it is
// already, it stays; it returns these.
func create(ctx context.Context, f File, in []Object, write func(io.Writer) error) (there []Object, err error) {
	writers := make([]storage.Writer, len(in))
	all := make([]io.Writer, len(in))
	for i, o := range in {
		w, err := o.Store.Create(ctx, o.Key(f))
		if err != nil {
			return nil, err
		}
		defer w.Abort() //nolint:errcheck // nothing depends on an aborted writer
		writers[i], all[i] = w, w
	}
	if err := write(io.MultiWriter(all...)); err != nil {
		return nil, err
	}
	for i, w := range writers {
		_, err := w.Commit(ctx)
		if errors.Is(err, storage.ErrExists) {
			there = append(there, in[i])
		} else if err != nil {
			return there, err
		}
	}
	return there, nil
}
