package progress

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/web/client"
)

// A target that waits for its next try says when, which try, and what failed; a settled one is not
// asked about.
func TestNextTry(t *testing.T) {
	asked := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.RawQuery, "parent") {
			_, _ = io.WriteString(w, `{"rows":[{"id":"job","state":"Downloading","note":"refused","next_try":{"at":"2026-11-28T12:05:00Z","attempt":3,"of":5}}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"batch","state":"Processing"}`)
	}))
	defer web.Close()
	c := client.New(web.URL, "token", client.Options{})
	defer c.Close()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	got, cause := nextTry(t.Context(), c, []Target{{ID: "batch"}}, []bool{false}, now)
	if want := "Retry at 12:05:00 UTC, attempt 3 of 5"; got != want || cause != "refused" {
		t.Errorf("says %q, cause %q", got, cause)
	}
	before := asked
	if got, _ := nextTry(t.Context(), c, []Target{{ID: "batch"}}, []bool{true}, now); got != "" || asked != before {
		t.Errorf("a settled target says %q", got)
	}
}
