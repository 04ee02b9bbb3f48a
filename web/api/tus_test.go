package api_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // what tus servers must know
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/periodic/staging"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/wire"
)

// tusHeader is what a request of a depositor has, and more.
func tusHeader(more ...string) []string {
	return append([]string{"Authorization", "Bearer " + tokenText(registry.RoleDepositor), "Tus-Resumable", "1.0.0"}, more...)
}

func named(name string, more ...string) string {
	values := map[string]string{"filename": name}
	for i := 0; i+1 < len(more); i += 2 {
		values[more[i]] = more[i+1]
	}
	return wire.EncodeMetadata(values)
}

// begin begins an upload and returns its address.
func (b *bench) begin(t testing.TB, size int64, metadata string) string {
	t.Helper()
	answer, text := b.send(t, http.MethodPost, "/api/v1/uploads", "", tusHeader("Upload-Length", fmt.Sprint(size), "Upload-Metadata", metadata)...)
	if answer.StatusCode != http.StatusCreated || answer.Header.Get("Tus-Resumable") != "1.0.0" || answer.Header.Get("Upload-Expires") == "" {
		t.Fatalf("begun with %d %v: %s", answer.StatusCode, answer.Header, text)
	}
	return answer.Header.Get("Location")
}

// bring sends bytes to an upload.
func (b *bench) bring(t testing.TB, at string, offset int, body string, more ...string) (reply, string) {
	t.Helper()
	return b.send(t, http.MethodPatch, at, body, tusHeader(append([]string{
		"Upload-Offset", strconv.Itoa(offset), "Content-Type", wire.TusMediaType,
	}, more...)...)...)
}

// wantOffset fails unless an answer says where the upload stands.
func wantOffset(t testing.TB, answer reply, text string, status, offset int) {
	t.Helper()
	if answer.StatusCode != status || answer.Header.Get("Upload-Offset") != strconv.Itoa(offset) || answer.Header.Get("Tus-Resumable") != "1.0.0" {
		t.Fatalf("answer=%d %v, want %d at %d: %s", answer.StatusCode, answer.Header, status, offset, text)
	}
}

// stands asks where an upload stands.
func (b *bench) stands(t testing.TB, at string, offset int) reply {
	t.Helper()
	answer, text := b.send(t, http.MethodHead, at, "", tusHeader()...)
	wantOffset(t, answer, text, http.StatusOK, offset)
	if answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("cached: %v", answer.Header)
	}
	return answer
}

// wantStored fails unless an upload has ended with these bytes.
func (b *bench) wantStored(t testing.TB, at, content string) {
	t.Helper()
	id := at[strings.LastIndex(at, "/")+1:]
	sum := sha256.Sum256([]byte(content))
	u, err := b.store.UploadByID(t.Context(), id)
	if err != nil || u.SizeBytes != int64(len(content)) || u.Digest.Value != hex.EncodeToString(sum[:]) || u.CreatedBy != "the depositor" {
		t.Errorf("recorded %+v (%v), want the %d bytes", u, err, len(content))
	}
	text, err := storage.ReadAll(t.Context(), b.staging, source.UploadKey(id), 1<<30)
	if err != nil || string(text) != content {
		t.Errorf("%d bytes are stored (%v), want the %d that were sent", len(text), err, len(content))
	}
}

func TestTus_InParts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.begin(t, 11, named("näme.txt", "fingerprint", "f", "empty", ""))
	answer := b.stands(t, at, 0)
	if answer.Header.Get("Upload-Length") != "11" || answer.Header.Get("Upload-Metadata") != named("näme.txt", "fingerprint", "f", "empty", "") {
		t.Errorf("asked: %v", answer.Header)
	}
	got, text := b.bring(t, at, 0, "hello ")
	wantOffset(t, got, text, http.StatusNoContent, 6)
	for _, offset := range []int{0, 5, 7, 11} {
		got, text = b.bring(t, at, offset, "x")
		wantProblem(t, got, text, http.StatusConflict, wire.CodeOffset)
	}
	answered, text := b.send(t, http.MethodPost, "/api/v1/batches", `{"upload_id":"`+at[strings.LastIndex(at, "/")+1:]+`"}`, tusHeader()...)
	if p := wantProblem(t, answered, text, http.StatusConflict, wire.CodeConflict); !strings.Contains(p.Detail, "6 of 11") {
		t.Errorf("submitted too early: %s", p.Detail)
	}
	b.stands(t, at, 6)
	got, text = b.send(t, http.MethodPost, at, "world", tusHeader(
		"X-HTTP-Method-Override", "PATCH", "Upload-Offset", "6", "Content-Type", wire.TusMediaType)...)
	wantOffset(t, got, text, http.StatusNoContent, 11)
	b.wantStored(t, at, "hello world")
	if answer := b.stands(t, at, 11); answer.Header.Get("Upload-Length") != "11" || answer.Header.Get("Upload-Expires") != "" {
		t.Errorf("asked after the end: %v", answer.Header)
	}
	got, text = b.bring(t, at, 11, "")
	wantOffset(t, got, text, http.StatusNoContent, 11)
	got, text = b.bring(t, at, 11, "!")
	wantProblem(t, got, text, http.StatusRequestEntityTooLarge, wire.CodeTooLarge)
	answered, text = b.send(t, http.MethodPost, "/api/v1/batches", `{"upload_id":"`+at[strings.LastIndex(at, "/")+1:]+`"}`, tusHeader("Content-Type", "application/json")...)
	if answered.StatusCode != http.StatusAccepted {
		t.Errorf("submitted: %d %s", answered.StatusCode, text)
	}
}

func TestTus_Refused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.begin(t, 5, named("a"))
	const octets = wire.TusMediaType
	for _, c := range []struct {
		name, method, path string
		header             []string
		status             int
		code               wire.Code
	}{
		{"another version", "PATCH", at, []string{"Tus-Resumable", "0.2.2", "Upload-Offset", "0", "Content-Type", octets}, 412, wire.CodeTusVersion},
		{"no version", "PATCH", at, []string{"Tus-Resumable", "", "Upload-Offset", "0", "Content-Type", octets}, 412, wire.CodeTusVersion},
		{"removal by another version", "DELETE", at, []string{"Tus-Resumable", "0.2.2"}, 412, wire.CodeTusVersion},
		{"another type", "PATCH", at, []string{"Upload-Offset", "0", "Content-Type", "application/octet-stream"}, 415, wire.CodeUnsupportedMedia},
		{"no offset", "PATCH", at, []string{"Content-Type", octets}, 400, wire.CodeBadRequest},
		{"an offset below 0", "PATCH", at, []string{"Upload-Offset", "-1", "Content-Type", octets}, 400, wire.CodeBadRequest},
		{"another length", "PATCH", at, []string{"Upload-Offset", "0", "Upload-Length", "6", "Content-Type", octets}, 400, wire.CodeBadRequest},
		{"too many bytes", "PATCH", at, []string{"Upload-Offset", "0", "Content-Type", octets}, 413, wire.CodeTooLarge},
		{"an unknown checksum", "PATCH", at, []string{"Upload-Offset", "0", "Content-Type", octets, "Upload-Checksum", "crc7 AA=="}, 400, wire.CodeBadRequest},
		{"half a checksum", "PATCH", at, []string{"Upload-Offset", "0", "Content-Type", octets, "Upload-Checksum", "sha1 AA=="}, 400, wire.CodeBadRequest},
		{"unknown", "PATCH", "/api/v1/uploads/nothing", []string{"Upload-Offset", "0", "Content-Type", octets}, 404, wire.CodeNotFound},
		{"no method", "POST", at, nil, 405, wire.CodeMethodNotAllowed},
		{"no length", "POST", "/api/v1/uploads", []string{"Upload-Metadata", named("a")}, 400, wire.CodeBadRequest},
		{"two lengths", "POST", "/api/v1/uploads", []string{"Upload-Length", "1", "Upload-Defer-Length", "1", "Upload-Metadata", named("a")}, 400, wire.CodeBadRequest},
		{"a negative length", "POST", "/api/v1/uploads", []string{"Upload-Length", "-1", "Upload-Metadata", named("a")}, 400, wire.CodeBadRequest},
		{"empty", "POST", "/api/v1/uploads", []string{"Upload-Length", "0", "Upload-Metadata", named("a"), "Content-Type", octets}, 422, wire.CodeEmptyUpload},
		{"no name", "POST", "/api/v1/uploads", []string{"Upload-Length", "1"}, 422, wire.CodeInvalid},
		{"a folder in the name", "POST", "/api/v1/uploads", []string{"Upload-Length", "1", "Upload-Metadata", named("../a")}, 422, wire.CodeInvalid},
		{"no base64", "POST", "/api/v1/uploads", []string{"Upload-Length", "1", "Upload-Metadata", "filename !"}, 422, wire.CodeInvalid},
		{"half a digest", "POST", "/api/v1/uploads", []string{"Upload-Length", "1", "Upload-Metadata", named("a", "digest", "sha256:ab")}, 422, wire.CodeInvalid},
		{"another type with the beginning", "POST", "/api/v1/uploads", []string{"Upload-Length", "9", "Upload-Metadata", named("a"), "Content-Type", "text/plain"}, 415, wire.CodeUnsupportedMedia},
	} {
		answer, text := b.send(t, c.method, c.path, "123456", tusHeader(c.header...)...)
		if answer.StatusCode != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, answer.StatusCode, text, c.status)
			continue
		}
		wantProblem(t, answer, text, c.status, c.code)
	}
	answer, text := b.send(t, http.MethodPatch, at, "x", "Authorization", "", "Tus-Resumable", "1.0.0")
	wantProblem(t, answer, text, http.StatusUnauthorized, wire.CodeUnauthenticated)
	b.stands(t, at, 0)
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v", left)
	}
	answer, _ = b.send(t, http.MethodOptions, "/api/v1/uploads", "", "Authorization", "Bearer "+tokenText(registry.RoleDepositor))
	if answer.StatusCode != http.StatusNoContent || answer.Header.Get("Tus-Version") != "1.0.0" || !strings.Contains(answer.Header.Get("Tus-Extension"), "checksum") ||
		!strings.Contains(answer.Header.Get("Tus-Checksum-Algorithm"), "sha1") {
		t.Errorf("options: %d %v", answer.StatusCode, answer.Header)
	}
}

// TestTus_Checksum checks that the bytes of a request count only if they match its checksum.
func TestTus_Checksum(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.begin(t, 10, named("a"))
	sum := func(text string) string {
		s := sha1.Sum([]byte(text)) //nolint:gosec // as above
		return "sha1 " + base64.StdEncoding.EncodeToString(s[:])
	}
	got, text := b.bring(t, at, 0, "hello", "Upload-Checksum", sum("hello"))
	wantOffset(t, got, text, http.StatusNoContent, 5)
	got, text = b.bring(t, at, 5, "wOrld", "Upload-Checksum", sum("world"))
	if p := wantProblem(t, got, text, wire.StatusChecksum, wire.CodeChecksum); p.Title != "Checksum Mismatch" {
		t.Errorf("title %q", p.Title)
	}
	b.stands(t, at, 5)
	got, text = b.bring(t, at, 5, "world", "Upload-Checksum", sum("world"))
	wantOffset(t, got, text, http.StatusNoContent, 10)
	b.wantStored(t, at, "helloworld")
}

func TestTus_BeginningWithBytesAndLengthLater(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer, text := b.send(t, http.MethodPost, "/api/v1/uploads", "hello", tusHeader(
		"Upload-Length", "5", "Upload-Metadata", named("a"), "Content-Type", wire.TusMediaType)...)
	wantOffset(t, answer, text, http.StatusCreated, 5)
	b.wantStored(t, answer.Header.Get("Location"), "hello")

	answer, text = b.send(t, http.MethodPost, "/api/v1/uploads", "he", tusHeader(
		"Upload-Defer-Length", "1", "Upload-Metadata", named("a"), "Content-Type", wire.TusMediaType)...)
	wantOffset(t, answer, text, http.StatusCreated, 2)
	at := answer.Header.Get("Location")
	if answer := b.stands(t, at, 2); answer.Header.Get("Upload-Defer-Length") != "1" || answer.Header.Get("Upload-Length") != "" {
		t.Errorf("asked: %v", answer.Header)
	}
	answer, text = b.bring(t, at, 2, "ll")
	wantOffset(t, answer, text, http.StatusNoContent, 4)
	answer, text = b.bring(t, at, 4, "o", "Upload-Length", "5")
	wantOffset(t, answer, text, http.StatusNoContent, 5)
	b.wantStored(t, at, "hello")
}

// TestTus_AnotherDigest checks that bytes with another digest than announced are refused and
// removed.
func TestTus_AnotherDigest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sum := sha256.Sum256([]byte("hello"))
	for content, status := range map[string]int{"hello": http.StatusNoContent, "hellO": http.StatusUnprocessableEntity} {
		at := b.begin(t, 5, named("a", "digest", "SHA-256:"+hex.EncodeToString(sum[:])))
		got, text := b.bring(t, at, 0, content[:2])
		wantOffset(t, got, text, http.StatusNoContent, 2)
		got, text = b.bring(t, at, 2, content[2:])
		if got.StatusCode != status {
			t.Fatalf("%s: %d %s, want %d", content, got.StatusCode, text, status)
		}
		if status == http.StatusNoContent {
			b.wantStored(t, at, content)
			continue
		}
		wantProblem(t, got, text, status, wire.CodeDigestMismatch)
		if answer, _ := b.send(t, http.MethodHead, at, "", tusHeader()...); answer.StatusCode != http.StatusNotFound || answer.Header.Get("Upload-Offset") != "" {
			t.Errorf("asked for what was refused: %d %v", answer.StatusCode, answer.Header)
		}
	}
	if left := b.staged(t); len(left) != 1 {
		t.Errorf("in staging: %v, want the right one alone", left)
	}
}

// TestTus_BrokenOff checks that a broken connection costs no received byte.
func TestTus_BrokenOff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.begin(t, 10, named("a"))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.server.URL, "http://"))
	must(t, err)
	_, err = fmt.Fprintf(conn, "PATCH %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: %s\r\nContent-Length: 10\r\n\r\nhello",
		at, tokenText(registry.RoleDepositor), wire.TusMediaType)
	must(t, err)
	must(t, conn.(*net.TCPConn).CloseWrite())
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	answer, text := read(t, response)
	must(t, conn.Close())
	wantProblem(t, answer, text, http.StatusBadRequest, wire.CodeBrokenOff)
	b.stands(t, at, 5)
	got, text := b.bring(t, at, 5, "world")
	wantOffset(t, got, text, http.StatusNoContent, 10)
	b.wantStored(t, at, "helloworld")
}

// TestTus_DeadConnection checks that a sender with a dead connection does not block another.
func TestTus_DeadConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.begin(t, 10, named("a"))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.server.URL, "http://"))
	must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "PATCH %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: %s\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
		at, tokenText(registry.RoleDepositor), wire.TusMediaType)
	must(t, err)
	_, err = bufio.NewReader(conn).ReadString('\n') // 100: it has its turn
	must(t, err)
	_, err = io.WriteString(conn, "hello")
	must(t, err)
	// What came of the first may be counted before the second is looked at, which then is told
	// where to go on.
	got, text := b.bring(t, at, 0, "helloworld")
	if got.StatusCode != http.StatusNoContent {
		wantOffset(t, got, text, http.StatusConflict, 5)
		got, text = b.bring(t, at, 5, "world")
	}
	wantOffset(t, got, text, http.StatusNoContent, 10)
	b.wantStored(t, at, "helloworld")
}

// TestTus_TwoAtOnce sends an upload twice at once through two processes. One wins, the other gets
// the offset, and the bytes come from one sender.
func TestTus_TwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 2} {
		b := newBench(t)
		other := b
		if processes == 2 {
			other = b.beside(t, b.staging)
		}
		at := b.begin(t, 5, named("a"))
		var both sync.WaitGroup
		status := make([]int, 2)
		for i, from := range []*bench{b, other} {
			both.Go(func() {
				answer, text := from.bring(t, at, 0, strings.Repeat(strconv.Itoa(i), 5))
				status[i] = answer.StatusCode
				if answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusConflict {
					t.Errorf("%d: %d %s", i, answer.StatusCode, text)
				}
			})
		}
		both.Wait()
		winner := 0
		if status[1] == http.StatusNoContent {
			winner = 1
		}
		if status[winner] != http.StatusNoContent || status[1-winner] == http.StatusNoContent {
			t.Fatalf("answers %v, want one winner", status)
		}
		b.wantStored(t, at, strings.Repeat(strconv.Itoa(winner), 5))
	}
}

// beside is another process of the same Registry.
func (b *bench) beside(t testing.TB, staging storage.Store) *bench {
	t.Helper()
	handler, err := api.New(api.Options{
		Registry: b.store, Staging: staging, Objects: roots(b.objects), Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	other := *b
	other.server = httptest.NewServer(handler)
	t.Cleanup(other.server.Close)
	return &other
}

// TestTus_FromProcessToProcess moves an upload between processes, on both kinds of staging, and
// checks that no bytes of earlier ones remain.
func TestTus_FromProcessToProcess(t *testing.T) {
	stores := map[string]func(t *testing.T, b *bench) storage.Store{
		"directory": func(_ *testing.T, b *bench) storage.Store { return b.staging },
		"S3": func(t *testing.T, _ *bench) storage.Store {
			server := s3test.Start(t)
			s3test.Setenv(t)
			s, err := s3.Open(t.Context(), server.Address("staging"))
			must(t, err)
			return s
		},
	}
	for name, staging := range stores {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			store := staging(t, b)
			content := make([]byte, 30<<20)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
			text := string(content)
			first := b.beside(t, store)
			at := first.begin(t, int64(len(text)), named("a"))
			for from, process := 0, 0; from < len(text); process++ {
				to := min(from+7<<20+process*13, len(text))
				answer, said := b.beside(t, store).bring(t, at, from, text[from:to])
				wantOffset(t, answer, said, http.StatusNoContent, to)
				from = to
			}
			id := at[strings.LastIndex(at, "/")+1:]
			stored, err := storage.ReadAll(t.Context(), store, source.UploadKey(id), 1<<30)
			if err != nil || !bytes.Equal(stored, content) {
				t.Errorf("%d bytes are stored (%v), want those that were sent", len(stored), err)
			}
			sum := sha256.Sum256(content)
			if u, err := b.store.UploadByID(t.Context(), id); err != nil || u.Digest.Value != hex.EncodeToString(sum[:]) {
				t.Errorf("recorded %+v (%v)", u, err)
			}
			if s, ok := store.(*s3.Store); ok {
				for left, err := range s.Leftovers(t.Context(), "") {
					t.Errorf("left behind: %+v (%v)", left, err)
				}
			} else if left := b.scratch(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// unfinishing is a Registry that is gone at the moment an upload is recorded.
type unfinishing struct {
	scope.Registry
	mu   sync.Mutex
	left int
}

func (u *unfinishing) FinishUpload(ctx context.Context, up registry.Upload) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left--; u.left >= 0 {
		return registry.ErrUnavailable
	}
	return u.Registry.FinishUpload(ctx, up)
}

// TestTus_FinishedByWhoAsks checks that an upload is reported complete only once it is stored and
// recorded, and that the next request finishes it.
func TestTus_FinishedByWhoAsks(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *bench, o *api.Options) { o.Registry = &unfinishing{Registry: o.Registry, left: 2} })
	at := b.begin(t, 5, named("a"))
	got, text := b.bring(t, at, 0, "hello")
	wantProblem(t, got, text, http.StatusServiceUnavailable, wire.CodeUnavailable)
	if answer, _ := b.send(t, http.MethodHead, at, "", tusHeader()...); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Upload-Offset") != "" {
		t.Errorf("asked: %d %v", answer.StatusCode, answer.Header)
	}
	b.stands(t, at, 5)
	b.wantStored(t, at, "hello")
}

// TestTus_DamagedInStaging checks that bytes damaged in staging are never acknowledged.
func TestTus_DamagedInStaging(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(b *bench, o *api.Options) { o.Staging = flipping{o.Staging} })
	at := b.begin(t, 5, named("a"))
	got, text := b.bring(t, at, 0, "hello")
	wantProblem(t, got, text, http.StatusInternalServerError, wire.CodeInternal)
	if answer, _ := b.send(t, http.MethodHead, at, "", tusHeader()...); answer.StatusCode != http.StatusNotFound {
		t.Errorf("asked: %d", answer.StatusCode)
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v", left)
	}
}

// TestTus_DamagedBeforeItWasFinished checks the same for bytes that another process stored and could
// not record: what counts is what they were when they arrived.
func TestTus_DamagedBeforeItWasFinished(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *bench, o *api.Options) { o.Registry = &unfinishing{Registry: o.Registry, left: 1} })
	at := b.begin(t, 5, named("a"))
	got, text := b.bring(t, at, 0, "hello")
	wantProblem(t, got, text, http.StatusServiceUnavailable, wire.CodeUnavailable)
	other := b.beside(t, flipping{b.staging})
	for _, want := range []int{http.StatusInternalServerError, http.StatusNotFound} {
		if answer, _ := other.send(t, http.MethodHead, at, "", tusHeader()...); answer.StatusCode != want {
			t.Errorf("asked: %d, want %d", answer.StatusCode, want)
		}
	}
}

// flipping is a store that reads a bit wrong.
type flipping struct{ storage.Store }

func (f flipping) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	text, err := storage.ReadAll(ctx, f.Store, key, 1<<20)
	if err != nil {
		return nil, err
	}
	text[0] ^= 1
	return io.NopCloser(bytes.NewReader(text)), nil
}

func TestTus_GivenUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.begin(t, 10, named("a"))
	got, text := b.bring(t, at, 0, "hello")
	wantOffset(t, got, text, http.StatusNoContent, 5)
	for _, role := range []registry.Role{registry.RoleOperator, registry.RoleViewer} { // not theirs
		if answer, _ := b.send(t, http.MethodDelete, at, "", "Authorization", "Bearer "+tokenText(role)); answer.StatusCode/100 != 4 {
			t.Errorf("removed by the %s: %d", role, answer.StatusCode)
		}
	}
	b.stands(t, at, 5)
	answer, text := b.send(t, http.MethodDelete, at, "", tusHeader()...)
	if answer.StatusCode != http.StatusNoContent || answer.Header.Get("Tus-Resumable") != "1.0.0" {
		t.Fatalf("removed: %d %v %s", answer.StatusCode, answer.Header, text)
	}
	if left := append(b.staged(t), b.scratch(t)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	got, text = b.bring(t, at, 5, "world")
	wantProblem(t, got, text, http.StatusNotFound, wire.CodeNotFound)
}

// TestTus_Expires checks that an abandoned upload is removed after its time, and that a complete
// one is kept.
func TestTus_Expires(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *bench, o *api.Options) { o.UploadKeep = time.Millisecond })
	at := b.begin(t, 10, named("a"))
	kept := b.beside(t, b.staging)
	keptAt := kept.begin(t, 10, named("b"))
	done := kept.upload(t, "c", "done")
	// The first may have expired before its bytes come.
	if got, text := b.bring(t, at, 0, "hello"); got.StatusCode != http.StatusNoContent {
		wantProblem(t, got, text, http.StatusNotFound, wire.CodeNotFound)
	}
	got, text := kept.bring(t, keptAt, 0, "hello")
	wantOffset(t, got, text, http.StatusNoContent, 5)
	sweeper := &staging.Sweeper{Registry: b.store, Staging: b.staging, Log: slog.New(slog.DiscardHandler)}
	for deadline := time.Now().Add(time.Minute); ; {
		must(t, sweeper.Sweep(t.Context()))
		answer, _ := b.send(t, http.MethodHead, at, "", tusHeader()...)
		if answer.StatusCode == http.StatusNotFound {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not expire")
		}
	}
	must(t, sweeper.Sweep(t.Context()))
	for _, name := range b.scratch(t) {
		if strings.Contains(name, at[strings.LastIndex(at, "/")+1:]) {
			t.Errorf("left behind: %s", name)
		}
	}
	kept.stands(t, keptAt, 5)
	got, text = kept.bring(t, keptAt, 5, "world")
	wantOffset(t, got, text, http.StatusNoContent, 10)
	b.wantStored(t, "/"+done.ID, "done")
}

func TestTus_List(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.begin(t, 10, named("a", "fingerprint", "f"))
	got, text := b.bring(t, at, 0, "hello")
	wantOffset(t, got, text, http.StatusNoContent, 5)
	for role, want := range map[registry.Role]int{registry.RoleDepositor: 1, registry.RoleOperator: 0, registry.RoleAdmin: 1} {
		_, text := b.send(t, http.MethodGet, "/api/v1/uploads", "", "Authorization", "Bearer "+tokenText(role))
		var page registry.Page[wire.UploadStatus]
		must(t, json.Unmarshal([]byte(text), &page))
		if len(page.Rows) != want || want > 0 && (page.Rows[0].Offset != 5 || page.Rows[0].Metadata["fingerprint"] != "f" || page.Rows[0].Complete) {
			t.Errorf("%s sees %s, want %d", role, text, want)
		}
	}
	got, text = b.bring(t, at, 5, "world")
	wantOffset(t, got, text, http.StatusNoContent, 10)
	_, text = b.send(t, http.MethodGet, at, "", tusHeader()...)
	var status wire.UploadStatus
	must(t, json.Unmarshal([]byte(text), &status))
	if !status.Complete || status.Digest == nil || status.Offset != 10 {
		t.Errorf("ended: %s", text)
	}
}

// TestTus_NoRoomAndNotAccepting checks that room and acceptance are tested before the first byte,
// and that uploads under way go on while submissions are not accepted.
func TestTus_NoRoomAndNotAccepting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tight := b.beside(t, full{b.staging})
	answer, text := tight.send(t, http.MethodPost, "/api/v1/uploads", "", tusHeader("Upload-Length", "3", "Upload-Metadata", named("a"))...)
	wantProblem(t, answer, text, http.StatusInsufficientStorage, wire.CodeNoSpace)
	at := b.begin(t, 10, named("a"))
	answer, text = tight.bring(t, at, 0, "hello")
	wantProblem(t, answer, text, http.StatusInsufficientStorage, wire.CodeNoSpace)
	answer, text = b.beside(t, filling{b.staging}).bring(t, at, 0, "hello")
	wantProblem(t, answer, text, http.StatusInsufficientStorage, wire.CodeNoSpace)
	must(t, b.store.SetAccepting(t.Context(), registry.Accepting{On: false, Reason: "test", Actor: "admin"}))
	answer, text = b.send(t, http.MethodPost, "/api/v1/uploads", "", tusHeader("Upload-Length", "3", "Upload-Metadata", named("a"))...)
	wantProblem(t, answer, text, http.StatusServiceUnavailable, wire.CodeNotAccepting)
	answer, text = b.bring(t, at, 0, "helloworld")
	wantOffset(t, answer, text, http.StatusNoContent, 10)
	b.wantStored(t, at, "helloworld")
}
