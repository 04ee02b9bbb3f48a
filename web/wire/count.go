package wire

import "github.com/holdfast/holdfast/registry"

// ItemCounts is the number of items that a query selects.
type ItemCounts struct {
	Total  int64                    `json:"total"`
	States map[registry.State]int64 `json:"states" doc:"By state; a state without items is left out"`
}
