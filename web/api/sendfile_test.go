package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// cutting breaks the first requests that bring bytes off, each after a while, and counts what
// comes.
type cutting struct {
	next http.Handler

	mu    sync.Mutex
	cuts  []int64
	taken int64
}

func (c *cutting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPatch {
		c.mu.Lock()
		limit := int64(-1)
		if len(c.cuts) > 0 {
			limit, c.cuts = c.cuts[0], c.cuts[1:]
		}
		c.mu.Unlock()
		r.Body = &cutBody{ReadCloser: r.Body, limit: limit, of: c}
		if limit >= 0 {
			c.next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
	}
	c.next.ServeHTTP(w, r)
}

type cutBody struct {
	io.ReadCloser
	limit int64
	of    *cutting
}

// Read implements io.Reader.
func (b *cutBody) Read(p []byte) (int, error) {
	if b.limit >= 0 {
		p = p[:min(int64(len(p)), b.limit)]
	}
	if len(p) == 0 {
		return 0, errors.New("the line is cut")
	}
	n, err := b.ReadCloser.Read(p)
	if b.limit >= 0 {
		b.limit -= int64(n)
	}
	b.of.mu.Lock()
	b.of.taken += int64(n)
	b.of.mu.Unlock()
	return n, err
}

// fileOf is data as a file to send.
func fileOf(data []byte) client.File {
	return client.File{
		Name: "a.bin", Size: int64(len(data)), Fingerprint: "f",
		Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data[offset:])), nil
		},
	}
}

// TestSendFile_OverABadLine checks that a connection that breaks repeatedly sends no byte twice.
func TestSendFile_OverABadLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := &cutting{next: b.server.Config.Handler, cuts: []int64{0, 5, 3 << 20, 0, 20 << 20, 1}}
	line := httptest.NewServer(c)
	t.Cleanup(line.Close)
	data := make([]byte, 70<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(data)
	sender := client.New(line.URL, tokenText(registry.RoleDepositor), client.Options{})
	t.Cleanup(sender.Close)
	var told int
	f := fileOf(data)
	f.Waiting = func(error, time.Duration) { told++ }
	u, err := sender.SendFile(t.Context(), f)
	must(t, err)
	b.wantStored(t, "/"+u.ID, string(data))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken != int64(len(data)) {
		t.Errorf("%d bytes were taken, want the %d of the file", c.taken, len(data))
	}
	if told == 0 {
		t.Error("nobody was told that the line was cut")
	}
}

// TestSendFile_GoesOn checks that an unfinished upload is resumed, unless the file has changed.
func TestSendFile_GoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sender := b.as(t, registry.RoleDepositor)
	data := []byte("hello world")
	at := b.begin(t, 11, wire.EncodeMetadata(map[string]string{"filename": "a.bin", "fingerprint": "f"}))
	got, text := b.bring(t, at, 0, "hello")
	wantOffset(t, got, text, http.StatusNoContent, 5)
	var from int64 = -1
	f := fileOf(data)
	f.Resumed = func(offset int64) { from = offset }
	u, err := sender.SendFile(t.Context(), f)
	must(t, err)
	if from != 5 || !strings.HasSuffix(at, u.ID) {
		t.Errorf("gone on with %s at %d, want %s at 5", u.ID, from, at)
	}
	b.wantStored(t, at, string(data))

	// The same name, size and fingerprint, and other bytes: seen in the end, and nothing is left.
	at = b.begin(t, 11, wire.EncodeMetadata(map[string]string{"filename": "a.bin", "fingerprint": "f"}))
	got, text = b.bring(t, at, 0, "HELLO")
	wantOffset(t, got, text, http.StatusNoContent, 5)
	_, err = sender.SendFile(t.Context(), f)
	var changed *client.DigestError
	if !errors.As(err, &changed) {
		t.Errorf("error=%v, want a digest that differs", err)
	}
	if left := b.staged(t); len(left) != 1 {
		t.Errorf("staged %v, want the first file alone", left)
	}
}

// TestSendFile_AllSent checks that an upload is stored whose server died after it had acknowledged
// the last byte.
func TestSendFile_AllSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *bench, o *api.Options) { o.Registry = &unfinishing{Registry: o.Registry, left: 1} })
	at := b.begin(t, 5, wire.EncodeMetadata(map[string]string{"filename": "a.bin", "fingerprint": "f"}))
	got, text := b.bring(t, at, 0, "hello")
	wantProblem(t, got, text, http.StatusServiceUnavailable, wire.CodeUnavailable)
	u, err := b.as(t, registry.RoleDepositor).SendFile(t.Context(), fileOf([]byte("hello")))
	must(t, err)
	if !strings.HasSuffix(at, u.ID) {
		t.Errorf("stored as %s, want %s", u.ID, at)
	}
	b.wantStored(t, at, "hello")
}

func TestSendFile_Fails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sender := b.as(t, registry.RoleDepositor)
	broken := errors.New("disk is gone")
	f := fileOf([]byte("hello"))
	f.Open = func(context.Context, int64) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("he"), failing{broken})), nil
	}
	if _, err := sender.SendFile(t.Context(), f); !errors.Is(err, broken) {
		t.Errorf("error=%v, want %v", err, broken)
	}
	f = fileOf([]byte("hello"))
	f.Size = 6
	if _, err := sender.SendFile(t.Context(), f); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error=%v, want that the file is shorter", err)
	}
	f = fileOf([]byte("hello"))
	f.Digest = &registry.Digest{Algorithm: "md5", Value: strings.Repeat("0", 32)}
	_, err := sender.SendFile(t.Context(), f)
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeDigestMismatch)
	f = fileOf(nil)
	_, err = sender.SendFile(t.Context(), f)
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeEmptyUpload)
	if left := append(b.staged(t), b.scratch(t)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if on, err := b.store.IncomingOf(t.Context(), ""); err != nil || len(on) > 0 {
		t.Errorf("on their way: %+v %v", on, err)
	}
}
