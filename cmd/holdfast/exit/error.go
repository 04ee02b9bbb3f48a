package exit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// FixError is an error together with what to do about it.
type FixError struct {
	err error
	fix string
}

// Fix adds to an error what its reader can do.
func Fix(err error, what string) error { return &FixError{err: err, fix: what} }

// Error says what happened and what to do.
func (e *FixError) Error() string { return e.err.Error() + "; " + e.fix }

// Unwrap returns what happened.
func (e *FixError) Unwrap() error { return e.err }

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns what is wrong.
func (e *usageError) Unwrap() error { return e.err }

// Usagef returns the error of a command line that cannot be understood. It formats as fmt.Errorf
// does.
func Usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// UndecidedError is the error of a question that nobody answered with yes.
type UndecidedError struct {
	Question string
	How      string // what says yes beforehand; "" is --yes
}

// Error says how to answer it.
func (e *UndecidedError) Error() string {
	return e.Question + " Not confirmed; nothing was changed. Run it on a terminal to be asked, or add " + cmp.Or(e.How, "--yes")
}

// codedError is an error that always ends a command with the same exit code.
type codedError struct {
	text   string
	code   Code
	advice string
}

// Coded returns an error that always ends a command with this code. Advice says what to do about
// it; leave it empty when the errors that wrap it say so.
func Coded(code Code, text, advice string) error {
	return &codedError{text: text, code: code, advice: advice}
}

// Error implements error.
func (e *codedError) Error() string { return e.text }

// Parts takes joined errors apart. An error that wraps several in a sentence of its own stays
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

// Cause returns the cause of an fs.PathError, without its call and path, for sentences that name
// the path themselves. It returns other errors unchanged.
func Cause(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// As says whether err is, or wraps, an error of type T.
func As[T error](err error) bool { return errors.As(err, new(T)) }
