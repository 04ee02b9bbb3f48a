package forward

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// typePrefix starts the type of every event.
const typePrefix = "org.holdfast."

// mostEvent is the largest encoded event, in bytes. A larger event is sent without its data: it
// would exceed the usual limits of nsqd and block all later events.
const mostEvent = 256 << 10

// cloudEvent is an event as receivers get it (CloudEvents 1.0, JSON format).
type cloudEvent struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject,omitempty"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	// Sequence is the CloudEvents extension. Sorted as text, sequences have the order of the feed.
	Sequence string    `json:"sequence"`
	Data     eventData `json:"data"`
}

// eventData is an event as GET /events returns it, plus the state to which it moved the item.
type eventData struct {
	registry.Event

	Action  registry.Action `json:"action,omitempty"`
	Stage   registry.Stage  `json:"stage,omitempty"`
	Status  registry.Status `json:"status,omitempty"`
	State   registry.State  `json:"state,omitempty"`
	Omitted bool            `json:"data_omitted,omitempty"`
}

// encode returns the JSON of an event of the given Registry. Equal events give equal bytes.
func encode(source string, e registry.Event) ([]byte, error) {
	t := eventData{Event: e}
	if p, ok := e.Position(); ok {
		t.Action, t.Stage, t.Status, t.State = p.Action, p.Stage, p.Status, registry.StateOf(p)
	}
	c := cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: source, Type: typePrefix + e.Type, Subject: e.ItemID, Time: e.At,
		ContentType: "application/json", Sequence: fmt.Sprintf("%019d", e.Seq), Data: t,
	}
	text, err := json.Marshal(c)
	if err == nil && len(text) > mostEvent {
		c.Data.Data, c.Data.Omitted = nil, true
		text, err = json.Marshal(c)
	}
	if err != nil {
		return nil, fmt.Errorf("encode event %d: %w", e.Seq, err)
	}
	return text, nil
}
