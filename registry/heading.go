package registry

import "encoding/json"

// Heading is what people know an item by: the title that a batch was given, else its name, else its id. A job goes by the name of
// its payload, since its title may be that of its batch.
func (it WorkItem) Heading() string {
	var spec Spec
	if it.Action == Batch && json.Unmarshal(it.Spec, &spec) == nil && spec.Title != "" {
		return spec.Title
	}
	if it.Name != "" {
		return it.Name
	}
	return it.ID
}
