package storagetest

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/storage"
)

func testList(t *testing.T, s storage.Store) {
	keys := []string{"a", "a.b", "a/b"[:1] + "!", "b/a", "b.a", "b-a/x", "b/a.a", "b/b/c", "b/b.c", "b0", "c/d/e/f", "B", "é", "zz"}
	for _, key := range keys {
		put(t, s, key, key)
	}
	slices.Sort(keys)
	wantList(t, s, "", keys...)

	for _, after := range append(slices.Clone(keys), "", "!", "b/", "b/b/", "c/d", "c/d/e/f/g", "d", "é\x7f", "zzz") {
		var want, got []string
		for _, key := range keys {
			if key > after {
				want = append(want, key)
			}
		}
		for info, err := range storage.ListAfter(t.Context(), s, "", after) {
			if err != nil {
				t.Fatalf("list after %q: %v", after, err)
			}
			got = append(got, info.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %q there are %q, want %q", after, got, want)
		}
	}

	seen := 0
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if info.Size != int64(len(info.Key)) || info.ETag == "" || info.Modified.IsZero() {
			t.Errorf("list says %+v, want size %d, a time and an ETag", info, len(info.Key))
		}
		if seen++; seen == 3 {
			break
		}
	}
}

func testListPrefix(t *testing.T, s storage.Store) {
	for _, key := range []string{"a/x", "a/y/1", "a/y/2", "a/yy", "ab", "b", "é/ü"} {
		put(t, s, key, "")
	}
	wantList(t, s, "a", "a/x", "a/y/1", "a/y/2", "a/yy", "ab")
	wantList(t, s, "a/", "a/x", "a/y/1", "a/y/2", "a/yy")
	wantList(t, s, "a/y", "a/y/1", "a/y/2", "a/yy")
	wantList(t, s, "a/y/", "a/y/1", "a/y/2")
	wantList(t, s, "a/y/1", "a/y/1")
	wantList(t, s, "a/y/1/", nil...)
	wantList(t, s, "é/", "é/ü")
	for _, prefix := range []string{"c", "a/z", "x/y/z", "/", "//", "..", "../", "a//", "b/", "\x00"} {
		wantList(t, s, prefix)
	}
}

func testDelete(t *testing.T, s storage.Store) {
	put(t, s, "f/a", "a")
	put(t, s, "f/b", "b")
	for range 2 {
		if err := s.Delete(t.Context(), "f/a"); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	wantAbsent(t, s, "f/a")
	wantContent(t, s, "f/b", "b")
	put(t, s, "f/a", "again")
	wantContent(t, s, "f/a", "again")
	for _, key := range []string{"f/a", "f/b"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	put(t, s, "f", "what was a folder")
	wantContent(t, s, "f", "what was a folder")
}

func testDeletePrefix(t *testing.T, s storage.Store) {
	for _, key := range []string{"job/1/a", "job/1/b/c", "job/10/a", "job/1.x", "jo", "job/2"} {
		put(t, s, key, key)
	}
	for range 2 {
		if err := s.DeletePrefix(t.Context(), "job/1"); err != nil {
			t.Fatalf("delete folder: %v", err)
		}
	}
	wantList(t, s, "", "jo", "job/1.x", "job/10/a", "job/2")
	if err := s.DeletePrefix(t.Context(), "job/2"); err != nil {
		t.Fatalf("delete folder: %v", err)
	}
	if err := s.DeletePrefix(t.Context(), "job"); err != nil {
		t.Fatalf("delete folder: %v", err)
	}
	wantList(t, s, "", "jo")
	put(t, s, "job/1/a", "new")
	wantContent(t, s, "job/1/a", "new")
}

func testDeleteLeftovers(t *testing.T, s storage.Store) {
	deleteLeftovers(t, s, storage.Store.DeletePrefix)
}

func testDeleteUnfinished(t *testing.T, s storage.Store) {
	put(t, s, "job/1/kept", "committed")
	deleteLeftovers(t, s, storage.Store.DeleteUnfinished, "job/1/kept")
	wantContent(t, s, "job/1/kept", "committed")
}

// deleteLeftovers checks that remove deletes what writers of job/1 left, but not the objects in
// kept.
func deleteLeftovers(t *testing.T, s storage.Store, remove func(storage.Store, context.Context, string) error, kept ...string) {
	t.Helper()
	left := create(t, s, "job/1/left", "bytes of a process that died")
	leftCP := checkpoint(t, left)
	other := create(t, s, "job/10/live", "bytes of another job")
	otherCP := checkpoint(t, other)
	if err := left.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	for range 2 {
		if err := remove(s, t.Context(), "job/1"); err != nil {
			t.Fatalf("remove: %v", err)
		}
	}
	wantList(t, s, "job/1/", kept...)
	_, err := s.Resume(t.Context(), "job/1/next", leftCP)
	wantErr(t, "resume of what was deleted", err, storage.ErrNotFound)
	w, err := s.Resume(t.Context(), "job/10/next", otherCP)
	if err != nil {
		t.Fatalf("resume of another job: %v", err)
	}
	defer func() { _ = w.Close() }()
	commit(t, w)
	commit(t, other)
	wantContent(t, s, "job/10/next", "bytes of another job")
	wantContent(t, s, "job/10/live", "bytes of another job")
}

func testReplace(t *testing.T, s storage.Store) {
	if err := s.Replace(t.Context(), "f/k", []byte("one")); err != nil {
		t.Fatalf("replace: %v", err)
	}
	wantContent(t, s, "f/k", "one")
	before, err := s.Stat(t.Context(), "f/k")
	if err != nil {
		t.Fatalf("stat: %v", err)
	}
	for _, content := range []string{"two, longer", "", "three"} {
		if err := s.Replace(t.Context(), "f/k", []byte(content)); err != nil {
			t.Fatalf("replace: %v", err)
		}
		wantContent(t, s, "f/k", content)
	}
	after, err := s.Stat(t.Context(), "f/k")
	if err != nil || after.ETag == before.ETag {
		t.Errorf("ETag = %s before and %s after (%v), want two", before.ETag, after.ETag, err)
	}
	put(t, s, "g", "committed")
	if err := s.Replace(t.Context(), "g", []byte("replaced")); err != nil {
		t.Fatalf("replace: %v", err)
	}
	wantContent(t, s, "g", "replaced")
	if err := storage.ReplaceFrom(t.Context(), s, "g", "f/k"); err != nil {
		t.Fatalf("replace from: %v", err)
	}
	wantContent(t, s, "g", "three")
	wantContent(t, s, "f/k", "three")
	wantErr(t, "replace from nothing", storage.ReplaceFrom(t.Context(), s, "g", "nothing"), storage.ErrNotFound)
	wantContent(t, s, "g", "three")
	wantList(t, s, "", "f/k", "g")
}

func testReplaceReaders(t *testing.T, s storage.Store) {
	contents := [][]byte{bytes.Repeat([]byte("a"), 9000), bytes.Repeat([]byte("b"), 5000)}
	if err := s.Replace(t.Context(), "k", contents[0]); err != nil {
		t.Fatalf("replace: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		for i := range 40 {
			if err := s.Replace(t.Context(), "k", contents[i%2]); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		got, err := read(t.Context(), s, "k", 0, -1)
		if err != nil {
			t.Errorf("read: %v", err)
		} else if got != string(contents[0]) && got != string(contents[1]) {
			t.Errorf("read %d bytes that were never written together", len(got))
		}
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("replace: %v", err)
			}
			return
		default:
		}
	}
}
