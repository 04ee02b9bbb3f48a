package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/wire"
)

func TestUpload_IsStoredAndRecordedBeforeItIsAnswered(t *testing.T) {
	b := newBench(t)
	for _, size := range []int64{5, -1} {
		u, err := b.as(t, registry.RoleDepositor).SendUpload(t.Context(), oneRequest{
			Filename: "näme 1.txt", Body: io.MultiReader(strings.NewReader("he"), strings.NewReader("llo")), Size: size,
		})
		must(t, err)
		if u.SizeBytes != 5 || u.Digest.Value != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" || u.Filename != "näme 1.txt" {
			t.Errorf("upload=%+v, want 5 bytes with the digest of hello", u)
		}
		text, err := storage.ReadAll(t.Context(), b.staging, source.UploadKey(u.ID), 100)
		if err != nil || string(text) != "hello" {
			t.Errorf("stored=%q (%v), want hello", text, err)
		}
		if known, err := b.store.UploadByID(t.Context(), u.ID); err != nil || known.CreatedBy != "the depositor" {
			t.Errorf("recorded=%+v (%v), want it created by the depositor", known, err)
		}
	}
}

func TestUpload_Refused(t *testing.T) {
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	for _, c := range []struct {
		name, query, body, digest string
		status                    int
		code                      wire.Code
		location                  string
	}{
		{"no name", "", "x", "", 422, wire.CodeInvalid, "query.filename"},
		{"a folder in the name", "?filename=../etc/passwd", "x", "", 422, wire.CodeInvalid, "query.filename"},
		{"a line break in the name", "?filename=a%0Ab", "x", "", 422, wire.CodeInvalid, "query.filename"},
		{"no UTF-8", "?filename=%ff", "x", "", 422, wire.CodeInvalid, "query.filename"},
		{"a long name", "?filename=" + strings.Repeat("a", 256), "x", "", 422, wire.CodeInvalid, "query.filename"},
		{"a misspelt parameter", "?filename=a&fname=b", "x", "", 422, wire.CodeInvalid, "query.fname"},
		{"empty", "?filename=a", "", "", 422, wire.CodeEmptyUpload, ""},
		{"another digest", "?filename=a", "hellO", "sha256:" + hello, 422, wire.CodeDigestMismatch, "header.X-Holdfast-Digest"},
		{"an unknown digest", "?filename=a", "hello", "sha3:" + hello, 422, wire.CodeInvalid, "header.X-Holdfast-Digest.algorithm"},
		{"half a digest", "?filename=a", "hello", "sha256:abcd", 422, wire.CodeInvalid, "header.X-Holdfast-Digest.value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			answer, text := b.send(t, http.MethodPost, "/api/v1/uploads"+c.query, c.body, wire.DigestHeader, c.digest)
			p := wantProblem(t, answer, text, c.status, c.code)
			if c.location != "" && (len(p.Faults) == 0 || p.Faults[0].Location != c.location) {
				t.Errorf("errors=%+v, want one of %s", p.Faults, c.location)
			}
			if left := b.staged(t); len(left) > 0 {
				t.Errorf("left in staging: %v, want nothing", left)
			}
		})
	}
}

func TestUpload_DigestMatches(t *testing.T) {
	b := newBench(t)
	answer, text := b.send(t, http.MethodPost, "/api/v1/uploads?filename=a", "hello", wire.DigestHeader, "MD5:5D41402ABC4B2A76B9719D911017C592")
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("status=%d, want 201: %s", answer.StatusCode, text)
	}
}

// TestUpload_BrokenOff checks that an interrupted upload, with or without a length, leaves no
// bytes, record or scratch file.
func TestUpload_BrokenOff(t *testing.T) {
	for name, head := range map[string]string{
		"announced": "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1000),
		"chunked":   "Transfer-Encoding: chunked\r\n\r\n400\r\n" + strings.Repeat("x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.server.URL, "http://"))
			must(t, err)
			_, err = fmt.Fprintf(conn, "POST /api/v1/uploads?filename=a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n%s", tokenText(registry.RoleDepositor), head)
			must(t, err)
			must(t, conn.(*net.TCPConn).CloseWrite())
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			must(t, err)
			answer, text := read(t, response)
			must(t, conn.Close())
			wantProblem(t, answer, text, http.StatusBadRequest, wire.CodeBrokenOff)
			if left := b.staged(t); len(left) > 0 {
				t.Errorf("left in staging: %v, want nothing", left)
			}
		})
	}
}

// TestUpload_UnreadableSource checks that the sender's own read error is returned unchanged, and
// that the server stores nothing.
func TestUpload_UnreadableSource(t *testing.T) {
	b := newBench(t)
	broken := errors.New("disk is gone")
	_, err := b.as(t, registry.RoleDepositor).SendUpload(t.Context(), oneRequest{
		Filename: "a", Size: -1, Body: io.MultiReader(strings.NewReader("abc"), failing{broken}),
	})
	if !errors.Is(err, broken) {
		t.Errorf("error=%v, want %v", err, broken)
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v, want nothing", left)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// full is a staging store without room.
type full struct{ storage.Store }

func (f full) Space(context.Context) (storage.Space, error) {
	return storage.Space{Total: 100, Used: 98}, nil
}

// filling is a staging store that fills up in the middle of a file.
type filling struct{ storage.Store }

type fillingWriter struct{ storage.Writer }

func (f filling) Create(ctx context.Context, key string) (storage.Writer, error) {
	w, err := f.Store.Create(ctx, key)
	return fillingWriter{w}, err
}

func (fillingWriter) Write([]byte) (int, error) {
	return 0, fmt.Errorf("write: %w", storage.ErrNoSpace)
}

func TestUpload_NoSpace(t *testing.T) {
	for name, wrap := range map[string]func(storage.Store) storage.Store{
		"seen before": func(s storage.Store) storage.Store { return full{s} },
		"met inside":  func(s storage.Store) storage.Store { return filling{s} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ *bench, o *api.Options) { o.Staging = wrap(o.Staging) })
			answer, text := b.send(t, http.MethodPost, "/api/v1/uploads?filename=a", "hello")
			wantProblem(t, answer, text, http.StatusInsufficientStorage, wire.CodeNoSpace)
			if left := b.staged(t); len(left) > 0 {
				t.Errorf("left in staging: %v, want nothing", left)
			}
		})
	}
}

// forgetful is a Registry that cannot record uploads.
type forgetful struct{ scope.Registry }

func (forgetful) FinishUpload(context.Context, registry.Upload) error { return os.ErrDeadlineExceeded }

func TestUpload_NotRecordedIsNotKept(t *testing.T) {
	b := newBench(t, func(_ *bench, o *api.Options) { o.Registry = forgetful{o.Registry} })
	answer, text := b.send(t, http.MethodPost, "/api/v1/uploads?filename=a", "hello")
	p := wantProblem(t, answer, text, http.StatusInternalServerError, wire.CodeInternal)
	if id := filepath.Base(strings.ReplaceAll(p.Instance, ":", "/")); !strings.Contains(b.log.String(), id) {
		t.Errorf("the log does not have instance %s: %s", p.Instance, b.log)
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v, want nothing", left)
	}
}
