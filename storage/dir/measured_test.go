package dir_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
)

// TestMeasured checks that requests are measured by operation and outcome, and that bytes are counted.
func TestMeasured(t *testing.T) {
	s, err := dir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	full := false
	s.KeepTo(dir.Room{
		Reserve: func(int64) int64 { return 1 },
		Measured: func(of storage.Space) storage.Space {
			if full {
				of.Used = of.Total
			}
			return of
		},
	})
	w, err := s.Create(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), "a/b", 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := s.Open(t.Context(), "none", 0, -1); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	full = true
	if w, err = s.Create(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "hello"); !errors.Is(err, storage.ErrNoSpace) {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, series := range []string{
		`request_duration_seconds_count{operation="Create",outcome="done",store="folder"}`,
		`request_duration_seconds_count{operation="Write",outcome="done",store="folder"}`,
		`request_duration_seconds_count{operation="Write",outcome="failed",store="folder"}`,
		`request_duration_seconds_count{operation="Commit",outcome="done",store="folder"}`,
		`request_duration_seconds_count{operation="Open",outcome="done",store="folder"}`,
		`request_duration_seconds_count{operation="Open",outcome="refused",store="folder"}`,
		`bytes_total{direction="written",store="folder"}`, `bytes_total{direction="read",store="folder"}`,
	} {
		if text := answer.Body.String(); !strings.Contains(text, "\nholdfast_storage_"+series) || strings.Contains(text, "\nholdfast_storage_"+series+" 0\n") {
			t.Errorf("nothing is counted as %s", series)
		}
	}
}
