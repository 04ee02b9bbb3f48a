package ezid

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what an [Error] comes to.
type Kind string

// The kinds. None of them is the deposit's fault.
const (
	Away    Kind = "away"    // EZID does not answer, or asks to come again: it passes by itself
	Denied  Kind = "denied"  // 401, 403: the account
	Exists  Kind = "exists"  // a name to be created is there already
	Missing Kind = "missing" // there is no such name
	Taken   Kind = "taken"   // the name belongs to somebody else
	Refused Kind = "refused" // any other refusal: what was sent is not to EZID's liking
	Foreign Kind = "foreign" // the answer is none of EZID's
	Broken  Kind = "broken"  // 500: EZID fails at this name
)

// Error is what every call returns that comes to no good end.
type Error struct {
	Op         string // create, read or modify
	ARK        string
	Host       string
	Kind       Kind
	Status     int           // of HTTP, or 0
	Reason     string        // EZID's own words, or ""
	RetryAfter time.Duration // how long EZID asks to be left alone, or 0
	Err        error         // the cause, or nil
}

// Error says what was done to what name, and what happened.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s at EZID (%s): ", e.Op, e.ARK, e.Host)
	switch e.Kind {
	case Away:
		b.WriteString("it does not answer")
	case Denied:
		b.WriteString("it denies access")
	case Exists:
		b.WriteString("the name is there already")
	case Missing:
		b.WriteString("there is no such name")
	case Taken:
		b.WriteString("the name belongs to somebody else")
	case Refused:
		b.WriteString("it refuses")
	case Foreign:
		b.WriteString("this is no answer of EZID")
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
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Remedy says what lets the item go on.
func (e *Error) Remedy() string {
	switch e.Kind {
	case Away:
		return fmt.Sprintf("see that EZID (%s) is up and can be reached from the workers", e.Host)
	case Denied:
		return "correct the user and password in HOLDFAST_EZID_URL, or have EZID allow that user this shoulder"
	case Foreign:
		return "correct the address in HOLDFAST_EZID_URL"
	case Broken:
		return "ask those who run EZID why it fails at this name"
	case Taken:
		return fmt.Sprintf("find out who changed %s at EZID and put its element %s right", e.ARK, itemElement)
	case Exists, Missing, Refused:
		return "correct what EZID refuses (HOLDFAST_EZID_TARGET, the collection's noid_template)"
	}
	return ""
}

// ErrorCode is the error in one word, which failures are grouped by.
func (e *Error) ErrorCode() string { return "ezid-" + string(e.Kind) }

// ErrorHost is EZID's host.
func (e *Error) ErrorHost() string { return e.Host }

// AsksToWait is how long EZID asks to be left alone, or 0.
func (e *Error) AsksToWait() time.Duration { return e.RetryAfter }

// Is reports whether err is an *[Error] of that kind.
func (k Kind) Is(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}
