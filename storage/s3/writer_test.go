package s3_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// victimAddress names the store in which this program, run as a child, writes until it is killed.
const victimAddress = "HOLDFAST_TEST_S3_VICTIM"

// victim writes a file, tells of the checkpoint after 18 MiB of it, and goes on writing for good.
func victim(address string) error {
	ctx := context.Background()
	s, err := s3.Open(ctx, address)
	if err != nil {
		return err
	}
	w, err := s.Create(ctx, "items/i/1/f")
	if err != nil {
		return err
	}
	data := random(27*mib + 5)
	if _, err := w.Write(data[:18*mib]); err != nil {
		return err
	}
	cp, err := w.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(cp); err != nil {
		return err
	}
	for {
		if _, err := w.Write(data[18*mib:]); err != nil {
			return err
		}
	}
}

// TestR03_SuccessorOfAKilledProcess: a process is killed after a checkpoint inside a file, while
// pieces are being stored. The successor gets the bytes without fetching them and writes only its
// own names. The predecessor's key never appears.
func TestR03_SuccessorOfAKilledProcess(t *testing.T) {
	server := start(t)
	data := random(27*mib + 5)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), victimAddress+"="+server.Address("p"))
	child.Stderr = os.Stderr
	told, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var cp storage.Checkpoint
	err = json.NewDecoder(told).Decode(&cp)
	_ = child.Process.Kill()
	_ = child.Wait() // killed on purpose
	if err != nil || cp.Size != 18*mib {
		t.Fatalf("checkpoint = %+v, %v", cp, err)
	}

	p := newProxy(t, server.Endpoint)
	successor := behind(t, p, "p")
	next, err := successor.Resume(t.Context(), "items/i/2/f", cp)
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	defer next.Close()
	// 18 MiB are three pieces of 5.5, which are copied, and 1.5 in memory.
	if puts, copies := p.count("PutObject"), p.count("CopyObject"); puts != 0 || copies != 3 {
		t.Errorf("%d requests brought bytes and %d copied, want 0 and 3", puts, copies)
	}
	if _, err := next.Write(data[18*mib:]); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
	wantContent(t, successor, "items/i/2/f", data)
	for info, err := range successor.List(t.Context(), "") {
		if err != nil || info.Key != "items/i/2/f" {
			t.Errorf("list shows %q (%v)", info.Key, err)
		}
	}
	// The dead process's pieces are there until the item goes.
	if err := successor.DeletePrefix(t.Context(), "items/i"); err != nil {
		t.Fatal(err)
	}
	wantLeftovers(t, successor, "", 0, 0)
}

// TestR03_PredecessorCommitsMeanwhile: the predecessor is alive, and commits, which removes its
// pieces, while the successor copies them.
func TestR03_PredecessorCommitsMeanwhile(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s := behind(t, p, "p")
	data := random(12 * mib)
	w := begun(t, s, "1/f", data)
	cp, err := w.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.onceBefore("CopyObject", func() {
		if _, err := w.Commit(t.Context()); err != nil {
			t.Errorf("commit: %v", err)
		}
	})
	next, err := s.Resume(t.Context(), "2/f", cp)
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	defer next.Close()
	if _, err := next.Commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
	wantContent(t, s, "1/f", data)
	wantContent(t, s, "2/f", data)
	wantLeftovers(t, s, "", 0, 0)
}

// TestDeletePrefixLeavesNothing: pieces, interrupted uploads and objects are deleted; another
// item's stay.
func TestDeletePrefixLeavesNothing(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s := behind(t, p, "p")
	other := begun(t, s, "items/10/1/f", random(20*mib))
	otherCP, err := other.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"items/1/1/f", "items/1/1/bad\xff", "items/1"} {
		w := begun(t, s, key, random(9*mib))
		if _, err := w.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The process dies between the last part and the end of the upload.
		ctx, die := context.WithCancel(t.Context())
		p.add("Complete", 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			die()
			refuse(w, 500, "InternalError")
		})
		p.refuse("DELETE", 1<<30, 500, "InternalError")
		if _, err := w.Commit(ctx); err == nil {
			t.Fatal("a commit that was cut off succeeded")
		}
		p.heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantLeftovers(t, s, "items/1", 3*2, 3)
	wantLeftovers(t, s, "", 3*2+4, 3)
	if err := s.DeletePrefix(t.Context(), "items/1"); err != nil {
		t.Fatal(err)
	}
	wantLeftovers(t, s, "items/1", 0, 0)
	wantLeftovers(t, s, "", 4, 0)
	next, err := s.Resume(t.Context(), "items/10/2/f", otherCP)
	if err != nil {
		t.Fatalf("resume of another item: %v", err)
	}
	defer next.Close()
	if err := s.DeletePrefix(t.Context(), "items"); err != nil {
		t.Fatal(err)
	}
	wantLeftovers(t, s, "", 0, 0)
	if _, err := next.Commit(t.Context()); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("commit of what was deleted: err = %v, want ErrNotFound", err)
	}
}

// TestAbortStale: the upload of a process killed during a commit is aborted when it is old; a
// recent one stays.
func TestAbortStale(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s := behind(t, p, "p")
	p.refuse("Complete", 1<<30, 500, "InternalError")
	p.refuse("DELETE", 1<<30, 500, "InternalError")
	w := begun(t, s, "object/v1/content/f", random(9*mib))
	if _, err := w.Commit(t.Context()); err == nil {
		t.Fatal("a commit that was cut off succeeded")
	}
	p.heal()
	for _, test := range []struct {
		before time.Time
		left   int
	}{{time.Now().Add(-time.Hour), 1}, {time.Now().Add(time.Hour), 0}, {time.Now().Add(time.Hour), 0}} {
		if err := s.AbortStale(t.Context(), test.before); err != nil {
			t.Fatal(err)
		}
		uploads := 0
		for left, err := range s.Leftovers(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if left.Upload {
				uploads++
			}
		}
		if uploads != test.left {
			t.Errorf("before %s: %d uploads are left, want %d", test.before, uploads, test.left)
		}
	}
	if _, err := w.Commit(t.Context()); err != nil { // its pieces are there still
		t.Errorf("commit: %v", err)
	}
	p.refuse("List", 1<<30, 403, "AccessDenied")
	if _, err := behind(t, p, "ready").Ready(t.Context()); err != nil {
		t.Errorf("ready where uploads cannot be listed: %v", err)
	}
	p.heal()
	wantLeftovers(t, s, "", 0, 0)
}

// TestManyPieces: many pieces are merged, and a checkpoint during that is valid.
func TestManyPieces(t *testing.T) {
	s := open(t, start(t).Address("p"))
	s.CutSmall(2)
	data := random(23*mib + 7)
	w := begun(t, s, "1", data[:13*mib])
	cp, err := w.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data[13*mib:]); err != nil {
		t.Fatal(err)
	}
	next, err := s.Resume(t.Context(), "2", cp)
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	defer next.Close()
	if _, err := next.Write(data[13*mib:]); err != nil {
		t.Fatal(err)
	}
	for key, w := range map[string]storage.Writer{"1": w, "2": next} {
		if info, err := w.Commit(t.Context()); err != nil || info.Size != int64(len(data)) {
			t.Fatalf("commit = %+v, %v", info, err)
		}
		wantContent(t, s, key, data)
	}
	wantLeftovers(t, s, "", 0, 0)
}

// TestObjectsOfAnySize: every object size that S3 allows needs no more parts than S3 allows.
func TestObjectsOfAnySize(t *testing.T) {
	const gib = 1 << 30
	for _, size := range []int64{gib, 100 * gib, 1200 * gib, 5120*gib - 1} {
		if n := s3.Parts(size); n > 10_000 {
			t.Errorf("%d GiB need %d parts", size/gib, n)
		}
	}
}

// TestCloseWithoutCheckpointLeavesNothing: uncommitted bytes are kept only for a checkpoint.
func TestCloseWithoutCheckpointLeavesNothing(t *testing.T) {
	s := open(t, start(t).Address("p"))
	w := begun(t, s, "k", random(18*mib))
	if err := w.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wantLeftovers(t, s, "", 0, 0)
}

// TestCopyBetweenBuckets: staging and storage may have a bucket each.
func TestCopyBetweenBuckets(t *testing.T) {
	server := start(t)
	if err := os.Mkdir(filepath.Join(filepath.Dir(server.Folder), "second"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, server.Endpoint)
	from := behind(t, p, "a")
	to, err := s3.OpenImpatient(t.Context(), strings.Replace(s3test.Address(p.URL, "b"), "s3://"+s3test.Bucket, "s3://second", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for _, data := range [][]byte{nil, random(1000), random(3 * mib), random(12 * mib)} {
		key := fmt.Sprint(len(data), " +&?é%")
		if _, err := storage.Put(t.Context(), from, key, data); err != nil {
			t.Fatal(err)
		}
		brought := p.count("UploadPart")
		if _, err := storage.Copy(t.Context(), to, key, from, key); err != nil {
			t.Errorf("copy of %d bytes: %v", len(data), err)
			continue
		}
		if len(data) > mib && p.count("UploadPart") != brought {
			t.Errorf("%d bytes passed through the process", len(data))
		}
		wantContent(t, to, key, data)
	}
	wantLeftovers(t, to, "", 0, 0)
}

// TestCopyInParts: an object that is too large for one copy is copied part by part inside the
// service: within a bucket, between two, and on resuming. The test lowers the threshold, which for
// S3 is 5 GiB.
func TestCopyInParts(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s := behind(t, p, "p")
	s.CopySmall(6 * mib)
	data := random(23*mib + 7)
	w := begun(t, s, "k", data)
	cp, err := w.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	brought, copied := p.count("UploadPart")+p.count("PutObject"), p.count("UploadPartCopy")
	if _, err := storage.Copy(t.Context(), s, "copy", s, "k"); err != nil {
		t.Fatalf("copy: %v", err)
	}
	if n := p.count("UploadPartCopy") - copied; n != 4 {
		t.Errorf("%d parts were copied, want 4", n)
	}
	next, err := s.Resume(t.Context(), "resumed", cp) // the pieces are gone, the object has them
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	defer next.Close()
	if _, err := next.Commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
	if n := p.count("UploadPart") + p.count("PutObject") - brought; n != 0 {
		t.Errorf("%d requests brought bytes, want none", n)
	}
	for _, key := range []string{"k", "copy", "resumed"} {
		wantContent(t, s, key, data)
	}
	if _, err := storage.Copy(t.Context(), s, "copy", s, "k"); !errors.Is(err, storage.ErrExists) {
		t.Errorf("copy again: err = %v, want ErrExists", err)
	}
	// One part is of another object: the source was replaced in between.
	p.onceBefore("UploadPartCopy", func() {
		if err := s.Replace(t.Context(), "k", []byte("other")); err != nil {
			t.Error(err)
		}
	})
	if _, err := storage.Copy(t.Context(), s, "mixed", s, "k"); err == nil {
		t.Error("an object was copied that changed in the midst of it")
	}
	if _, err := s.Stat(t.Context(), "mixed"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("stat: err = %v, want ErrNotFound", err)
	}
	wantLeftovers(t, s, "", 0, 0)
}

// TestStorageClass: committed objects have the address's class, however they were written; scratch
// and replaced objects do not. versitygw ignores classes, so the test inspects the requests.
func TestStorageClass(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s, err := s3.OpenImpatient(t.Context(), s3test.Address(p.URL, "p")+"&class=GLACIER_IR")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var mu sync.Mutex
	classes := map[string]map[string]bool{"object": {}, "scratch": {}, "replaced": {}}
	for _, op := range []string{"PutObject", "CreateUpload", "CopyObject"} {
		p.add(op, 1<<30, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			kind := "object"
			switch {
			case strings.Contains(r.URL.Path, "holdfast-scratch"):
				kind = "scratch"
			case strings.Contains(r.URL.Path, "replaced"):
				kind = "replaced"
			}
			mu.Lock()
			classes[kind][op+" "+r.Header.Get("X-Amz-Storage-Class")] = true
			mu.Unlock()
			forward.ServeHTTP(w, r)
		})
	}
	for key, size := range map[string]int{"small": 10, "large": 12 * mib} {
		if _, err := storage.Put(t.Context(), s, key, random(size)); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Copy(t.Context(), s, key+"/copy", s, key); err != nil && !errors.As(err, new(*storage.KeyError)) {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Replace(t.Context(), "replaced", nil), s.ReplaceFrom(t.Context(), "replaced", "small")); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]bool{
		"object":   {"PutObject GLACIER_IR": true, "CreateUpload GLACIER_IR": true},
		"scratch":  {"PutObject ": true},
		"replaced": {"PutObject ": true, "CopyObject ": true},
	}
	if diff := cmp.Diff(want, classes); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

// TestNamesInTheBucket: an object has its key for a name wherever S3 can express it; the others are
// kept apart, in order.
func TestNamesInTheBucket(t *testing.T) {
	keys := []string{"a", "a\x01", "a\xff", "a/b", "é", "\xc3", "\xc3\xa9/x", "%ff", string(bytes.Repeat([]byte{0xfe}, 200)), "\ufffe"}
	for _, a := range keys {
		if back, ok := s3.OddKey(s3.HexName(a)); !ok || back != a {
			t.Errorf("%q came back as %q", a, back)
		}
		for _, b := range keys {
			if (a < b) != (s3.HexName(a) < s3.HexName(b)) {
				t.Errorf("%q and %q change their order in hexadecimal", a, b)
			}
		}
	}
	s := open(t, start(t).Address("p"))
	for _, key := range []string{"a/\xff", "a/b", "a/é", "a/\x7f", "a/%00", "a/\xc3\x28", "a/z"} {
		if _, err := storage.Put(t.Context(), s, key, []byte(key)); err != nil {
			t.Errorf("put %q: %v", key, err)
		}
	}
	want := []string{"a/%00", "a/b", "a/z", "a/\x7f", "a/\xc3\x28", "a/é", "a/\xff"}
	for prefix, want := range map[string][]string{"": want, "a/": want, "a/\xc3": want[4:6], "a/\x7f": want[3:4], "a/b": want[1:2]} {
		var got []string
		for info, err := range s.List(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("list %q = %q, want %q", prefix, got, want)
		}
	}
	keyErr := (*storage.KeyError)(nil)
	for _, key := range []string{"extensions", "extensions/holdfast-scratch", "extensions/holdfast-scratch/x", "extensions/holdfast-names/61"} {
		if _, err := s.Create(t.Context(), key); !errors.As(err, &keyErr) {
			t.Errorf("create %q: err = %v, want a KeyError", key, err)
		}
	}
}
