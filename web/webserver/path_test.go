package webserver_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast/holdfast/web/webserver"
)

// TestPath_IsCut checks that long paths are cut in logs and messages, and stay valid text.
func TestPath_IsCut(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/items":                        "/api/v1/items",
		"/" + strings.Repeat("x", 199):         "/" + strings.Repeat("x", 199),
		"/" + strings.Repeat("x", 200):         "/" + strings.Repeat("x", 199) + "...",
		"/" + strings.Repeat("ä", 500_000):     "/" + strings.Repeat("ä", 99) + "...",
		"/" + strings.Repeat("x", 199) + "%0A": "/" + strings.Repeat("x", 199) + "...",
	} {
		if got := webserver.Path(httptest.NewRequest("GET", "http://h.test"+path, nil)); got != want || !utf8.ValidString(got) {
			t.Errorf("a path of %d bytes is %q", len(path), got)
		}
	}
	long := errors.New(strings.Repeat("y", 5000))
	if got := webserver.ErrorText(long); got != strings.Repeat("y", 2000)+"..." {
		t.Errorf("an error of 5,000 bytes has %d", len(got))
	}
}
