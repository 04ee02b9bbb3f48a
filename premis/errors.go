package premis

import (
	"errors"
	"fmt"
)

// Errors of a Writer.
var (
	// ErrOrder: an object came after an event or an agent, or an event after an agent. The schema
	// requires all objects, then all events, then all agents.
	ErrOrder = errors.New("entity out of order: objects come first, then events, then agents")
	// ErrNoObject: Close found no object. The schema requires at least one.
	ErrNoObject = errors.New("a PREMIS document needs at least one object")
	// ErrClosed: the Writer is closed.
	ErrClosed = errors.New("PREMIS writer is closed")
)

// ValueError names the value for which an entity was refused. Nothing of the entity was written,
// and the Writer can continue.
type ValueError struct {
	Element string // the PREMIS element
	Value   string
	Reason  string
}

// Error implements error.
func (e *ValueError) Error() string {
	return fmt.Sprintf("PREMIS %s %.80q: %s", e.Element, e.Value, e.Reason)
}
