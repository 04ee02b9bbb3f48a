package registry

import (
	"encoding/json"
	"slices"
	"strings"
)

// Details returns an event's data for people, as "name: value", sorted by name. Data that are no
// object are one text, as they are.
func (e Event) Details() []string {
	if len(e.Data) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Data, &fields) != nil {
		return []string{string(e.Data)}
	}
	all := make([]string, 0, len(fields))
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
			all = append(all, strings.ReplaceAll(name, "_", " ")+": "+text)
		}
	}
	slices.Sort(all)
	return all
}

// askedText returns the act that made an item, from the item's spec; "" if raw is no such spec.
func askedText(raw json.RawMessage) string {
	if object, ok := ObjectSpecIn(raw); ok {
		return object.Text()
	}
	if bulk, ok := BulkSpecIn(raw); ok {
		return bulk.Text()
	}
	return ""
}
