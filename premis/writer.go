package premis

import (
	"bufio"
	"fmt"
	"io"
)

const (
	namespace      = "http://www.loc.gov/premis/v3"
	schemaLocation = namespace + " http://www.loc.gov/standards/premis/v3/premis-v3-0.xsd"
)

// stage is how far a document is. It never goes back.
type stage int

const (
	objects stage = iota
	events
	agents
	rights
	closed
)

// Writer writes a PREMIS document as a stream. It is not safe for concurrent use. A refused entity
// (*ValueError, ErrOrder) leaves the document unchanged. After an error of the underlying writer,
// every later call returns that error.
type Writer struct {
	w      *bufio.Writer
	e      emitter
	stage  stage
	begun  bool
	object bool // whether an object was written
	err    error
}

// NewWriter returns a Writer to w. Close completes the document and leaves w open.
func NewWriter(w io.Writer) *Writer { return &Writer{w: bufio.NewWriter(w)} }

// WriteObject adds an object. It returns a *ValueError, ErrOrder, ErrClosed, or an error of the
// underlying writer.
func (w *Writer) WriteObject(o *Object) error {
	if err := w.write(objects, func(e *emitter) { e.object(o) }); err != nil {
		return fmt.Errorf("write PREMIS object: %w", err)
	}
	w.object = true
	return nil
}

// WriteEvent adds an event, after all objects. It returns the same errors as WriteObject.
func (w *Writer) WriteEvent(v *Event) error {
	if err := w.write(events, func(e *emitter) { e.event(v) }); err != nil {
		return fmt.Errorf("write PREMIS event: %w", err)
	}
	return nil
}

// WriteAgent adds an agent, after all objects and events. It returns the same errors as
// WriteObject.
func (w *Writer) WriteAgent(a *Agent) error {
	if err := w.write(agents, func(e *emitter) { e.agent(a) }); err != nil {
		return fmt.Errorf("write PREMIS agent: %w", err)
	}
	return nil
}

// WriteRights adds a rights statement, after all other entities. It returns the same errors as
// WriteObject.
func (w *Writer) WriteRights(r *Rights) error {
	if err := w.write(rights, func(e *emitter) { e.rights(r) }); err != nil {
		return fmt.Errorf("write PREMIS rights: %w", err)
	}
	return nil
}

// Close completes the document and flushes it. Without Close the document is visibly truncated. A
// second call returns ErrClosed. After ErrNoObject the missing object can still be written, unless
// there are events or agents already.
func (w *Writer) Close() error {
	if !w.object && w.err == nil && w.stage != closed {
		return fmt.Errorf("close PREMIS document: %w", ErrNoObject)
	}
	err := w.write(closed, func(e *emitter) { e.raw("</premis>\n") })
	if err == nil {
		err = w.w.Flush()
		w.err = err
	}
	if err != nil {
		return fmt.Errorf("close PREMIS document: %w", err)
	}
	return nil
}

// write renders one entity in memory and then passes it on.
func (w *Writer) write(at stage, render func(*emitter)) error {
	switch {
	case w.err != nil:
		return w.err
	case w.stage == closed:
		return ErrClosed
	case at < w.stage:
		return ErrOrder
	}
	w.e.reset()
	if !w.begun {
		w.e.header()
	}
	render(&w.e)
	if w.e.err != nil {
		return w.e.err
	}
	if _, err := w.w.Write(w.e.b.Bytes()); err != nil {
		w.err = err
		return err
	}
	w.stage, w.begun = at, true
	return nil
}
