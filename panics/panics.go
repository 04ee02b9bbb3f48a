// Package panics turns panics into errors in goroutines where they would end the process, because
// net/http does not recover there.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a recovered panic. It is never a content fault.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error returns the value and the stack, for logs.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Guard calls do and returns its error, or an *Error if it panics.
func Guard(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &Error{Value: cause, Stack: debug.Stack()}
		}
	}()
	return do()
}
