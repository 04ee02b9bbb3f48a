package staging_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// fickle gives others than the staged bytes at some openings.
type fickle struct {
	storage.Store
	forged func(opening int) []byte // nil: what was staged
	opens  int
}

func (s *fickle) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	s.opens++
	data := s.forged(s.opens)
	if data == nil {
		return s.Store.Open(ctx, key, offset, length)
	}
	if offset > int64(len(data)) {
		return nil, storage.ErrRange
	}
	return io.NopCloser(bytes.NewReader(data[offset:])), nil
}

// Whatever staging returns at each opening: if the file proves right in the end, every reader saw
// those bytes; and a proven file is never read as another.
func TestBlocks(t *testing.T) {
	const block = staging.BlockSize
	patterns := bytes.Repeat([]byte("0123456789abcdef"), 3*block/16+1)
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, block - 1, block, block + 1, 2 * block, 2*block + 7}).Draw(rt, "size")
		staged := patterns[:size]
		inner := storagetest.NewMemory()
		if _, err := storage.Put(t.Context(), inner, "f", staged); err != nil {
			rt.Fatal(err)
		}
		forge := rapid.MapOf(rapid.IntRange(1, 6), rapid.IntRange(-9, size)).Draw(rt, "forged openings")
		s := &fickle{Store: inner, forged: func(n int) []byte {
			at, forged := forge[n]
			switch {
			case !forged:
				return nil
			case at < 0:
				return patterns[:max(0, size+at)] // cut off
			}
			other := append(bytes.Clone(staged), 'x') // longer, or changed
			if at < size {
				other = other[:size]
				other[at]++
			}
			return other
		}}
		sum := sha256.Sum256(staged)
		b, err := staging.NewBlocks(s, "f", "sha256", hex.EncodeToString(sum[:]))
		if err != nil {
			rt.Fatal(err)
		}
		proven, honest := false, true
		for range rapid.IntRange(1, 5).Draw(rt, "readings") {
			if rapid.Bool().Draw(rt, "prove") && b.Prove(t.Context()) == nil {
				proven = true
			}
			offset := rapid.IntRange(0, size).Draw(rt, "offset")
			length := rapid.IntRange(-1, size-offset).Draw(rt, "length")
			want := staged[offset:]
			if length >= 0 {
				want = want[:length]
			}
			r, err := b.Open(t.Context(), int64(offset), int64(length))
			var got []byte
			if err == nil {
				got, err = io.ReadAll(r)
				r.Close()
			}
			if err != nil && !errors.Is(err, staging.ErrDamaged) || err != nil && len(forge) == 0 {
				rt.Fatal(err)
			}
			as := bytes.Equal(got, want) || err != nil && bytes.HasPrefix(want, got)
			if proven && !as {
				rt.Fatalf("a proven file of %d bytes was read as another from %d on", size, offset)
			}
			honest = honest && as
		}
		if b.Prove(t.Context()) == nil && !honest {
			rt.Fatal("another file was read, and proved to be the right one")
		}
		if len(forge) > 0 {
			return
		}
		if err := b.Prove(t.Context()); err != nil {
			rt.Error(err)
		}
		if size < block && s.opens > 1 {
			rt.Errorf("a file of one block was opened %d times", s.opens)
		}
	})
}

// No entry is taken from a list that differs from the written one, at whichever reading it differs.
func TestList_EntriesAreOfTheListThatWasWritten(t *testing.T) {
	s := &fickle{Store: storagetest.NewMemory(), forged: func(int) []byte { return nil }}
	l, err := staging.CreateStoredList[string](t.Context(), s, "list")
	if err != nil {
		t.Fatal(err)
	}
	entry := strings.Repeat("a", 1000)
	for range 2500 {
		if err := l.Add(entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, err := s.Open(t.Context(), "list", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	was, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= 2; at++ {
		s.opens, s.forged = 0, func(n int) []byte {
			if n != at {
				return nil
			}
			return bytes.ReplaceAll(was, []byte("a"), []byte("b"))
		}
		var last error
		for got, err := range staging.ReadList[string](t.Context(), s, l.List()) {
			if last = err; err == nil && got != entry {
				t.Fatal(fmt.Sprint("opening ", at, ": another entry came first"))
			}
		}
		if !errors.Is(last, staging.ErrDamaged) {
			t.Errorf("opening %d: error %v", at, last)
		}
	}
}
