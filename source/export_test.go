package source

import (
	"net/http"
	"net/url"
)

// ParseURL is what every http and https address passes, for the fuzzing of it.
var ParseURL = parseURL

// ContentRange is what a header Content-Range is read as.
func ContentRange(header string) (start, end, total int64, ok bool) {
	x := &exchange{resp: &http.Response{Header: http.Header{"Content-Range": {header}}}}
	r, ok := x.contentRange()
	return r.start, r.end, r.total, ok
}

// Filename is the name that a header Content-Disposition and an address give a file.
func Filename(disposition string, address *url.URL) string {
	x := &exchange{resp: &http.Response{Header: http.Header{"Content-Disposition": {disposition}}}, asked: address, shown: address}
	return x.filename()
}
