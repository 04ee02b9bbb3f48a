package wire

import (
	"encoding/json"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// ProcessRequest creates a process.
type ProcessRequest struct {
	Namespace  string          `json:"namespace" doc:"Name of the namespace, as /namespaces lists it" example:"curation"`
	ProcessID  string          `json:"process_id" doc:"Your name of the process; unique in the namespace" example:"ark:/99999/fk4x"`
	Collection string          `json:"collection,omitempty" doc:"Mnemonic of the collection whose people may see the process; when empty, only those who see all collections" example:"maps"`
	Args       json.RawMessage `json:"args,omitempty" doc:"Any JSON value for the first step; null when absent"`
	Context    json.RawMessage `json:"context,omitempty" doc:"Any JSON value that the step, and the timers that it sets, can read"`
}

// CallRequest is a call or a repair of a process.
type CallRequest struct {
	Args    json.RawMessage        `json:"args,omitempty" doc:"Any JSON value; null when absent"`
	Context json.RawMessage        `json:"context,omitempty" doc:"Any JSON value that the step, and the timers that it sets, can read"`
	Range   *registry.HistoryRange `json:"range,omitempty" doc:"The history that the step reads; all when absent"`
}

// RetryRequest retries the failed timer of a process.
type RetryRequest struct {
	Context json.RawMessage `json:"context,omitempty" doc:"Replaces the timer's context"`
	Reason  string          `json:"reason,omitempty" doc:"For people; kept with the act"`
}

// ImportedEvent is an event of a process that is imported.
type ImportedEvent struct {
	ID       int64           `json:"id,omitempty" doc:"Number of the event; the numbers must grow. When no event has one, they are counted from 1"`
	At       time.Time       `json:"at,omitzero" doc:"When it happened; when absent, the time of the import"`
	Payload  json.RawMessage `json:"payload" doc:"Any JSON value"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"Any JSON value"`
}

// PutProcessRequest imports a process.
type PutProcessRequest struct {
	Collection string                 `json:"collection,omitempty" doc:"Mnemonic of the collection whose people may see the process"`
	State      json.RawMessage        `json:"state,omitempty" doc:"The program's own state"`
	Metadata   json.RawMessage        `json:"metadata,omitempty" doc:"For people"`
	History    []ImportedEvent        `json:"history,omitempty" doc:"The events, oldest first"`
	Timer      *registry.ProcessTimer `json:"timer,omitempty" doc:"What the process does next by itself"`
}
