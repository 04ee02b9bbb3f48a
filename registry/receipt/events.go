package receipt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// EventsFormat is the version of the format of events outside receipts.
const EventsFormat = 1

// EventsMagic begins every text of events of every format.
const EventsMagic = `{"holdfast_events":`

// EventsHeader is the signed first line of a text with events of one object's chain that lie
// outside its receipts, such as fixity checks. After it and its signature come the events, each as
// in a receipt. It says nothing of the time: so the same events and key give the same bytes.
type EventsHeader struct {
	Object    string `json:"object"` // its ARK
	Events    Span   `json:"events"`
	Key       string `json:"key"` // PublicKey.ID of the key that signed; "": nobody did
	PublicKey string `json:"public_key"`
}

func (w *line) eventsHeader(h EventsHeader) {
	w.text(EventsMagic)
	w.number(EventsFormat)
	w.field("object", h.Object)
	w.text(`,"events":`)
	w.span(h.Events)
	w.field("key", h.Key)
	w.field("public_key", h.PublicKey)
	w.text("}\n")
}

// SignEvents fills in the key, and returns the beginning of the text: the signed line and the
// signature's line. Without a key it returns the line alone. The same header and key give the same
// bytes.
func (k *Key) SignEvents(h EventsHeader) []byte {
	return Head(k.sign(&h.Key, &h.PublicKey, func(w *line) { w.eventsHeader(h) }))
}

// ParseEventsHeader decodes a signed line. It does not verify the signature.
func ParseEventsHeader(text []byte) (h EventsHeader, err error) {
	if !bytes.HasPrefix(text, []byte(EventsMagic)) {
		return h, fmt.Errorf("these are no events: a text of events begins with %q", EventsMagic)
	}
	var in struct {
		Format int `json:"holdfast_events"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return h, fmt.Errorf("it cannot be decoded: %w", err)
	}
	if in.Format != EventsFormat {
		return h, fmt.Errorf("its format is %d, but this program knows only format %d; use a newer holdfast", in.Format, EventsFormat)
	}
	var whole struct {
		Format int `json:"holdfast_events"`
		EventsHeader
	}
	if err := decode(text, &whole); err != nil {
		return h, err
	}
	h = whole.EventsHeader
	var w line
	w.eventsHeader(h)
	if !bytes.Equal(w.b, text) {
		return h, errForm
	}
	unsigned := h.Key == "" && h.PublicKey == ""
	return h, check(map[string]bool{
		"events.first":   h.Events.First >= 1,
		"events.count":   h.Events.Count >= 1,
		"events.before":  isHash(h.Events.Before),
		"events.after":   isHash(h.Events.After),
		"key":            unsigned || isHash(h.Key),
		"public_key":     unsigned || isHash(h.PublicKey), // same length
		"object (empty)": h.Object != "",
	})
}

// VerifyEvents is Verify for a text of events. The result's header has the object, the events and
// the key.
func VerifyEvents(r io.Reader, o Options) (*Result, error) {
	v := newVerifier(r, o)
	v.parse = func(text []byte) (Header, error) {
		h, err := ParseEventsHeader(text)
		var none Manifest
		return Header{Object: h.Object, Events: h.Events, Manifest: none.Digest(), Key: h.Key, PublicKey: h.PublicKey}, err
	}
	return v.Result, v.verify()
}
