package exit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// FixError is an error with advice.
type FixError struct {
	err error
	fix string
}

// Fix adds advice to an error.
func Fix(err error, what string) error { return &FixError{err: err, fix: what} }

// Error returns the error and the advice.
func (e *FixError) Error() string { return e.err.Error() + "; " + e.fix }

// Unwrap returns the error without the advice.
func (e *FixError) Unwrap() error { return e.err }

// usageError is the error of an invalid command line.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap implements errors.Unwrap.
func (e *usageError) Unwrap() error { return e.err }

// Usagef returns the error of an invalid command line. It formats like fmt.Errorf.
func Usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// Misused reports whether err is the error of an invalid command line, without further advice.
func Misused(err error) bool {
	_, whole := err.(*usageError) //nolint:errorlint // one that is wrapped has a sentence of its own
	return whole
}

// UndecidedError is the error of a question that was not answered with yes.
type UndecidedError struct {
	Question string
	How      string // the flag that skips the question; "" is --yes
}

// Error returns the question and how to answer it.
func (e *UndecidedError) Error() string {
	return e.Question + " Not confirmed; nothing was changed. Run it on a terminal to be asked, or add " + cmp.Or(e.How, "--yes")
}

// codedError is an error with a fixed exit code.
type codedError struct {
	text   string
	code   Code
	advice string
}

// Coded returns an error with a fixed exit code. Leave advice empty if the errors that wrap it have
// their own.
func Coded(code Code, text, advice string) error {
	return &codedError{text: text, code: code, advice: advice}
}

// Error implements error.
func (e *codedError) Error() string { return e.text }

// Parts returns the parts of joined errors. An error that wraps several in its own sentence stays
// whole.
func Parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	var lines []string
	for _, e := range joined.Unwrap() {
		all = append(all, Parts(e)...)
		lines = append(lines, e.Error())
	}
	if err.Error() != strings.Join(lines, "\n") {
		return []error{err}
	}
	return all
}

// Cause returns the cause of an fs.PathError, for sentences that name the path themselves. It
// returns other errors unchanged.
func Cause(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// As reports whether err is, or wraps, an error of type T.
func As[T error](err error) bool { return errors.As(err, new(T)) }
