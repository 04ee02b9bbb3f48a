package source_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/holdfast/holdfast/source"
)

// A Fetcher resumes only if the source proves that the file is still the same.
func ExampleHTTP_Open() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "letter.txt", time.Time{}, strings.NewReader("Dear Sir"))
	}))
	defer server.Close()

	// The guard refuses addresses of this machine unless they are allowed.
	fetcher := source.NewHTTP(source.HTTPOptions{Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	defer fetcher.Close()

	for _, validator := range []string{`"v1"`, `"v0"`} {
		body, err := fetcher.Open(context.Background(), server.URL+"/letter.txt", source.Point{Offset: 5, Validator: validator})
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			panic(err)
		}
		_ = body.Close()
		fmt.Printf("%s of %d bytes, from byte %d: %s\n", body.Info.Filename, body.Info.Size, body.Offset, text)
	}
	// Output:
	// letter.txt of 8 bytes, from byte 5: Sir
	// letter.txt of 8 bytes, from byte 0: Dear Sir
}
