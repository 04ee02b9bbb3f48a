package mail

import (
	"fmt"
	"strings"
	"unicode"
)

// Error says that a message was not accepted by the server.
type Error struct {
	Server string // the mail server
	Code   int    // the SMTP code of its answer; 0: none
	// Permanent says that the server refuses this address or message for good. Otherwise a retry
	// may help.
	Permanent bool
	Err       error

	doing string
	said  string // the text of Err, without the address
}

// mostShown is the largest part of a server's answer that is shown, in bytes.
const mostShown = 500

// Error returns the server's answer, shortened to one line.
func (e *Error) Error() string {
	said := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, e.said)
	if len(said) > mostShown {
		said = strings.ToValidUTF8(said[:mostShown], "") + "..."
	}
	if e.doing == "" {
		return said
	}
	return fmt.Sprintf("%s the mail server %s: %s", e.doing, e.Server, said)
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Remedy says what to do.
func (e *Error) Remedy() string {
	switch {
	case e.Permanent:
		return "correct the address where it was given, or ask the operator of the mail server why it refuses it; then redeliver"
	case unauthorised(e.Code):
		return "correct user and password in HOLDFAST_SMTP_URL"
	}
	return "check the mail server, or correct HOLDFAST_SMTP_URL; the mail is retried automatically"
}

// ErrorCode returns the answer's code for grouping failures, "" if there was none.
func (e *Error) ErrorCode() string {
	if e.Code == 0 {
		return ""
	}
	return fmt.Sprintf("smtp-%d", e.Code)
}

// ErrorHost returns the server for grouping failures.
func (e *Error) ErrorHost() string { return e.Server }
