// Package storagetest is the conformance suite of storage.Store for all drivers. It also has a
// Store that fails on demand, for tests of everything built on storage.
package storagetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/storage"
)

// Run tests the stores that open returns, each new and empty. open registers its own clean-up with
// t.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s storage.Store)
	}{
		{"an object appears with its commit", testCommit},
		{"a key is taken once", testCreateOnly},
		{"an ended writer writes no more", testEndedWriter},
		{"abort leaves nothing", testAbort},
		{"a cancelled context commits nothing", testCancelled},
		{"ranges", testRanges},
		{"absent objects", testAbsent},
		{"what is not archived can be read", testThaw},
		{"malformed keys are refused", testMalformedKeys},
		{"odd names are kept byte for byte", testOddNames},
		{"folders and objects are never merged", testFolderConflict},
		{"list in key order", testList},
		{"list by prefix", testListPrefix},
		{"delete", testDelete},
		{"delete a folder", testDeletePrefix},
		{"delete a folder with leftovers", testDeleteLeftovers},
		{"delete leftovers alone", testDeleteUnfinished},
		{"replace", testReplace},
		{"readers of a replaced object see one or the other", testReplaceReaders},
		{"resume a writer that was left", testResume},
		{"resume a writer that still writes", testResumeLive},
		{"resume a writer that has committed", testResumeCommitted},
		{"resume again and again", testResumeChain},
		{"resume what is gone", testResumeGone},
		{"discard what nobody goes on after", testDiscard},
		{"one of many commits wins", testConcurrentCommit},
		{"commit and delete side by side", testConcurrentDelete},
		{"a batch appears when it is published", testBatch},
		{"a batch is shown part by part", testBatchGoesOn},
		{"a dropped batch leaves nothing", testBatchDropped},
		{"batches side by side", testBatchesAtOnce},
		{"copy", testCopy},
		{"copy is create-only", testCopyExists},
		{"large objects", testLarge},
		{"several successors of a large writer that lives", testLargeZombie},
		{"a large key is taken once", testLargeCreateOnly},
		{"space", testSpace},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// put creates the object key.
func put(t *testing.T, s storage.Store, key, content string) storage.Info {
	t.Helper()
	info, err := storage.Put(t.Context(), s, key, []byte(content))
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return info
}

// create starts the object key with content.
func create(t *testing.T, s storage.Store, key, content string) storage.Writer {
	t.Helper()
	w, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatalf("create %q: %v", key, err)
	}
	t.Cleanup(func() { _ = w.Close() })
	write(t, w, content)
	return w
}

// write appends content.
func write(t *testing.T, w storage.Writer, content string) {
	t.Helper()
	n, err := io.WriteString(w, content)
	if err != nil || n != len(content) {
		t.Fatalf("write = %d, %v, want %d", n, err, len(content))
	}
}

// commit commits w.
func commit(t *testing.T, w storage.Writer) storage.Info {
	t.Helper()
	info, err := w.Commit(t.Context())
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return info
}

// checkpoint makes w durable.
func checkpoint(t *testing.T, w storage.Writer) storage.Checkpoint {
	t.Helper()
	cp, err := w.Checkpoint(t.Context())
	if err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	return cp
}

// read returns the content of key.
func read(ctx context.Context, s storage.Store, key string, offset, length int64) (string, error) {
	r, err := s.Open(ctx, key, offset, length)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	return string(data), err
}

// wantContent checks the content of key.
func wantContent(t *testing.T, s storage.Store, key, want string) {
	t.Helper()
	got, err := read(t.Context(), s, key, 0, -1)
	if err != nil {
		t.Fatalf("read %q: %v", key, err)
	}
	if got != want {
		t.Fatalf("content of %q = %s, want %s", key, abbreviate(got), abbreviate(want))
	}
	info, err := s.Stat(t.Context(), key)
	if err != nil {
		t.Fatalf("stat %q: %v", key, err)
	}
	if info.Key != key || info.Size != int64(len(want)) || info.Modified.IsZero() || info.ETag == "" {
		t.Fatalf("stat %q = %+v, want size %d, a time and an ETag", key, info, len(want))
	}
}

// wantAbsent checks that key is not visible.
func wantAbsent(t *testing.T, s storage.Store, key string) {
	t.Helper()
	if _, err := s.Stat(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("stat %q: err = %v, want ErrNotFound", key, err)
	}
	if _, err := read(t.Context(), s, key, 0, -1); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("open %q: err = %v, want ErrNotFound", key, err)
	}
	if slices.Contains(list(t, s, ""), key) {
		t.Errorf("list shows %q", key)
	}
}

// list returns the keys that begin with prefix.
func list(t *testing.T, s storage.Store, prefix string) []string {
	t.Helper()
	keys := []string{}
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// wantList checks the keys that begin with prefix.
func wantList(t *testing.T, s storage.Store, prefix string, want ...string) {
	t.Helper()
	if got := list(t, s, prefix); !slices.Equal(got, want) {
		t.Errorf("list %q = %q, want %q", prefix, got, want)
	}
}

// wantErr checks the kind of an error.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: err = %v, want %v", what, err, want)
	}
}

// wantKeyError checks that err is a *storage.KeyError.
func wantKeyError(t *testing.T, what string, err error) {
	t.Helper()
	if keyErr := (*storage.KeyError)(nil); !errors.As(err, &keyErr) {
		t.Errorf("%s: err = %v, want a KeyError", what, err)
	}
}

// pattern returns n bytes that repeat at no power of two.
func pattern(n int) string {
	const word = "The quick brown fox jumps over the lazy dog 0123456789.\n"
	return string(bytes.Repeat([]byte(word), n/len(word)+1)[:n])
}

// abbreviate makes content fit for a message.
func abbreviate(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
