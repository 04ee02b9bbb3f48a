package ezid

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/netfault"
)

// Kind is the kind of an [Error].
type Kind string

// The kinds. None is a content fault.
const (
	Away    Kind = "away"    // EZID does not answer, or asks to retry later; it may pass
	Denied  Kind = "denied"  // 401, 403: the account lacks access
	Exists  Kind = "exists"  // the name to be created exists
	Missing Kind = "missing" // the name does not exist
	Taken   Kind = "taken"   // the name belongs to somebody else
	Refused Kind = "refused" // any other refusal of the request
	Foreign Kind = "foreign" // the answer does not come from EZID
	Broken  Kind = "broken"  // 500: EZID fails for this name
)

// Error is the error type of all calls, apart from errors of the context.
type Error struct {
	Op         string // create, read, modify or log in
	ARK        string // "" for the login
	Host       string
	Kind       Kind
	Status     int           // of HTTP, or 0
	Reason     string        // EZID's own words, or ""
	RetryAfter time.Duration // how long EZID asks to wait, or 0
	Err        error         // the cause, or nil
}

// Error returns the operation, the name and what happened.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at EZID (%s): ", strings.TrimSpace(e.Op+" "+e.ARK), e.Host)
	switch e.Kind {
	case Away:
		b.WriteString("it does not answer")
	case Denied:
		b.WriteString("it denies access")
	case Exists:
		b.WriteString("the name exists already")
	case Missing:
		b.WriteString("the name does not exist")
	case Taken:
		b.WriteString("the name belongs to somebody else")
	case Refused:
		b.WriteString("it refuses")
	case Foreign:
		b.WriteString("the answer does not come from EZID")
	case Broken:
		b.WriteString("it failed")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (%d)", e.Status)
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", e.Reason)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", netfault.Word(e.Err))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Remedy returns what to do so that the item can continue.
func (e *Error) Remedy() string {
	switch e.Kind {
	case Away:
		return fmt.Sprintf("check that EZID (%s) is up and that the workers can reach it", e.Host)
	case Denied:
		return "correct the user and password in HOLDFAST_EZID_URL, or ask EZID to give that user access to the shoulder"
	case Foreign:
		return "correct the address in HOLDFAST_EZID_URL"
	case Broken:
		return "ask the operators of EZID why it fails for this name"
	case Taken:
		return fmt.Sprintf("find out who changed %s at EZID, and restore its element %s", e.ARK, itemElement)
	case Exists, Missing, Refused:
		return "correct what EZID refuses (HOLDFAST_EZID_TARGET, the collection's noid_template)"
	}
	return ""
}

// ErrorCode returns the error in one word. Failures are grouped by it.
func (e *Error) ErrorCode() string { return "ezid-" + string(e.Kind) }

// ErrorHost returns EZID's host.
func (e *Error) ErrorHost() string { return e.Host }

// AsksToWait returns how long EZID asks to wait, or 0.
func (e *Error) AsksToWait() time.Duration { return e.RetryAfter }

// Is reports whether err is an *[Error] of this kind.
func (k Kind) Is(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}
