package mail

import (
	"fmt"
	"strings"
	"unicode"
)

// Error says that a message was not handed over.
type Error struct {
	Server string // that was asked
	Code   int    // of its answer; 0: none came, or none that is about mail
	// Permanent: the server refuses this address, or this message, for good. Otherwise asking again
	// may help.
	Permanent bool
	Err       error

	doing string
	said  string // what Err says, without the address
}

// mostShown is how many bytes of a server's answer are told to people.
const mostShown = 500

// Error tells what the server said.
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

// Unwrap returns what lies beneath.
func (e *Error) Unwrap() error { return e.Err }

// Remedy says what to do.
func (e *Error) Remedy() string {
	switch {
	case e.Permanent:
		return "correct the address where it was given, or ask whoever runs the mail server why it refuses it; then have it told again"
	case unauthorised(e.Code):
		return "correct user and password in HOLDFAST_SMTP_URL"
	}
	return "see to the mail server, or correct HOLDFAST_SMTP_URL; it is asked again by itself"
}

// ErrorCode is the answer's code for lists of failures, "" when there was none.
func (e *Error) ErrorCode() string {
	if e.Code == 0 {
		return ""
	}
	return fmt.Sprintf("smtp-%d", e.Code)
}

// ErrorHost is the server for lists of failures.
func (e *Error) ErrorHost() string { return e.Server }
