package staging_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/open"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// origin is a source that a test plays.
type origin struct {
	data  []byte
	etag  string
	size  int64 // told; the real one for 0
	plain bool  // cannot resume

	cut   map[int]int64            // by opening, from 1: where its body breaks off
	swap  func(n int, data []byte) // before opening n
	opens []source.Point
}

func (o *origin) Head(context.Context, string) (source.Info, error) { return o.info(), nil }

func (o *origin) info() source.Info {
	size := int64(len(o.data))
	if o.size != 0 {
		size = o.size
	}
	return source.Info{URL: "test://file", Size: size, Validator: o.etag}
}

func (o *origin) Open(_ context.Context, _ string, p source.Point) (*source.Body, error) {
	o.opens = append(o.opens, p)
	if o.swap != nil {
		o.swap(len(o.opens), o.data)
	}
	from := p.Offset
	if o.plain || p.Validator != o.etag || o.etag == "" {
		from = 0
	}
	body := &source.Body{Info: o.info(), Offset: from}
	r := io.Reader(bytes.NewReader(o.data[from:]))
	if at, ok := o.cut[len(o.opens)]; ok {
		r = io.MultiReader(bytes.NewReader(o.data[from:at]), broken{})
	}
	body.ReadCloser = io.NopCloser(r)
	return body, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) {
	return 0, &source.Error{Kind: source.FaultShort, Err: io.ErrUnexpectedEOF}
}

func random(size int) []byte {
	out := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(out)
	return out
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// fetchOf is an attempt's fetch of what o has; it keeps the last checkpoint as JSON, as it is kept
// in truth.
func fetchOf(o *origin, s storage.Store, attempt string, saved *[]byte) *staging.Fetch {
	return &staging.Fetch{
		Source: o, Store: s, Key: "items/i/" + attempt + "/f",
		Wanted: staging.Wanted{URL: "test://file", SizeBytes: -1, Algorithms: []string{"sha256"}},
		Save: func(_ context.Context, c staging.Checkpoint) error {
			raw, err := json.Marshal(c)
			*saved = raw
			return err
		},
	}
}

func from(t *testing.T, saved []byte) *staging.Checkpoint {
	t.Helper()
	if saved == nil {
		return nil
	}
	var c staging.Checkpoint
	if err := json.Unmarshal(saved, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

func wantStaged(t *testing.T, s storage.Store, f staging.File, data []byte) {
	t.Helper()
	got, err := storage.ReadAll(t.Context(), s, f.Key, 1<<30)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("staged %d bytes (%v), which are the source's: %t", len(got), err, bytes.Equal(got, data))
	}
	if f.SizeBytes != int64(len(data)) || f.Digests["sha256"] != sumOf(data) {
		t.Errorf("file says %d bytes, %v", f.SizeBytes, f.Digests)
	}
}

func TestFetch_Sizes(t *testing.T) {
	const chunk = 256 << 10
	for _, size := range []int{0, 1, 1000, chunk - 1, chunk, chunk + 1, 3*chunk + 7, 12 * chunk} {
		for _, told := range []int64{0, -1} {
			s := storagetest.NewMemory()
			o := &origin{data: random(size), size: told}
			var moved int64
			f := fetchOf(o, s, "1", new([]byte))
			f.Buffers, f.Moved = &staging.Buffers{}, func(n int64) { moved += n }
			got, err := f.Run(t.Context())
			if err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			wantStaged(t, s, got, o.data)
			if moved != int64(size) {
				t.Errorf("told of %d bytes, want %d", moved, size)
			}
		}
	}
}

const (
	mib = 1 << 20
	big = 34 * mib
)

// A successor resumes at the checkpoint in a file of its own, and reads all of it back.
func TestR03_ResumesInsideAFile(t *testing.T) {
	t.Run("memory", func(t *testing.T) { resumesInsideAFile(t, storagetest.NewMemory()) })
	t.Run("s3", func(t *testing.T) {
		s3test.Setenv(t)
		s, err := open.URL(t.Context(), s3test.Start(t).Address("staging"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		resumesInsideAFile(t, s)
	})
}

func resumesInsideAFile(t *testing.T, s storage.Store) {
	o := &origin{data: random(big), etag: `"1"`, cut: map[int]int64{1: 33 * mib, 2: 33 * mib}}
	var saved []byte
	var moved int64
	f := fetchOf(o, s, "1", &saved)
	f.Moved = func(n int64) { moved += n }
	if _, err := f.Run(t.Context()); err == nil {
		t.Fatal("a body that broke off was taken for whole")
	}
	if moved != 32*mib {
		t.Errorf("a fetch that a successor goes on with at 32 MiB left %d bytes counted", moved)
	}
	c := from(t, saved)
	if c == nil || c.Stored.Size != 32*mib || c.Key != "items/i/1/f" {
		t.Fatalf("checkpoint %+v", c)
	}
	var read int64
	moved = 0
	f = fetchOf(o, s, "2", &saved)
	f.From, f.Moved, f.Read = c, func(n int64) { moved += n }, func(n int64) { read += n }
	got, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantStaged(t, s, got, o.data)
	if last := o.opens[len(o.opens)-1]; last.Offset != 32*mib || last.Validator != `"1"` {
		t.Errorf("went on at %+v", last)
	}
	if moved != big || read != big {
		t.Errorf("moved=%d read back=%d, want %d", moved, read, big)
	}
	if got.Key != "items/i/2/f" {
		t.Errorf("staged at %s", got.Key)
	}
	if _, err := s.Resume(t.Context(), "x", c.Stored); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the predecessor's part still takes room (%v)", err)
	}
}

// A connection that breaks far from where it began is made again at once.
func TestFetch_GoesOnAfterABreak(t *testing.T) {
	s := storagetest.NewMemory()
	o := &origin{data: random(big), etag: `"1"`, cut: map[int]int64{1: 17*mib + 5, 2: 33*mib + 6}}
	got, err := fetchOf(o, s, "1", new([]byte)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantStaged(t, s, got, o.data)
	if len(o.opens) != 3 || o.opens[1].Offset != 17*mib+5 || o.opens[2].Offset != 33*mib+6 {
		t.Errorf("opened at %+v", o.opens)
	}
}

// An unusable checkpoint costs a fetch from the start, and never gives a wrong byte (R5, R27).
func TestR05_StartsOver(t *testing.T) {
	tests := []struct {
		name string
		do   func(o *origin, s *storagetest.Memory, c *staging.Checkpoint)
	}{
		{"source changed", func(o *origin, _ *storagetest.Memory, _ *staging.Checkpoint) {
			o.etag, o.data = `"2"`, append(random(5), o.data...)
		}},
		{"source cannot resume", func(o *origin, _ *storagetest.Memory, _ *staging.Checkpoint) { o.plain = true }},
		{"staged part is gone", func(_ *origin, _ *storagetest.Memory, c *staging.Checkpoint) { c.Stored.Token = "gone" }},
		{"digests of another version", func(_ *origin, _ *storagetest.Memory, c *staging.Checkpoint) { c.Digests.Version = "go9" }},
		{"digests of another place", func(_ *origin, _ *storagetest.Memory, c *staging.Checkpoint) { c.Digests.Size-- }},
		{"staged part was damaged", func(_ *origin, _ *storagetest.Memory, _ *staging.Checkpoint) {}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := storagetest.NewMemory()
			o := &origin{data: random(17 * mib), etag: `"1"`, cut: map[int]int64{1: 16*mib + 1, 2: 16*mib + 1}}
			var saved []byte
			if _, err := fetchOf(o, s, "1", &saved).Run(t.Context()); err == nil {
				t.Fatal("the first fetch did not break off")
			}
			c := from(t, saved)
			tt.do(o, s, c)
			faulty := storagetest.NewFaulty(s)
			if tt.name == "staged part was damaged" {
				faulty.Flip("items/i/2/f", 5)
			}
			f := fetchOf(o, faulty, "2", &saved)
			f.From = c
			got, err := f.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wantStaged(t, s, got, o.data)
		})
	}
}

// endless is a source that never ends and does not tell its size.
type isTooLong struct {
	opens int
	read  int64
}

func (e *isTooLong) Head(context.Context, string) (source.Info, error) {
	return source.Info{URL: "test://endless", Size: -1}, nil
}

func (e *isTooLong) Open(ctx context.Context, url string, _ source.Point) (*source.Body, error) {
	e.opens++
	info, err := e.Head(ctx, url)
	return &source.Body{Info: info, ReadCloser: io.NopCloser(e)}, err
}

func (e *isTooLong) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

// A source that never ends is read only up to the limit, and nothing of it stays, not even
// checkpoints.
func TestFetch_Endless(t *testing.T) {
	for _, tt := range []struct {
		name      string
		told      int64
		most      int64
		opens     int
		unbounded bool
	}{
		{"nobody tells", -1, 40 * mib, 1, true},
		{"the depositor told less", 20 * mib, 0, 2, false}, // it may have been an error page the first time
		{"the depositor told little", 5, 40 * mib, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, o := storagetest.NewMemory(), &isTooLong{}
			var saved []byte
			f := fetchOf(&origin{}, s, "1", &saved)
			var moved int64
			f.Source, f.Wanted.SizeBytes, f.Most, f.Moved = o, tt.told, tt.most, func(n int64) { moved += n }
			_, err := f.Run(t.Context())
			var unbounded *staging.UnboundedError
			var wrong *staging.MismatchError
			if errors.As(err, &unbounded) != tt.unbounded || errors.As(err, &wrong) == tt.unbounded || !base.ContentFault(err) {
				t.Fatalf("error %v", err)
			}
			if limit := max(tt.most, tt.told) + 4*mib; o.opens != tt.opens || o.read > int64(tt.opens)*limit {
				t.Errorf("opened %d times and read %d bytes, want %d times and at most %d each", o.opens, o.read, tt.opens, limit)
			}
			if moved != 0 {
				t.Errorf("%d bytes are still counted", moved)
			}
			if c := from(t, saved); c != nil {
				if _, err := s.Resume(t.Context(), "x", c.Stored); !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("what was checkpointed still takes room (%v)", err)
				}
			}
		})
	}
}

func TestR06_Mismatch(t *testing.T) {
	data := random(1000)
	wrong := &registry.Digest{Algorithm: "sha256", Value: sumOf([]byte("x"))}
	right := &registry.Digest{Algorithm: "sha256", Value: sumOf(data)}
	damage := func(upTo int) func(int, []byte) {
		return func(n int, d []byte) {
			copy(d, data)
			if n <= upTo {
				d[n]++
			}
		}
	}
	tests := []struct {
		name    string
		origin  *origin
		wanted  staging.Wanted
		opens   int
		ok      bool
		content bool
	}{
		{"same wrong digest twice", &origin{data: data}, staging.Wanted{SizeBytes: -1, Digest: wrong}, 2, false, true},
		{"wrong once", &origin{data: random(1000), swap: damage(1)}, staging.Wanted{SizeBytes: -1, Digest: right}, 2, true, false},
		{"different each time", &origin{data: random(1000), swap: damage(2)}, staging.Wanted{SizeBytes: -1, Digest: right}, 2, false, false},
		{"size known to differ", &origin{data: data}, staging.Wanted{SizeBytes: 999}, 1, false, true},
		{"size not told, differs", &origin{data: data, size: -1}, staging.Wanted{SizeBytes: 999}, 2, false, true},
		{"upper case digest", &origin{data: data}, staging.Wanted{SizeBytes: 1000, Digest: &registry.Digest{
			Algorithm: "sha256", Value: string(bytes.ToUpper([]byte(right.Value))),
		}}, 1, true, false},
		{"unknown algorithm", &origin{data: data}, staging.Wanted{SizeBytes: -1, Digest: &registry.Digest{Algorithm: "md4", Value: "00"}}, 0, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := storagetest.NewMemory()
			f := fetchOf(tt.origin, s, "1", new([]byte))
			tt.wanted.Algorithms = []string{"sha256"}
			f.Wanted = tt.wanted
			var moved int64
			f.Moved = func(n int64) { moved += n }
			got, err := f.Run(t.Context())
			if (err == nil) != tt.ok {
				t.Fatalf("error %v, want success %t", err, tt.ok)
			}
			var fault interface{ ContentFault() bool }
			if content := errors.As(err, &fault) && fault.ContentFault(); content != tt.content {
				t.Errorf("content fault=%t, want %t: %v", content, tt.content, err)
			}
			if len(tt.origin.opens) != tt.opens {
				t.Errorf("opened %d times, want %d", len(tt.origin.opens), tt.opens)
			}
			if tt.ok {
				wantStaged(t, s, got, data)
				return
			}
			if moved != 0 {
				t.Errorf("%d bytes are left counted", moved)
			}
			for info, err := range s.List(t.Context(), "") {
				t.Errorf("left: %s (%v)", info.Key, err)
			}
		})
	}
}

// An error on either side ends both; nothing leaks (TestMain).
func TestFetch_ErrorOnEitherSide(t *testing.T) {
	for _, op := range []storagetest.Op{storagetest.Create, storagetest.Write, storagetest.Checkpoint, storagetest.Commit} {
		for _, n := range []int{1, 2} {
			s := storagetest.NewFaulty(storagetest.NewMemory())
			s.Fail(op, n, nil)
			o := &origin{data: random(17 * mib), etag: `"1"`}
			_, err := fetchOf(o, s, "1", new([]byte)).Run(t.Context())
			if fails := s.Count(op) >= n; fails != errors.Is(err, storagetest.ErrInjected) {
				t.Errorf("%s %d: %v", op, n, err)
			}
		}
	}
	t.Run("save", func(t *testing.T) {
		f := fetchOf(&origin{data: random(17 * mib)}, storagetest.NewMemory(), "1", nil)
		f.Save = func(context.Context, staging.Checkpoint) error { return registry.ErrClaimLost }
		if _, err := f.Run(t.Context()); !errors.Is(err, registry.ErrClaimLost) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("context while the source hangs", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		h := &hanging{closed: make(chan struct{}), reading: func() { cancel(errTest) }}
		f := fetchOf(nil, storagetest.NewMemory(), "1", new([]byte))
		f.Source = h
		if _, err := f.Run(ctx); !errors.Is(err, errTest) {
			t.Errorf("error %v, want the context's cause", err)
		}
	})
}

var errTest = errors.New("test")

// hanging gives a little more than a chunk and then nothing, until it is closed.
type hanging struct {
	closed  chan struct{}
	reading func()
	given   int
}

func (h *hanging) Head(context.Context, string) (source.Info, error) { return source.Info{}, nil }

func (h *hanging) Open(context.Context, string, source.Point) (*source.Body, error) {
	return &source.Body{ReadCloser: h, Info: source.Info{Size: -1}}, nil
}

func (h *hanging) Read(p []byte) (int, error) {
	if h.given < 300<<10 {
		n := min(len(p), 1000)
		h.given += n
		return n, nil
	}
	h.reading()
	<-h.closed
	return 0, errors.New("closed")
}

func (h *hanging) Close() error {
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
	return nil
}

func TestFetch_Format(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), random(100)...)
	for _, tt := range []struct {
		data       []byte
		said, want string
	}{
		{png, "text/plain", "image/png"},
		{[]byte{0xff, 0x00, 0x13, 0x99}, "application/x-own", "application/x-own"},
		{[]byte{0xff, 0x00, 0x13, 0x99}, "", "application/octet-stream"},
		{[]byte("hello"), "", "text/plain; charset=utf-8"},
	} {
		f := fetchOf(&origin{data: tt.data}, storagetest.NewMemory(), "1", new([]byte))
		f.Wanted.MIMEType = tt.said
		got, err := f.Run(t.Context())
		if err != nil || got.MIMEType != tt.want {
			t.Errorf("format %q (%v), want %q", got.MIMEType, err, tt.want)
		}
	}
}

// stalled is a Store that takes no byte until it is released.
type stalled struct {
	discard
	released chan struct{}
}

func (s stalled) Create(context.Context, string) (storage.Writer, error) {
	return stalledSink{released: s.released}, nil
}

type stalledSink struct {
	sink
	released chan struct{}
}

func (s stalledSink) Write(p []byte) (int, error) {
	<-s.released
	return len(p), nil
}

// counted is a source that counts the bytes it gave to anybody.
type counted struct {
	*origin
	given *atomic.Int64
}

func (c counted) Open(ctx context.Context, url string, p source.Point) (*source.Body, error) {
	body, err := c.origin.Open(ctx, url, p)
	if err == nil {
		body.ReadCloser = io.NopCloser(io.TeeReader(body.ReadCloser, countingWriter{c.given}))
	}
	return body, err
}

type countingWriter struct{ n *atomic.Int64 }

func (w countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return len(p), nil
}

// Many fetches that wait for a disk hold a bounded number of bytes together, and each has its chunk.
func TestFetch_ReadAheadIsShared(t *testing.T) {
	const fetches, chunk = 40, 256 << 10
	data := random(4 * mib)
	synctest.Test(t, func(t *testing.T) {
		var buffers staging.Buffers
		for range 2 { // what was lent comes back
			var given atomic.Int64
			var all sync.WaitGroup
			store := stalled{released: make(chan struct{})}
			for range fetches {
				all.Go(func() {
					f := staging.Fetch{
						Source: counted{&origin{data: data}, &given}, Store: store, Buffers: &buffers, Key: "k",
						Wanted: staging.Wanted{SizeBytes: -1, Algorithms: []string{"sha256"}},
					}
					if got, err := f.Run(t.Context()); err != nil || got.Digests["sha256"] != sumOf(data) {
						t.Errorf("%v, %v", got.Digests, err)
					}
				})
			}
			synctest.Wait()
			if n := given.Load(); n != (fetches+64)*chunk {
				t.Errorf("%d chunks in memory, want %d", n/chunk, fetches+64)
			}
			close(store.released)
			all.Wait()
			if n := given.Load(); n != fetches*int64(len(data)) {
				t.Errorf("%d bytes in all", n)
			}
		}
	})
}

func BenchmarkFetch(b *testing.B) {
	for _, size := range []int{64 << 10, 64 * mib} {
		data := random(size)
		b.Run(map[bool]string{true: "small", false: "large"}[size < mib], func(b *testing.B) {
			var buffers staging.Buffers
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				f := staging.Fetch{
					Source: &origin{data: data}, Store: discard{}, Buffers: &buffers, Key: "k",
					Wanted: staging.Wanted{SizeBytes: -1, Algorithms: []string{"sha256"}},
				}
				if _, err := f.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard is a Store that keeps nothing.
type discard struct{ storage.Store }

func (discard) Create(context.Context, string) (storage.Writer, error) { return sink{}, nil }

type sink struct{ storage.Writer }

func (sink) Write(p []byte) (int, error) { return len(p), nil }

func (sink) Commit(context.Context) (storage.Info, error) { return storage.Info{}, nil }

func (sink) Close() error { return nil }

// TestFetch_InPlace: a file that is in its place is read, resumed inside, compared with its digest
// on arrival, and neither written nor removed.
func TestFetch_InPlace(t *testing.T) {
	const key = "uploads/u/payload"
	s, saved := storagetest.NewMemory(), []byte(nil)
	o := &origin{data: random(3 * staging.MinPart), etag: "e", cut: map[int]int64{1: staging.MinPart + 5}}
	if _, err := storage.Put(t.Context(), s, key, o.data); err != nil {
		t.Fatal(err)
	}
	run := func(change func(*staging.Fetch)) (staging.File, error) {
		t.Helper()
		f := fetchOf(o, s, "1", &saved)
		f.Key, f.InPlace, f.From = key, true, from(t, saved)
		f.Wanted.Received = &registry.Digest{Algorithm: "sha256", Value: sumOf(o.data)}
		change(f)
		got, err := f.Run(t.Context())
		for info, listErr := range s.List(t.Context(), "") {
			if listErr != nil || info.Key != key {
				t.Errorf("there is %q, %v", info.Key, listErr)
			}
		}
		if _, err := s.Stat(t.Context(), key); err != nil {
			t.Errorf("the file is gone: %v", err)
		}
		return got, err
	}
	keep := func(*staging.Fetch) {}
	o.cut[2] = staging.MinPart + 5 // the second connection brings nothing
	if _, err := run(keep); err == nil || saved == nil {
		t.Fatalf("a broken reading: %v, checkpoint %s", err, saved)
	}
	got, err := run(keep)
	if err != nil || o.opens[2].Offset != staging.MinPart {
		t.Fatalf("resumed at %+v: %v", o.opens, err)
	}
	wantStaged(t, s, got, o.data)

	saved = nil
	_, err = run(func(f *staging.Fetch) { f.Wanted.Received.Value = sumOf(nil) })
	if !errors.Is(err, staging.ErrDamaged) || base.ContentFault(err) {
		t.Errorf("changed since it arrived: %v", err)
	}
	saved = nil
	_, err = run(func(f *staging.Fetch) { f.Wanted.Digest = &registry.Digest{Algorithm: "sha256", Value: sumOf(nil)} })
	if !base.ContentFault(err) {
		t.Errorf("not what the depositor says: %v", err)
	}
	saved = nil
	_, err = run(func(f *staging.Fetch) { f.Wanted.SizeBytes = 1 })
	if !base.ContentFault(err) {
		t.Errorf("not as long as the depositor says: %v", err)
	}
	saved = nil
	_, err = run(func(f *staging.Fetch) {
		f.Wanted.SizeBytes = int64(len(o.data))
		o.data = o.data[:staging.MinPart]
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Put(t.Context(), s, key, o.data); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, staging.ErrDamaged) || base.ContentFault(err) {
		t.Errorf("cut off since it arrived: %v", err)
	}
}
