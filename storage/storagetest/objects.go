package storagetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/storage"
)

func testCommit(t *testing.T, s storage.Store) {
	w := create(t, s, "a/b/c", "hello, ")
	write(t, w, "world")
	wantAbsent(t, s, "a/b/c")
	checkpoint(t, w)
	wantAbsent(t, s, "a/b/c")
	info := commit(t, w)
	wantContent(t, s, "a/b/c", "hello, world")
	stat, err := s.Stat(t.Context(), "a/b/c")
	if err != nil || stat.ETag != info.ETag || stat.Size != info.Size || stat.Key != info.Key {
		t.Errorf("stat = %+v, %v, want what commit said: %+v", stat, err, info)
	}
	put(t, s, "empty", "")
	wantContent(t, s, "empty", "")
}

func testCreateOnly(t *testing.T, s storage.Store) {
	first := create(t, s, "k", "first")
	second := create(t, s, "k", "second, longer")
	commit(t, first)
	_, err := second.Commit(t.Context())
	wantErr(t, "second commit", err, storage.ErrExists)
	wantContent(t, s, "k", "first")
	if err := second.Abort(); err != nil {
		t.Errorf("abort: %v", err)
	}
	wantContent(t, s, "k", "first")
	_, err = storage.Put(t.Context(), s, "k", []byte("first"))
	wantErr(t, "put of the same bytes", err, storage.ErrExists)
	wantList(t, s, "", "k")
}

func testEndedWriter(t *testing.T, s storage.Store) {
	w := create(t, s, "k", "x")
	info := commit(t, w)
	again, err := w.Commit(t.Context())
	if err != nil || again.ETag != info.ETag {
		t.Errorf("second commit = %+v, %v, want %+v", again, err, info)
	}
	if err := errors.Join(w.Abort(), w.Close(), w.Abort()); err != nil {
		t.Errorf("abort and close after commit: %v", err)
	}
	_, err = io.WriteString(w, "y")
	wantErr(t, "write after commit", err, storage.ErrClosed)
	_, err = w.Checkpoint(t.Context())
	wantErr(t, "checkpoint after commit", err, storage.ErrClosed)
	wantContent(t, s, "k", "x")

	closed := create(t, s, "closed", "x")
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	_, err = closed.Commit(t.Context())
	wantErr(t, "commit after close", err, storage.ErrClosed)
	wantAbsent(t, s, "closed")
}

func testAbort(t *testing.T, s storage.Store) {
	plain := create(t, s, "f/plain", "x")
	kept := create(t, s, "f/kept", "x")
	cp := checkpoint(t, kept)
	for _, w := range []storage.Writer{plain, kept, plain} {
		if err := w.Abort(); err != nil {
			t.Errorf("abort: %v", err)
		}
	}
	wantList(t, s, "")
	_, err := s.Resume(t.Context(), "f/next", cp)
	wantErr(t, "resume after abort", err, storage.ErrNotFound)
	_, err = kept.Commit(t.Context())
	wantErr(t, "commit after abort", err, storage.ErrClosed)

	left := create(t, s, "f/left", "x")
	cp = checkpoint(t, left)
	if err := errors.Join(left.Close(), left.Abort()); err != nil {
		t.Errorf("abort after close: %v", err)
	}
	_, err = s.Resume(t.Context(), "f/next", cp)
	wantErr(t, "resume after close and abort", err, storage.ErrNotFound)
}

func testCancelled(t *testing.T, s storage.Store) {
	w := create(t, s, "k", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Commit(ctx); err == nil {
		t.Error("commit with a cancelled context succeeded")
	}
	wantAbsent(t, s, "k")
	if _, err := s.Create(ctx, "l"); err == nil {
		t.Error("create with a cancelled context succeeded")
	}
	commit(t, w)
	wantContent(t, s, "k", "x")
}

func testRanges(t *testing.T, s storage.Store) {
	put(t, s, "k", "0123456789")
	for _, test := range []struct {
		offset, length int64
		want           string
		err            error
	}{
		{0, -1, "0123456789", nil},
		{0, 10, "0123456789", nil},
		{0, 99, "0123456789", nil},
		{0, 0, "", nil},
		{3, 4, "3456", nil},
		{3, -1, "3456789", nil},
		{9, 1, "9", nil},
		{10, -1, "", nil},
		{10, 5, "", nil},
		{11, -1, "", storage.ErrRange},
		{-1, -1, "", storage.ErrRange},
	} {
		got, err := read(t.Context(), s, "k", test.offset, test.length)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("open(%d, %d) = %q, %v, want %q, %v", test.offset, test.length, got, err, test.want, test.err)
		}
	}
	put(t, s, "empty", "")
	if got, err := read(t.Context(), s, "empty", 0, 1); got != "" || err != nil {
		t.Errorf("empty object = %q, %v, want nothing", got, err)
	}
}

func testAbsent(t *testing.T, s storage.Store) {
	put(t, s, "folder/object", "x")
	for _, key := range []string{"nothing", "folder", "folder/nothing", "folder/object/below", "folder/obj", "Folder/object"} {
		wantAbsent(t, s, key)
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %q: %v, want no error", key, err)
		}
		if key == "folder" {
			continue
		}
		if err := s.DeletePrefix(t.Context(), key); err != nil {
			t.Errorf("delete folder %q: %v, want no error", key, err)
		}
	}
	wantContent(t, s, "folder/object", "x")
}

func testThaw(t *testing.T, s storage.Store) {
	put(t, s, "k", "x")
	for _, keep := range []time.Duration{0, time.Hour} {
		if readable, err := s.Thaw(t.Context(), "k", keep); err != nil || !readable {
			t.Errorf("thaw for %v: readable %t, %v", keep, readable, err)
		}
		if readable, err := s.Thaw(t.Context(), "nothing", keep); readable || !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("thaw nothing for %v: readable %t, %v", keep, readable, err)
		}
	}
	_, err := s.Thaw(t.Context(), "a//b", time.Hour)
	wantKeyError(t, "thaw", err)
	wantContent(t, s, "k", "x")
}

func testMalformedKeys(t *testing.T, s storage.Store) {
	ctx := t.Context()
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "./a", "a/./b", "a\x00b", "\x00",
		strings.Repeat("x", storage.MaxPart+1), "a/" + strings.Repeat("x", storage.MaxPart+1) + "/b",
		strings.Repeat("abc/", storage.MaxKey/4) + "d",
	} {
		_, err := s.Create(ctx, key)
		wantKeyError(t, "create "+abbreviate(key), err)
		_, err = s.Open(ctx, key, 0, -1)
		wantKeyError(t, "open "+abbreviate(key), err)
		_, err = s.Stat(ctx, key)
		wantKeyError(t, "stat "+abbreviate(key), err)
		wantKeyError(t, "delete "+abbreviate(key), s.Delete(ctx, key))
		wantKeyError(t, "delete folder "+abbreviate(key), s.DeletePrefix(ctx, key))
		wantKeyError(t, "replace "+abbreviate(key), s.Replace(ctx, key, nil))
	}
	wantList(t, s, "")
	longest := strings.Repeat("é", storage.MaxPart/2) + "/" + strings.Repeat("x", storage.MaxPart)
	put(t, s, longest, "x")
	wantContent(t, s, longest, "x")
}

// OddNames returns unusual names of depositors' files. Each must become an object of its own with
// exactly that key.
func OddNames() []string {
	return []string{
		"README|pipe.md", "こんにちは.md", "caf\u00e9", "cafe\u0301", "%00", "%2F", "a%2fb", " lead", "trail ", "trail.", "...", ".hidden",
		"a\\b", "C:", "CON", "new\nline", "tab\t", "\x01", "\x7f", "bad-utf8-\xff\xfe", "\xc0\x80", "ÅÅ", "ſ", "s", "S", "K", "\u212a", "\U0001f4a9",
		"*", "?", "\"", "'", "<>", "$HOME", "`x`", "-rf", "~", "#", "&", "+", "=", ";", ":", "@", "[x]", "{x}", "^", "\u202egnp.exe", "\ufeffbom", "lost+found",
	}
}

func testOddNames(t *testing.T, s storage.Store) {
	var kept []string
	for _, name := range OddNames() {
		key := "odd/" + name + "/" + name
		_, err := storage.Put(t.Context(), s, key, []byte(key))
		if keyErr := (*storage.KeyError)(nil); errors.As(err, &keyErr) {
			continue // refused, not merged
		}
		if err != nil {
			t.Errorf("put %q: %v", key, err)
			continue
		}
		kept = append(kept, key)
	}
	if len(kept) < len(OddNames())/2 {
		t.Errorf("%d of %d odd names were taken, want most of them", len(kept), len(OddNames()))
	}
	for _, key := range kept {
		wantContent(t, s, key, key)
	}
	if got := list(t, s, "odd/"); len(got) != len(kept) {
		t.Errorf("list shows %d objects, want %d", len(got), len(kept))
	}
	for _, key := range kept {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %q: %v", key, err)
		}
	}
	wantList(t, s, "")
}

func testFolderConflict(t *testing.T, s storage.Store) {
	put(t, s, "object", "object")
	put(t, s, "folder/object", "below")
	for _, test := range []struct{ key, other, content string }{
		{"object/below", "object", "object"},
		{"object/far/below", "object", "object"},
		{"folder", "folder/object", "below"},
	} {
		_, err := storage.Put(t.Context(), s, test.key, []byte("new"))
		if err == nil {
			wantContent(t, s, test.key, "new")
		} else {
			wantKeyError(t, "put "+test.key, err)
		}
		err = s.Replace(t.Context(), test.key, []byte("newer"))
		if err == nil {
			wantContent(t, s, test.key, "newer")
		} else {
			wantKeyError(t, "replace "+test.key, err)
		}
		wantContent(t, s, test.other, test.content)
	}
}

func testLarge(t *testing.T, s storage.Store) {
	// Odd sizes, so that no part or block boundary of a driver falls on a checkpoint.
	content := pattern(17<<20 + 12345)
	w := create(t, s, "large", content[:6<<20+1])
	checkpoint(t, w)
	write(t, w, content[6<<20+1:11<<20+7])
	cp := checkpoint(t, w)
	write(t, w, "what the first process wrote after its checkpoint is forgotten")
	if err := w.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	next, err := s.Resume(t.Context(), "large.2", cp)
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	defer func() { _ = next.Close() }()
	write(t, next, content[11<<20+7:])
	commit(t, next)
	wantContent(t, s, "large.2", content)
	got, err := read(t.Context(), s, "large.2", 6<<20-3, 10)
	if want := content[6<<20-3 : 6<<20+7]; got != want || err != nil {
		t.Errorf("range = %q, %v, want %q", got, err, want)
	}
}

// testLargeZombie is R3 with more bytes than a driver holds in memory. A writer only seems dead,
// and its successor dies. Further writers resume from the same checkpoint, before and after the
// first writer commits.
func testLargeZombie(t *testing.T, s storage.Store) {
	content := pattern(9<<20 + 321)
	const first, second = 6<<20 + 5, 8 << 20
	zombie := create(t, s, "job/1/f", content[:first])
	cp := checkpoint(t, zombie)

	died := resume(t, s, "job/2/f", cp)
	write(t, died, "bytes that nobody saw")
	if err := died.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	write(t, zombie, content[first:second])
	later := checkpoint(t, zombie)

	next := resume(t, s, "job/3/f", cp)
	write(t, zombie, "the zombie's own end")
	write(t, next, content[first:second])
	nextCP := checkpoint(t, next)
	commit(t, zombie)
	write(t, next, content[second:])
	commit(t, next)
	wantContent(t, s, "job/1/f", content[:second]+"the zombie's own end")
	wantContent(t, s, "job/3/f", content)
	wantAbsent(t, s, "job/2/f")

	for key, from := range map[string]storage.Checkpoint{"job/4/f": cp, "job/5/f": later, "job/6/f": nextCP} {
		w := resume(t, s, key, from)
		write(t, w, content[from.Size:])
		commit(t, w)
		wantContent(t, s, key, content)
	}
	if err := s.DeletePrefix(t.Context(), "job/1"); err != nil {
		t.Fatalf("delete folder: %v", err)
	}
	_, err := s.Resume(t.Context(), "job/7/f", later)
	wantErr(t, "resume of what was deleted", err, storage.ErrNotFound)
	wantContent(t, s, "job/5/f", content)
}

func testLargeCreateOnly(t *testing.T, s storage.Store) {
	content := pattern(6 << 20)
	first, second, third := create(t, s, "k", content), create(t, s, "k", content+"second"), create(t, s, "k", "third")
	checkpoint(t, second)
	commit(t, first)
	_, err := second.Commit(t.Context())
	wantErr(t, "second commit", err, storage.ErrExists)
	_, err = third.Commit(t.Context())
	wantErr(t, "third commit", err, storage.ErrExists)
	wantContent(t, s, "k", content)
	if _, err := storage.Copy(t.Context(), s, "copy", s, "k"); err != nil {
		t.Fatalf("copy: %v", err)
	}
	wantContent(t, s, "copy", content)
	_, err = storage.Copy(t.Context(), s, "copy", s, "k")
	wantErr(t, "second copy", err, storage.ErrExists)
}

func testSpace(t *testing.T, s storage.Store) {
	space, err := s.Space(t.Context())
	if errors.Is(err, storage.ErrUnlimited) {
		return
	}
	if err != nil || space.Total <= 0 || space.Used < 0 || space.Used > space.Total {
		t.Errorf("space = %+v, %v, want 0 <= used <= total", space, err)
	}
}
