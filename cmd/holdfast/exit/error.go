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

// Usagef is the error of a command line that cannot be understood, made as fmt.Errorf makes it.
func Usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// Code is an exit code of a command that has already said everything that there is to say.
type Code int

// Error implements error.
func (Code) Error() string { return "" }

// Err is the code as the error that a command ends with: nil for OK.
func (c Code) Err() error {
	if c == OK {
		return nil
	}
	return c
}

// UndecidedError says that somebody has to say yes.
type UndecidedError struct {
	Question string
	How      string // what says yes beforehand; "" is --yes
}

// Error says how.
func (e *UndecidedError) Error() string {
	return e.Question + " Not confirmed; nothing was changed. Run it on a terminal to be asked, or add " + cmp.Or(e.How, "--yes")
}

// codedError is an error that always ends a command with the same exit code.
type codedError struct {
	text   string
	code   Code
	advice string
}

// Coded makes an error that ends a command with a code. Advice says what to do about it; "" when the error that wraps it does.
func Coded(code Code, text, advice string) error {
	return &codedError{text: text, code: code, advice: advice}
}

// Error implements error.
func (e *codedError) Error() string { return e.text }

// Parts takes joined errors apart. An error that wraps several in a sentence of its own stays whole.
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

// Cause is an error of the file system without the call and the path, for sentences that name the path themselves.
func Cause(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}
