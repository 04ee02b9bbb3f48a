package base

import (
	"context"
	"errors"
	"slices"
	"time"
)

// wrapped returns the errors that err wraps, in their order: one, several that were joined, or
// none. Whatever is asked of an error's whole tree goes down it by this. errors.As stops at the
// first error that has an opinion, and of several that were joined the others may say more.
func wrapped(err error) []error {
	switch u := err.(type) { //nolint:errorlint // one error of the tree
	case interface{ Unwrap() error }:
		if inner := u.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return u.Unwrap()
	}
	return nil
}

// ContentFault tells whether any error in the tree of err says that the deposit is at fault. An
// error that says so because its reading was cancelled is not believed.
func ContentFault(err error) bool {
	if f, ok := err.(interface{ ContentFault() bool }); ok && f.ContentFault() {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return slices.ContainsFunc(wrapped(err), ContentFault)
}

// remedy returns what whoever failed us knows to put it right: the first that the tree of err has
// to say, "" when it is nothing.
func remedy(err error) string {
	if r, ok := err.(interface{ Remedy() string }); ok {
		if say := r.Remedy(); say != "" {
			return say
		}
	}
	for _, e := range wrapped(err) {
		if say := remedy(e); say != "" {
			return say
		}
	}
	return ""
}

// asksToWait returns how long whoever failed us wants to be left alone (Retry-After): the longest
// wish in the tree of err.
func asksToWait(err error) (wait time.Duration) {
	if w, ok := err.(interface{ AsksToWait() time.Duration }); ok {
		wait = w.AsksToWait()
	}
	for _, e := range wrapped(err) {
		wait = max(wait, asksToWait(e))
	}
	return wait
}
