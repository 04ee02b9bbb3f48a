package wire

import "github.com/holdfast/holdfast/registry"

// ItemCounts is the number of items that a query selects.
type ItemCounts struct {
	Total  int64                    `json:"total"`
	More   bool                     `json:"more,omitempty" doc:"There may be more items in each state: counting ended at most"`
	States map[registry.State]int64 `json:"states" doc:"By state; a state without items is left out"`
}
