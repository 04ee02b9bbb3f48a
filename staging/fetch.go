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

// MinPart is the least number of bytes between two checkpoints of a file; for large files it is
// size / 10,000 (I5).
const MinPart = 16 << 20

// Checkpoint records how far a file has come: offset, digests and the source's validator together
// (R4). An unusable one costs a fetch from the start and nothing else.
type Checkpoint struct {
	Key       string             `json:"key"` // of the file that was being written
	Stored    storage.Checkpoint `json:"stored"`
	Digests   fixity.State       `json:"digests"`
	Validator string             `json:"validator,omitempty"`
	SizeBytes int64              `json:"size_bytes"`
	Modified  time.Time          `json:"modified,omitzero"`
}

// Again ends the key of a file that was fetched a second time.
const Again = ".again"

// Fetch fetches one file into staging.
type Fetch struct {
	Source  source.Fetcher
	Store   storage.Store
	Buffers *Buffers // shared by fetches; nil: its own
	Key     string   // key or key prefix of this attempt for everything that the fetch writes
	Wanted  Wanted
	// InPlace says that the file is under Key already, and that Source reads it there. Run then
	// takes its digests and writes and deletes nothing.
	InPlace bool
	// Most limits the bytes of a file of unknown size; 0: no limit. A larger file gives an
	// *UnboundedError, and what was written is removed.
	Most int64

	From  *Checkpoint                                   // checkpoint of an earlier attempt; nil: start over
	Save  func(ctx context.Context, c Checkpoint) error // stores a checkpoint; nil: no checkpoints
	Moved func(n int64)                                 // n more bytes are staged, or fewer if it starts over; may be nil
	Read  func(n int64)                                 // n more bytes were read back; may be nil
}

// ErrDamaged says that a staged file does not read as it was written.
var ErrDamaged = errors.New("staged bytes differ from those received")

// Run fetches and checks the file. If its size or digest differs from the depositor's, Run fetches
// it completely again. Only if both fetches give the same wrong bytes does it return a
// *MismatchError; otherwise the source or the network is at fault (R6). If the source itself states
// a wrong size, Run fetches nothing. All errors of the source are *source.Error.
//
// Run removes staged data that it does not use, and the bytes that From names once they are not
// needed.
func (f *Fetch) Run(ctx context.Context) (File, error) {
	again := f.Key + Again
	if f.InPlace {
		f.Store, again = inPlace{f.Store, f.Key}, f.Key
	}
	first, err := f.once(ctx, f.Key, f.From)
	if err == nil {
		f.removePredecessor(ctx, first)
		return first, nil
	}
	var wrong *MismatchError
	if !errors.As(err, &wrong) && !errors.Is(err, ErrDamaged) || first.Key == "" && !isTooLong(err) {
		return File{}, err
	}
	if first.Key != "" {
		if err := f.deleteStaged(ctx, first); err != nil {
			return File{}, err
		}
	}
	second, failed := f.once(ctx, again, nil)
	if failed == nil {
		f.removePredecessor(ctx, second)
		return second, nil
	}
	if second.Key != "" {
		if err := f.deleteStaged(ctx, second); err != nil {
			return File{}, err
		}
	}
	return File{}, verdict(err, failed)
}

// verdict returns the error of two fetches that both failed.
func verdict(first, second error) error {
	var a, b *MismatchError
	if !errors.As(second, &b) {
		return second
	}
	if !errors.As(first, &a) {
		return fmt.Errorf("%s was damaged while it was staged: %w; a second fetch gave %s %s",
			b.URL, ErrDamaged, b.What, b.Found)
	}
	if !a.same(b) {
		return fmt.Errorf("%s gives different bytes each time: %s %s, then %s %s", b.URL, a.What, a.Found, b.What, b.Found)
	}
	return b
}

// deleteStaged deletes a staged file and takes back its progress.
func (f *Fetch) deleteStaged(ctx context.Context, file File) error {
	f.moved(-file.SizeBytes)
	if err := f.Store.Delete(ctx, file.Key); err != nil {
		return fmt.Errorf("drop %s: %w", file.Key, err)
	}
	return nil
}

// removePredecessor deletes the part of the file that an earlier attempt left. Anything that it
// misses is deleted with the item.
func (f *Fetch) removePredecessor(ctx context.Context, got File) {
	if f.From != nil && f.From.Key != "" && f.From.Key != f.Key && f.From.Key != got.Key {
		_ = f.Store.DeletePrefix(ctx, f.From.Key)
	}
}

func (f *Fetch) moved(n int64) {
	if f.Moved != nil && n != 0 {
		f.Moved(n)
	}
}

// once makes one fetch. With an error it also returns the file if that was completely staged.
func (f *Fetch) once(ctx context.Context, key string, from *Checkpoint) (File, error) {
	t := transfer{fetch: f, key: key}
	defer t.close()
	if err := t.begin(ctx, from); err != nil {
		t.retractCount()
		return File{}, err
	}
	if err := t.run(ctx); err != nil {
		if isTooLong(err) || errors.As(err, new(*UnboundedError)) {
			t.discard()
		}
		t.retractCount()
		return File{}, err
	}
	return t.finish(ctx)
}

// digester returns a digester for all requested digests.
func (f *Fetch) digester() (*fixity.Digester, error) {
	algorithms := f.Wanted.Algorithms
	if d := f.Wanted.Received; d != nil {
		algorithms = append([]string{d.Algorithm}, algorithms...)
	}
	if d := f.Wanted.Digest; d != nil {
		if _, err := fixity.New(d.Algorithm); err != nil {
			return nil, &UnsupportedDigest{Algorithm: d.Algorithm, Err: err}
		}
		algorithms = append([]string{d.Algorithm}, algorithms...)
	}
	return fixity.NewDigester(algorithms...)
}
