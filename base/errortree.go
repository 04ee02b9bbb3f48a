package base

import (
	"context"
	"errors"
	"slices"
	"time"
)

// wrapped returns the errors that err wraps, in their order: one, several joined ones, or none.
// Every search of an error's whole tree uses it. errors.As stops at the first match, but another
// joined error may say more.
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

// ContentFault reports whether any error in the tree of err blames the deposit. It ignores a blame
// that also wraps a context error: reading was cut short, so the blame proves nothing.
func ContentFault(err error) bool {
	if f, ok := err.(interface{ ContentFault() bool }); ok && f.ContentFault() {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return slices.ContainsFunc(wrapped(err), ContentFault)
}

// remedy returns the first non-empty Remedy in the tree of err: what the failed service suggests to
// do. It returns "" if there is none.
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

// asksToWait returns the longest wait (Retry-After) that an error in the tree of err asks for; 0 if
// none does.
func asksToWait(err error) (wait time.Duration) {
	if w, ok := err.(interface{ AsksToWait() time.Duration }); ok {
		wait = w.AsksToWait()
	}
	for _, e := range wrapped(err) {
		wait = max(wait, asksToWait(e))
	}
	return wait
}
