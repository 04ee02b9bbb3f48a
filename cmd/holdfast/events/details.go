package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// DetailsText returns an event's data as names and values, sorted by name.
func DetailsText(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw)
	}
	parts := make([]string, 0, len(fields))
	for name, value := range fields {
		text := string(value)
		if s := ""; json.Unmarshal(value, &s) == nil {
			text = s
		} else if list := []string(nil); json.Unmarshal(value, &list) == nil {
			text = strings.Join(list, "; ")
		}
		if asked := askedText(value); name == "spec" && asked != "" {
			name, text = "requested", asked
		}
		if text != "" {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+": "+text)
		}
	}
	return strings.Join(slices.Sorted(slices.Values(parts)), ", ")
}

// askedText returns the act that made an item, from the item's spec; "" if raw is no such spec.
func askedText(raw json.RawMessage) string {
	if object, ok := registry.ObjectSpecIn(raw); ok {
		return object.Text()
	}
	return BulkText(raw)
}

// BulkText returns the act of a bulk item, from its spec; "" if raw is no such spec.
func BulkText(raw json.RawMessage) string {
	var b registry.BulkSpec
	if json.Unmarshal(raw, &b) != nil || b.Act == "" {
		return ""
	}
	text := fmt.Sprintf("%s (%s)", b.Title(), terminal.Plural(b.Matched, "item", "items"))
	if b.Reason != "" {
		text += ", reason: " + b.Reason
	}
	return text
}
