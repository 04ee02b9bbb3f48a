package webserver

import (
	"net/http"
	"strings"
)

// mostPath is the largest length of a request's path in logs and messages, in bytes. Holdfast's own
// paths are shorter.
const mostPath = 200

// Path returns a request's path for logs, events and messages, cut to 200 bytes: the client
// controls its length.
func Path(r *http.Request) string { return cut(r.URL.Path, mostPath) }

// mostError is the largest length of an error in a log line about a request, in bytes.
const mostError = 2000

// ErrorText returns an error's text for the log, cut to 2,000 bytes: it may quote the client.
func ErrorText(err error) string { return cut(err.Error(), mostError) }

// cut shortens a text to at most the given bytes, plus dots.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
