package webserver

import (
	"net/http"
	"strings"
)

// mostPath is how many bytes of a request's path stand in logs and messages. Paths of ours are
// shorter.
const mostPath = 200

// Path is a request's path for logs, events and messages: the sender makes it as long as it likes,
// so what is beyond 200 bytes is cut off.
func Path(r *http.Request) string { return cut(r.URL.Path, mostPath) }

// mostError is how many bytes of an error stand in a log line about a request.
const mostError = 2000

// ErrorText is the text of a request's error for the log: it may quote what the sender sent, so
// what is beyond 2,000 bytes is cut off.
func ErrorText(err error) string { return cut(err.Error(), mostError) }

// cut is a text of at most so many bytes, and dots where there was more.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
