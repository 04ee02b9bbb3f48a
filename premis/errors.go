package premis

import (
	"errors"
	"fmt"
)

// The errors of using a Writer.
var (
	// ErrOrder is returned for an object after an event or an agent, and for an event after an
	// agent: the schema wants all objects, then all events, then all agents.
	ErrOrder = errors.New("entity out of order: objects come first, then events, then agents")
	// ErrNoObject is returned by Close when no object was written: the schema wants one at least.
	ErrNoObject = errors.New("a PREMIS document needs an object")
	// ErrClosed is returned by every write after Close.
	ErrClosed = errors.New("PREMIS writer is closed")
)

// ValueError says which value an entity was refused for. Nothing of the entity was written; the
// Writer goes on.
type ValueError struct {
	Element string // the PREMIS element
	Value   string
	Reason  string
}

// Error implements error.
func (e *ValueError) Error() string {
	return fmt.Sprintf("PREMIS %s %.80q: %s", e.Element, e.Value, e.Reason)
}
