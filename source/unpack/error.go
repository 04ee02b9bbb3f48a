package unpack

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is the kind of an Error.
type Fault string

// The faults. All but FaultInput are faults of the container.
const (
	FaultFormat      Fault = "format"      // not a container of a known format
	FaultDamaged     Fault = "damaged"     // truncated, a wrong checksum, broken structure
	FaultName        Fault = "name"        // a name that is unsafe or cannot be stored
	FaultDuplicate   Fault = "duplicate"   // two entries with one name, or a file that is also a folder
	FaultType        Fault = "type"        // a link, a device, a pipe
	FaultUnsupported Fault = "unsupported" // encrypted, or compressed in an unsupported way
	FaultLimit       Fault = "limit"       // more entries, bytes or memory than allowed
	FaultInput       Fault = "input"       // the container could not be read: a system fault
)

// Error is returned by Walk for a faulty container, or for one that could not be read.
type Error struct {
	Entry  string // the name of the entry as in the container, or ""
	Fault  Fault
	Detail string // what is wrong and what to do about it
	Err    error  // the cause, or nil
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("unpack")
	if e.Entry != "" {
		fmt.Fprintf(&b, " %q", e.Entry)
	}
	b.WriteString(": ")
	b.WriteString(e.Detail)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ContentFault reports whether the container is at fault, so that only its producer can help.
func (e *Error) ContentFault() bool { return e.Fault != FaultInput }

// ErrorCode returns the fault in one word; failures are grouped by it. It returns "" if the cause
// says more.
func (e *Error) ErrorCode() string {
	if e.Fault == FaultInput {
		return ""
	}
	return "unpack-" + string(e.Fault)
}

func formatFault(detail string) error {
	return &Error{Fault: FaultFormat, Detail: detail}
}

// readFault classifies an error that occurred while reading. Errors of the input come first,
// because decoders report them as damage.
func (w *walker) readFault(entry string, err error) error {
	if ended := w.cursor.ended(); ended != nil {
		return fmt.Errorf("unpack %q: %w", entry, ended)
	}
	if w.cursor.err != nil {
		return &Error{Entry: entry, Fault: FaultInput, Detail: "read the container", Err: w.cursor.err}
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	fault, detail := w.decoderFault(err)
	return &Error{Entry: entry, Fault: fault, Detail: detail, Err: err}
}
