package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// behind returns a store whose requests go through p.
func behind(t testing.TB, p *proxy, prefix string) *s3.Store {
	t.Helper()
	s, err := s3.OpenImpatient(t.Context(), s3test.Address(p.URL, prefix))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func random(size int) []byte {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(out)
	return out
}

// begun returns a writer of key that has data.
func begun(t testing.TB, s storage.Store, key string, data []byte) storage.Writer {
	t.Helper()
	w, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if _, err := w.Write(data); err != nil {
		t.Fatalf("write: %v", err)
	}
	return w
}

func wantContent(t testing.TB, s storage.Store, key string, want []byte) {
	t.Helper()
	got, err := storage.ReadAll(t.Context(), s, key, 1<<30)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes (%v), the right ones: %t", key, len(got), err, bytes.Equal(got, want))
	}
}

// wantLeftovers checks what uncommitted writers keep below prefix.
func wantLeftovers(t testing.TB, s *s3.Store, prefix string, pieces, uploads int) {
	t.Helper()
	gotPieces, gotUploads := 0, 0
	for left, err := range s.Leftovers(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("leftovers: %v", err)
		}
		if left.Since.IsZero() || left.Name == "" {
			t.Errorf("leftover %+v has no name or no time", left)
		}
		if left.Upload {
			gotUploads++
		} else {
			gotPieces++
		}
	}
	if gotPieces != pieces || gotUploads != uploads {
		t.Errorf("%d pieces and %d uploads are left, want %d and %d", gotPieces, gotUploads, pieces, uploads)
	}
}

const mib = 1 << 20

// TestR30_CommitWhoseAnswerIsLost: whatever answers the request that makes an object visible,
// Commit returns the truth, and nothing is left over.
func TestR30_CommitWhoseAnswerIsLost(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	small, large := []byte("small"), random(6*mib)
	const always = 1 << 30
	for _, test := range []struct {
		name  string
		fault func()
		want  error // of Commit; nil: the object is there
	}{
		{"put: answer lost", func() { p.lose("PutObject", 1) }, nil},
		{"put: took effect, answered 500", func() { p.lie("PutObject", 1, 500, "InternalError") }, nil},
		{"put: took effect, always answered 503", func() { p.lie("PutObject", always, 503, "SlowDown") }, nil},
		{"put: took effect, answered 412", func() { p.lie("PutObject", 1, 412, "PreconditionFailed") }, nil},
		{"put: conflict", func() { p.refuse("PutObject", 1, 409, "ConditionalRequestConflict") }, nil},
		{"put: 412, and then it is free", func() { p.refuse("PutObject", 1, 412, "PreconditionFailed") }, nil},
		{"put: never works", func() { p.refuse("PutObject", always, 500, "InternalError") }, errAny},
		{"complete: answer lost", func() { p.lose("Complete", 1) }, nil},
		{"complete: took effect, answered 404", func() { p.lie("Complete", 1, 404, "NoSuchUpload") }, nil},
		{"complete: took effect, answered 412", func() { p.lie("Complete", 1, 412, "PreconditionFailed") }, nil},
		{"complete: took effect, always answered 500", func() { p.lie("Complete", always, 500, "InternalError") }, nil},
		{"complete: upload is gone", func() { p.refuse("Complete", 1, 404, "NoSuchUpload") }, nil},
		{"complete: conflict", func() { p.refuse("Complete", 1, 409, "ConditionalRequestConflict") }, nil},
		{"complete: 412, and then it is free", func() { p.refuse("Complete", 1, 412, "PreconditionFailed") }, nil},
		{"complete: 503 a few times", func() { p.refuse("Complete", 3, 503, "SlowDown") }, nil},
		{"complete: always in conflict", func() { p.refuse("Complete", always, 409, "ConditionalRequestConflict") }, errAny},
		{"part: 500 a few times", func() { p.refuse("UploadPartCopy", 3, 500, "InternalError") }, nil},
		{"part: never works", func() { p.refuse("UploadPartCopy", always, 500, "InternalError") }, errAny},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := behind(t, p, strings.NewReplacer(" ", "_", ":", "", ",", "").Replace(t.Name()))
			s.CutSmall(100)
			data := large
			if strings.HasPrefix(test.name, "put") {
				data = small
			}
			w := begun(t, s, "k", data)
			if len(data) > len(small) { // pieces are on their way, which is not what is looked at
				if _, err := w.Checkpoint(t.Context()); err != nil {
					t.Fatalf("checkpoint: %v", err)
				}
			}
			test.fault()
			_, err := w.Commit(t.Context())
			p.heal()
			if test.want != nil {
				if err == nil || errors.Is(err, storage.ErrExists) {
					t.Errorf("commit: err = %v, want one of the system's", err)
				}
				if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("stat after a commit that failed: err = %v, want ErrNotFound", err)
				}
				// What was written is still there: the service works again, and so does Commit.
				_, err = w.Commit(t.Context())
			}
			if err != nil {
				t.Fatalf("commit: %v", err)
			}
			wantContent(t, s, "k", data)
			wantLeftovers(t, s, "", 0, 0)
		})
	}
}

// errAny is any error but those of the contract.
var errAny = errors.New("any error")

// TestR30_SomebodyElsesObject: after a lost or refused answer the existing object is another
// writer's, even with the same bytes. It is not mistaken for this writer's.
func TestR30_SomebodyElsesObject(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	for _, size := range []int{5, 6 * mib} {
		s := behind(t, p, fmt.Sprintf("size-%d", size))
		data := random(size)
		w := begun(t, s, "k", data)
		other := begun(t, s, "k", data)
		if _, err := other.Commit(t.Context()); err != nil {
			t.Fatalf("commit: %v", err)
		}
		before, err := s.Stat(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		p.lose("PutObject", 1)
		p.lose("Complete", 1)
		if _, err := w.Commit(t.Context()); !errors.Is(err, storage.ErrExists) {
			t.Errorf("commit of %d bytes: err = %v, want ErrExists", size, err)
		}
		p.heal()
		if err := w.Abort(); err != nil {
			t.Errorf("abort: %v", err)
		}
		if after, err := s.Stat(t.Context(), "k"); err != nil || after != before {
			t.Errorf("the other's object is %+v now (%v), was %+v", after, err, before)
		}
		wantContent(t, s, "k", data)
		wantLeftovers(t, s, "", 0, 0)
	}
}

// TestBrokenReading: an interrupted body is continued where it broke, and never counts as complete.
func TestBrokenReading(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s := behind(t, p, "reading")
	data := random(3 * mib)
	if _, err := storage.Put(t.Context(), s, "k", data); err != nil {
		t.Fatal(err)
	}
	p.cut("GET", 3, mib)
	wantContent(t, s, "k", data)
	p.heal()
	p.cut("GET", 1<<30, 0)
	r, err := s.Open(t.Context(), "k", 10, 100)
	if err == nil {
		_, err = io.ReadAll(r)
		_ = r.Close()
	}
	if err == nil {
		t.Error("a reading that never gets anywhere ended well")
	}
	p.heal()

	// The object is replaced between two connections: neither a mixture nor the beginning of the
	// old one is given out as a whole.
	p.cut("GET", 1, mib)
	r, err = s.Open(t.Context(), "k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, mib/2); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), "k", random(2*mib)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil {
		t.Error("half of one object and half of another were read as one")
	}
}

// TestPieceThatCannotBeStored: the writer fails at the latest when something must be durable, and
// leaves nothing.
func TestPieceThatCannotBeStored(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s := behind(t, p, "pieces")
	p.refuse("PutObject", 1<<30, 507, "InsufficientStorage")
	w, err := s.Create(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	_, writeErr := w.Write(random(12 * mib))
	_, err = w.Checkpoint(t.Context())
	if err = errors.Join(writeErr, err); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("err = %v, want ErrNoSpace", err)
	}
	if _, err := w.Commit(t.Context()); err == nil {
		t.Error("a writer without all of its bytes committed")
	}
	p.heal()
	if err := w.Abort(); err != nil {
		t.Errorf("abort: %v", err)
	}
	wantLeftovers(t, s, "", 0, 0)
}

// TestR30_Ready tests whether the service keeps one writer from overwriting another's object.
func TestR30_Ready(t *testing.T) {
	server := start(t)
	p := newProxy(t, server.Endpoint)
	s := behind(t, p, "ready")
	for range 2 {
		if remarks, err := s.Ready(t.Context()); err != nil || len(remarks) != 0 {
			t.Errorf("ready = %q, %v, want no remarks", remarks, err)
		}
	}
	if n := p.count("Complete"); n != 1 {
		t.Errorf("conditions were tried %d times, want once", n)
	}
	wantLeftovers(t, s, "", 0, 0)

	for op, word := range map[string]string{"PutObject": "PutObject", "Complete": "CompleteMultipartUpload"} {
		careless := behind(t, p, "careless-"+op)
		p.ignoreConditions(op)
		remarks, err := careless.Ready(t.Context())
		if err != nil || len(remarks) != 1 || !strings.Contains(remarks[0], word) {
			t.Errorf("%s without conditions: ready = %q, %v, want a remark", op, remarks, err)
		}
		// One after the other is still told apart.
		if _, err := storage.Put(t.Context(), careless, "k", []byte("first")); err != nil {
			t.Errorf("put: %v", err)
		}
		if _, err := storage.Put(t.Context(), careless, "k", []byte("second")); !errors.Is(err, storage.ErrExists) {
			t.Errorf("put: err = %v, want ErrExists", err)
		}
		p.heal()
		wantLeftovers(t, careless, "", 0, 0)
	}

	gone := open(t, strings.Replace(server.Address("x"), "s3://"+s3test.Bucket, "s3://no-such-bucket", 1))
	if _, err := gone.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no such bucket") {
		t.Errorf("ready without a bucket: err = %v", err)
	}
	p.refuse("HEAD", 1<<30, 503, "SlowDown")
	if _, err := s.Ready(t.Context()); err == nil {
		t.Error("ready while the service is not")
	}
}
