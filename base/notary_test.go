package base

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// An entry is opened only under its own name, with its item's key, by the attempt that wrote it or
// a later one. Any change makes it count as lost.
func TestNotary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "key")
		name, value := rapid.String().Draw(t, "name"), rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		by := rapid.Int64Range(1, 1<<40).Draw(t, "attempt")
		kept := newNotary(key, by).seal(name, value)
		open := func(n notary, name string, kept []byte) bool { _, ok := n.open(name, kept); return ok }
		later := newNotary(key, by+rapid.Int64Range(0, 5).Draw(t, "later"))
		if got, ok := later.open(name, kept); !ok || !bytes.Equal(got, value) {
			t.Fatalf("opened %q, %t", got, ok)
		}
		if open(newNotary(append([]byte{1}, key...), by), name, kept) || open(later, name+"x", kept) || open(newNotary(nil, by), name, kept) {
			t.Error("opened with another key or name")
		}
		if open(newNotary(key, by-1), name, kept) || open(notary{key, by + 1, by}, name, kept) {
			t.Error("opened by an earlier attempt, or by one that is to check anew")
		}
		at := rapid.IntRange(0, len(kept)-1).Draw(t, "at")
		kept[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if open(later, name, kept) || open(later, name, kept[:at]) {
			t.Errorf("opened although byte %d was changed, or it ends there", at)
		}
	})
}

func FuzzNotaryOpen(f *testing.F) {
	n := notary{key: []byte("key"), attempt: 3}
	f.Add("files/file/1", n.seal("files/file/1", []byte(`{"seq":1}`)))
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, name string, kept []byte) {
		if value, ok := n.open(name, kept); ok && !bytes.Equal(notary{key: n.key, attempt: 3}.seal(name, value)[noteHead:], value) {
			t.Error("opened what it has not sealed")
		}
	})
}
