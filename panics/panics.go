// Package panics turns a panic into an error where it would end the whole process: in goroutines
// that net/http does not guard.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is what a function panicked with. It is never the fault of the content that was worked on.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error has the value and the stack, for logs.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Guard calls do, and returns its error; an *Error when it panics.
func Guard(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &Error{Value: cause, Stack: debug.Stack()}
		}
	}()
	return do()
}
