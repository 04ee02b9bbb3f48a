package forward

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// typePrefix is what the types of events begin with.
const typePrefix = "org.holdfast."

// mostEvent is how many bytes an event may have. From a larger one its own data are left out, so
// that no event is too large for an nsqd with the usual limits, and would stop all that come after
// it.
const mostEvent = 256 << 10

// cloudEvent is an event as it is told (CloudEvents 1.0, JSON format).
type cloudEvent struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject,omitempty"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	// Sequence is the extension of that name: it sorts as text in the order of the feed.
	Sequence string `json:"sequence"`
	Data     told   `json:"data"`
}

// told is an event as GET /events has it, and where the item came to by it.
type told struct {
	registry.Event

	Action  registry.Action `json:"action,omitempty"`
	Stage   registry.Stage  `json:"stage,omitempty"`
	Status  registry.Status `json:"status,omitempty"`
	State   registry.State  `json:"state,omitempty"`
	Omitted bool            `json:"data_omitted,omitempty"`
}

// encode writes an event as it is told by a Registry. The same event is always the same bytes.
func encode(source string, e registry.Event) ([]byte, error) {
	t := told{Event: e}
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
