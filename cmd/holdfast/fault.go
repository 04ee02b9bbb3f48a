package main

import "errors"

// fixError is an error together with what to do about it.
type fixError struct {
	err error
	fix string
}

// fix adds to an error what its reader can do.
func fix(err error, what string) error { return &fixError{err: err, fix: what} }

// Error says what happened and what to do.
func (e *fixError) Error() string { return e.err.Error() + "; " + e.fix }

// Unwrap returns what happened.
func (e *fixError) Unwrap() error { return e.err }

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns what is wrong.
func (e *usageError) Unwrap() error { return e.err }

func usage(text string) error { return &usageError{err: errors.New(text)} }

// outcome is an exit code of a command that has already said everything that there is to say.
type outcome int

// Error implements error.
func (outcome) Error() string { return "" }
