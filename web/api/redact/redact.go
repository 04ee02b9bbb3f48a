// Package redact removes secrets from addresses in items and events: more people may see those than
// may fetch from the address.
package redact

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

// Events removes the secrets from the addresses in events. It removes the data of an event that it
// cannot decode.
func Events(events []registry.Event) {
	for i, e := range events {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(e.Data, &fields); err != nil {
			events[i].Data = nil
			continue
		}
		var address string
		if raw, ok := fields["url"]; !ok || json.Unmarshal(raw, &address) != nil {
			continue
		}
		text, err := json.Marshal(source.Redact(address))
		if err == nil {
			fields["url"] = text
			text, err = json.Marshal(fields)
		}
		if err != nil {
			text = nil
		}
		events[i].Data = text
	}
}

// Item removes the secrets from the address in an item's spec.
func Item(it *registry.WorkItem) error {
	if len(it.Spec) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(it.Spec, &fields); err != nil {
		return fmt.Errorf("decode spec of item %s: %w", it.ID, err)
	}
	var address string
	if raw, ok := fields["url"]; ok {
		if err := json.Unmarshal(raw, &address); err != nil {
			return fmt.Errorf("decode address of item %s: %w", it.ID, err)
		}
	}
	shown := source.Redact(address)
	if shown == address {
		return nil
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return fmt.Errorf("encode address of item %s: %w", it.ID, err)
	}
	fields["url"] = text
	if it.Spec, err = json.Marshal(fields); err != nil {
		return fmt.Errorf("encode spec of item %s: %w", it.ID, err)
	}
	return nil
}
