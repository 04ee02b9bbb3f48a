package staging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// MinPart is the least number of bytes between two checkpoints of a file; of large files it is size
// / 10,000 (I5).
const MinPart = 16 << 20

// Checkpoint is how far a file has come: offset, digests and the source's validator in one record
// (R4). One that cannot be used any more, for whatever reason, costs a fetch from the start and
// nothing else.
type Checkpoint struct {
	Key       string             `json:"key"` // of the file that the bytes were to become
	Stored    storage.Checkpoint `json:"stored"`
	Digests   fixity.State       `json:"digests"`
	Validator string             `json:"validator,omitempty"`
	SizeBytes int64              `json:"size_bytes"`
	Modified  time.Time          `json:"modified,omitzero"`
}

// Fetch is one file on its way into staging.
type Fetch struct {
	Source  source.Fetcher
	Store   storage.Store
	Buffers *Buffers // shared among fetches; nil: its own
	Key     string   // of this attempt's own; what it writes begins with it
	Wanted  Wanted
	// Most is how many bytes a file may have whose size neither its source nor the depositor tells;
	// 0: any number. One that has more is an *UnboundedError, and what came of it is removed.
	Most int64

	From  *Checkpoint                                   // where an earlier attempt stood; nil: from the start
	Save  func(ctx context.Context, c Checkpoint) error // keeps a checkpoint; nil: none is kept
	Moved func(n int64)                                 // n more bytes are there, or fewer when it starts over; may be nil
	Read  func(n int64)                                 // n more bytes were read back; may be nil
}

// ErrDamaged says that a staged file does not read as it was written.
var ErrDamaged = errors.New("staged bytes differ from those received")

// Run fetches the file and checks it. A size or digest that differs from the depositor's is a
// *MismatchError only when a second, whole fetch gives the same wrong bytes; otherwise it is the
// source's or the network's fault (R6). A size that the source itself states is believed before
// anything is fetched. All errors of the source are *source.Error.
//
// What was staged in vain is removed, as are the remains that From points to, once they are not
// needed.
func (f *Fetch) Run(ctx context.Context) (File, error) {
	first, err := f.once(ctx, f.Key, f.From)
	if err == nil {
		f.tidy(ctx, first)
		return first, nil
	}
	var wrong *MismatchError
	if !errors.As(err, &wrong) && !errors.Is(err, ErrDamaged) || first.Key == "" && !endless(err) {
		return File{}, err
	}
	if first.Key != "" {
		if err := f.drop(ctx, first); err != nil {
			return File{}, err
		}
	}
	second, again := f.once(ctx, f.Key+".again", nil)
	if again == nil {
		f.tidy(ctx, second)
		return second, nil
	}
	if second.Key != "" {
		if err := f.drop(ctx, second); err != nil {
			return File{}, err
		}
	}
	return File{}, verdict(err, again)
}

// verdict is what two fetches come to that both failed.
func verdict(first, second error) error {
	var a, b *MismatchError
	if !errors.As(second, &b) {
		return second
	}
	if !errors.As(first, &a) {
		return fmt.Errorf("%s was damaged while it was staged: %w; it is fetched again, which gave %s %s",
			b.URL, ErrDamaged, b.What, b.Found)
	}
	if !a.same(b) {
		return fmt.Errorf("%s gives different bytes each time: %s %s, then %s %s", b.URL, a.What, a.Found, b.What, b.Found)
	}
	return b
}

// drop throws a staged file away.
func (f *Fetch) drop(ctx context.Context, file File) error {
	f.moved(-file.SizeBytes)
	if err := f.Store.Delete(ctx, file.Key); err != nil {
		return fmt.Errorf("drop %s: %w", file.Key, err)
	}
	return nil
}

// tidy frees the room that an earlier attempt's part of the file takes. What it misses goes with
// the item.
func (f *Fetch) tidy(ctx context.Context, got File) {
	if f.From != nil && f.From.Key != "" && f.From.Key != f.Key && f.From.Key != got.Key {
		_ = f.Store.DeletePrefix(ctx, f.From.Key)
	}
}

func (f *Fetch) moved(n int64) {
	if f.Moved != nil && n != 0 {
		f.Moved(n)
	}
}

// once makes one fetch. With an error it returns the file, too, when that was staged whole.
func (f *Fetch) once(ctx context.Context, key string, from *Checkpoint) (File, error) {
	t := transfer{fetch: f, key: key}
	defer t.close()
	if err := t.begin(ctx, from); err != nil {
		t.forget()
		return File{}, err
	}
	if err := t.run(ctx); err != nil {
		if endless(err) || errors.As(err, new(*UnboundedError)) {
			t.discard()
		}
		t.forget()
		return File{}, err
	}
	return t.finish(ctx)
}

// digester takes all digests that are wanted.
func (f *Fetch) digester() (*fixity.Digester, error) {
	if f.Wanted.Digest == nil {
		return fixity.NewDigester(f.Wanted.Algorithms...)
	}
	algorithm := f.Wanted.Digest.Algorithm
	if _, err := fixity.New(algorithm); err != nil {
		return nil, &UnsupportedDigest{Algorithm: algorithm, Err: err}
	}
	return fixity.NewDigester(append([]string{algorithm}, f.Wanted.Algorithms...)...)
}
