package wire

import (
	"encoding/json"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TaskRequest is a call of a function.
type TaskRequest struct {
	Function   string          `json:"function" doc:"Name of the function, as /functions lists it" example:"count-files"`
	Args       json.RawMessage `json:"args,omitempty" doc:"Any JSON value that fits the function's schema; null when absent"`
	Title      string          `json:"title,omitempty" doc:"For people; the function's title when empty"`
	Subject    string          `json:"subject,omitempty" doc:"What it is about: an object's ARK, an item's id, an address"`
	Collection string          `json:"collection,omitempty" doc:"Mnemonic of the collection whose people may see the task; when empty, only those who see all collections" example:"maps"`
	Priority   *int            `json:"priority,omitempty" doc:"Lower first; 0 when absent"`
	NotBefore  *time.Time      `json:"not_before,omitempty" doc:"The task does not start earlier"`
	Cause      string          `json:"cause,omitempty" doc:"The item or event that led to the task"`
	// Requires delays the start of the task.
	Requires []registry.Requirement `json:"requires,omitempty" doc:"Items that must complete (or settle) before the task starts; in a graph also nodes, by key"`
}
