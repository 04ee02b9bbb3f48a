package source_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/source"
)

// TestR05_Resume checks that the rest of a file is taken only from a source that shows that it is
// the same file.
func TestR05_Resume(t *testing.T) {
	t.Parallel()
	const other = "ABCDEFGHIJKLMNOPQRST"
	serveContent := func(etag, text string, at time.Time) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if etag != "" {
				w.Header().Set("ETag", etag)
			}
			http.ServeContent(w, r, "", at, strings.NewReader(text))
		}
	}
	// part answers every request that has a Range with a 206 from the given place, whatever
	// If-Range says.
	part := func(etag, contentRange, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if etag != "" {
				w.Header().Set("ETag", etag)
			}
			if r.Header.Get("Range") == "" {
				_, _ = fmt.Fprint(w, other)
				return
			}
			w.Header().Set("Content-Range", contentRange)
			w.WriteHeader(http.StatusPartialContent)
			_, _ = fmt.Fprint(w, text)
		}
	}
	strong := source.Point{Offset: 12, Validator: `"v1"`}
	digest := source.Point{Offset: 12, Size: 20, Modified: modified, Digest: true}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		from    source.Point
		offset  int64
		want    string
	}{
		{"same strong ETag", serveContent(`"v1"`, content, modified), strong, 12, content[12:]},
		{"changed", serveContent(`"v2"`, other, modified), strong, 0, other},
		{"shorter now", serveContent(`"v2"`, "short", modified), strong, 0, "short"},
		{"shorter now, If-Range ignored", serveContent("", "short", modified), digest, 0, "short"},
		{"If-Range ignored, other ETag", part(`"v2"`, "bytes 12-19/20", other[12:]), strong, 0, other},
		{"ETag not repeated", part("", "bytes 12-19/20", other[12:]), strong, 0, other},
		{"ETag not repeated, but a digest", part("", "bytes 12-19/20", content[12:]), source.Point{Offset: 12, Size: 20, Validator: `"v1"`, Digest: true}, 12, content[12:]},
		{"wrong start", part(`"v1"`, "bytes 10-19/20", other[10:]), strong, 0, other},
		{"nonsense range", part(`"v1"`, "bytes 12-/20", other[12:]), strong, 0, other},
		{"total unknown", part(`"v1"`, "bytes 12-19/*", other[12:]), strong, 0, other},
		{"no range in a 206", part(`"v1"`, "", other[12:]), strong, 0, other},
		{"server without ranges", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, content) }, strong, 0, content},
		{"weak ETag, no digest", serveContent(`W/"v1"`, content, modified), source.Point{Offset: 12, Validator: `W/"v1"`}, 0, content},
		{"no validator, no digest", serveContent("", content, modified), source.Point{Offset: 12, Size: 20, Modified: modified}, 0, content},
		{"no validator, digest, all agrees", serveContent("", content, modified), digest, 12, content[12:]},
		{"weak ETag, digest, all agrees", serveContent(`W/"v1"`, content, modified), digest, 12, content[12:]},
		{"digest, other time", serveContent("", other, modified.Add(time.Hour)), digest, 0, other},
		{"digest, other size", part("", "bytes 12-20/21", other[12:]+"x"), digest, 0, other},
		{"offset without anything", serveContent(`"v1"`, content, modified), source.Point{Offset: 12}, 0, content},
		{"negative offset", serveContent(`"v1"`, content, modified), source.Point{Offset: -1, Validator: `"v1"`}, 0, content},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.handler)
			body, err := newHTTP(t, nil).Open(t.Context(), s.URL+"/f", tt.from)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAll(t, body)
			if err != nil || got != tt.want || body.Offset != tt.offset {
				t.Errorf("offset=%d data=%q err=%v, want %d %q nil", body.Offset, got, err, tt.offset, tt.want)
			}
			if tt.offset > 0 && body.Info.Size != int64(len(content)) {
				t.Errorf("size=%d, want that of the whole file", body.Info.Size)
			}
		})
	}
}

// TestResume_PartOfTheRest checks that a server may send less than was requested and the caller
// continues from there.
func TestResume_PartOfTheRest(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Range", "bytes 12-15/20")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = fmt.Fprint(w, content[12:16])
	})
	body, err := newHTTP(t, nil).Open(t.Context(), s.URL, source.Point{Offset: 12, Validator: `"v1"`})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, body)
	wantFault(t, err, source.FaultShort, false)
	if got != content[12:16] {
		t.Errorf("data=%q, want %q", got, content[12:16])
	}
}

// TestResume_TooMuch checks that a response longer than announced is refused.
func TestResume_TooMuch(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Range", "bytes 12-19/20")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = fmt.Fprint(w, content[12:]+"more")
	})
	body, err := newHTTP(t, nil).Open(t.Context(), s.URL, source.Point{Offset: 12, Validator: `"v1"`})
	if err != nil {
		t.Fatal(err)
	}
	_, err = readAll(t, body)
	wantFault(t, err, source.FaultProtocol, false)
}

// TestResume_AfterBreak checks that a file that breaks off every few bytes is completed, with each
// byte once.
func TestResume_AfterBreak(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		var start int
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start)
		if start > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-19/20", start))
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)-start))
		if start > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = fmt.Fprint(w, content[start:min(start+7, len(content))])
	})
	h := newHTTP(t, nil)
	got, from := "", source.Point{}
	for range 3 {
		body, err := h.Open(t.Context(), s.URL, from)
		if err != nil {
			t.Fatal(err)
		}
		data, err := readAll(t, body)
		got = got[:body.Offset] + data
		if err == nil {
			break
		}
		wantFault(t, err, source.FaultShort, false)
		from = source.Point{Offset: int64(len(got)), Validator: body.Info.Validator}
	}
	if got != content {
		t.Errorf("data=%q, want %q", got, content)
	}
}
