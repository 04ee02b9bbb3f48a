package unpack

import (
	"errors"
	"fmt"
	"strings"
)

// Fault says what kind of thing is wrong.
type Fault string

// The faults. All but FaultInput are the container's own.
const (
	FaultFormat      Fault = "format"      // not a container of a known format
	FaultDamaged     Fault = "damaged"     // truncated, a wrong checksum, broken structure
	FaultName        Fault = "name"        // a name that could escape, or that nothing can be stored under
	FaultDuplicate   Fault = "duplicate"   // two entries of one name, or a file that is a folder, too
	FaultType        Fault = "type"        // a link, a device, a pipe
	FaultUnsupported Fault = "unsupported" // encrypted, or compressed in a way that cannot be undone here
	FaultLimit       Fault = "limit"       // more entries, bytes or memory than allowed
	FaultInput       Fault = "input"       // the container could not be read: the system's fault
)

// Error is what Walk returns for a container that is at fault or that could not be read.
type Error struct {
	Entry  string // the entry's name as the container has it, or ""
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

// ContentFault reports whether the container itself is at fault, so that only its producer can
// help.
func (e *Error) ContentFault() bool { return e.Fault != FaultInput }

// ErrorCode is what is wrong with the container in one word, which failures are grouped by; ""
// where its cause tells more.
func (e *Error) ErrorCode() string {
	if e.Fault == FaultInput {
		return ""
	}
	return "unpack-" + string(e.Fault)
}

func formatFault(detail string) error {
	return &Error{Fault: FaultFormat, Detail: detail}
}

// readFault gives an error met while reading its meaning. The input's own trouble comes first: a
// decoder that was cut off by it reports damage where there is none.
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
