package storagetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/storage"
)

// throughJSON encodes and decodes a checkpoint, as on its way to a successor.
func throughJSON(t *testing.T, cp storage.Checkpoint) storage.Checkpoint {
	t.Helper()
	data, err := json.Marshal(cp)
	if err != nil {
		t.Fatalf("marshal %+v: %v", cp, err)
	}
	var back storage.Checkpoint
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatalf("unmarshal %s: %v", data, err)
	}
	if back != cp {
		t.Fatalf("checkpoint %+v came back as %+v", cp, back)
	}
	return back
}

// resume resumes from cp under key.
func resume(t *testing.T, s storage.Store, key string, cp storage.Checkpoint) storage.Writer {
	t.Helper()
	w, err := s.Resume(t.Context(), key, throughJSON(t, cp))
	if err != nil {
		t.Fatalf("resume %q: %v", key, err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func testResume(t *testing.T, s storage.Store) {
	for _, key := range []string{"job/file", "job/こんにちは.md", "job/%00 |"} {
		w := create(t, s, key+".1", "before")
		cp := checkpoint(t, w)
		if cp.Size != 6 {
			t.Errorf("checkpoint at %d, want 6", cp.Size)
		}
		write(t, w, "lost")
		if err := w.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		next := resume(t, s, key+".2", cp)
		wantAbsent(t, s, key+".2")
		write(t, next, " and after")
		commit(t, next)
		wantContent(t, s, key+".2", "before and after")
		wantAbsent(t, s, key+".1")
	}
	empty := create(t, s, "empty.1", "")
	next := resume(t, s, "empty.2", checkpoint(t, empty))
	write(t, next, "all of it")
	commit(t, next)
	wantContent(t, s, "empty.2", "all of it")
}

func testResumeLive(t *testing.T, s storage.Store) {
	w := create(t, s, "k.1", "shared")
	cp := checkpoint(t, w)
	write(t, w, " old")
	next := resume(t, s, "k.2", cp)
	write(t, next, " new")
	write(t, w, "er")
	later := checkpoint(t, w)
	commit(t, next)
	wantContent(t, s, "k.2", "shared new")
	third := resume(t, s, "k.3", later)
	commit(t, w)
	commit(t, third)
	wantContent(t, s, "k.1", "shared older")
	wantContent(t, s, "k.3", "shared older")
	wantContent(t, s, "k.2", "shared new")
}

func testResumeCommitted(t *testing.T, s storage.Store) {
	w := create(t, s, "k.1", "one")
	cp := checkpoint(t, w)
	write(t, w, " two")
	commit(t, w)
	next := resume(t, s, "k.2", cp)
	write(t, next, " three")
	commit(t, next)
	wantContent(t, s, "k.1", "one two")
	wantContent(t, s, "k.2", "one three")
}

func testResumeChain(t *testing.T, s storage.Store) {
	w := create(t, s, "k.0", "0")
	want := "0"
	for i := range 5 {
		cp := checkpoint(t, w)
		cp = throughJSON(t, cp)
		if err := w.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		w = resume(t, s, fmt.Sprintf("k.%d", i+1), cp)
		more := strings.Repeat(fmt.Sprint(i+1), 1000)
		write(t, w, more)
		want += more
	}
	commit(t, w)
	wantContent(t, s, "k.5", want)
	wantList(t, s, "", "k.5")
}

func testResumeGone(t *testing.T, s storage.Store) {
	w := create(t, s, "k", "content")
	cp := checkpoint(t, w)
	commit(t, w)
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatalf("delete: %v", err)
	}
	put(t, s, "k", "other content")
	_, err := s.Resume(t.Context(), "k.2", cp)
	wantErr(t, "resume of a deleted object", err, storage.ErrNotFound)
	for _, token := range []string{"", "x", "dir1....", "dir1.Li4.x.1.1", "dir1.aw..1.1", "s3v1.aw.x", "s3v1..", cp.Token + "x"} {
		_, err := s.Resume(t.Context(), "k.2", storage.Checkpoint{Token: token, Size: 1})
		wantErr(t, "resume from token "+token, err, storage.ErrNotFound)
	}
	live := create(t, s, "l", "x")
	cp = checkpoint(t, live)
	cp.Size = 2
	if _, err := s.Resume(t.Context(), "l.2", cp); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("resume beyond what was written: err = %v, want ErrNotFound", err)
	}
	wantAbsent(t, s, "k.2")
}

func testConcurrentCommit(t *testing.T, s storage.Store) {
	const writers = 8
	var group sync.WaitGroup
	won := make([]bool, writers)
	for i := range writers {
		w := create(t, s, "deep/er/k", fmt.Sprintf("writer %d", i))
		group.Go(func() {
			_, err := w.Commit(t.Context())
			switch {
			case err == nil:
				won[i] = true
			case !errors.Is(err, storage.ErrExists):
				t.Errorf("commit: %v, want success or ErrExists", err)
			}
			if err := w.Abort(); err != nil {
				t.Errorf("abort: %v", err)
			}
		})
	}
	group.Wait()
	winners := 0
	for i, ok := range won {
		if ok {
			winners++
			wantContent(t, s, "deep/er/k", fmt.Sprintf("writer %d", i))
		}
	}
	if winners != 1 {
		t.Errorf("%d commits succeeded, want 1", winners)
	}
}

// testConcurrentDelete creates and deletes folders while others write into them.
func testConcurrentDelete(t *testing.T, s storage.Store) {
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 15 {
				key := fmt.Sprintf("a/b/c/%d", i)
				w, err := s.Create(t.Context(), key)
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				if j%3 == 0 {
					if _, err := w.Checkpoint(t.Context()); err != nil {
						t.Errorf("checkpoint: %v", err)
					}
				}
				if _, err := w.Commit(t.Context()); err != nil {
					t.Errorf("commit: %v", err)
				}
				if err := s.Replace(t.Context(), key, []byte(key)); err != nil {
					t.Errorf("replace: %v", err)
				}
				if got, err := read(t.Context(), s, key, 0, -1); got != key || err != nil {
					t.Errorf("read %q = %q, %v", key, got, err)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	group.Wait()
	wantList(t, s, "")
}

func testCopy(t *testing.T, s storage.Store) {
	put(t, s, "from/k", "content")
	info, err := storage.Copy(t.Context(), s, "to/k", s, "from/k")
	if err != nil || info.Key != "to/k" || info.Size != 7 {
		t.Fatalf("copy = %+v, %v, want to/k of 7 bytes", info, err)
	}
	if err := s.DeletePrefix(t.Context(), "from"); err != nil {
		t.Fatalf("delete folder: %v", err)
	}
	wantContent(t, s, "to/k", "content")
	if err := s.Replace(t.Context(), "r", []byte("old")); err != nil {
		t.Fatalf("replace: %v", err)
	}
	if _, err := storage.Copy(t.Context(), s, "r.copy", s, "r"); err != nil {
		t.Fatalf("copy: %v", err)
	}
	if err := s.Replace(t.Context(), "r", []byte("new")); err != nil {
		t.Fatalf("replace: %v", err)
	}
	wantContent(t, s, "r.copy", "old")
	// A store without a shorter way reads and writes.
	other := NewFaulty(s)
	if _, err := storage.Copy(t.Context(), s, "streamed", other, "to/k"); err != nil {
		t.Fatalf("copy: %v", err)
	}
	wantContent(t, s, "streamed", "content")
	other.Truncate("to/k", 3)
	if _, err := storage.Copy(t.Context(), s, "short", other, "to/k"); err == nil {
		t.Error("copy of a truncated reading succeeded")
	}
	wantAbsent(t, s, "short")
}

func testCopyExists(t *testing.T, s storage.Store) {
	put(t, s, "a", "a")
	put(t, s, "b", "b")
	_, err := storage.Copy(t.Context(), s, "b", s, "a")
	wantErr(t, "copy onto an object", err, storage.ErrExists)
	_, err = storage.Copy(t.Context(), s, "c", s, "nothing")
	wantErr(t, "copy of nothing", err, storage.ErrNotFound)
	wantContent(t, s, "b", "b")
	wantAbsent(t, s, "c")
	_, err = storage.Copy(t.Context(), s, "..", s, "a")
	wantKeyError(t, "copy to ..", err)
}

func testDiscard(t *testing.T, s storage.Store) {
	left := create(t, s, "k", "one")
	first := checkpoint(t, left)
	write(t, left, " two")
	second := checkpoint(t, left)
	if err := left.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	next := resume(t, s, "k", first)
	own := checkpoint(t, next)
	for range 2 { // a repeat changes nothing
		if err := s.Discard(t.Context(), throughJSON(t, first)); err != nil {
			t.Fatalf("discard: %v", err)
		}
	}
	for _, cp := range []storage.Checkpoint{first, second} {
		_, err := s.Resume(t.Context(), "other", cp)
		wantErr(t, "resume of what was discarded", err, storage.ErrNotFound)
	}
	if err := s.Discard(t.Context(), storage.Checkpoint{Token: "nobody's"}); err != nil {
		t.Errorf("discard of nothing: %v", err)
	}
	// The successor under the same key is another writer.
	third := resume(t, s, "third", own)
	write(t, third, " three")
	commit(t, third)
	wantContent(t, s, "third", "one three")
	commit(t, next)
	if err := s.Discard(t.Context(), own); err != nil {
		t.Errorf("discard of a committed writer's checkpoint: %v", err)
	}
	wantContent(t, s, "k", "one")
}
