package deposit

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

type submittedLine struct {
	MessageType string `json:"message_type"` // submitted
	Payload     string `json:"payload"`
	BatchID     string `json:"batch_id"`
	Duplicate   bool   `json:"duplicate"`
	NoMail      bool   `json:"no_mail,omitempty"` // nobody is told by mail: the service has no mail server
}

type errorLine struct {
	MessageType string       `json:"message_type"` // error
	Payload     string       `json:"payload,omitempty"`
	Error       string       `json:"error"`
	ExitCode    int          `json:"exit_code"`
	Faults      []wire.Fault `json:"faults,omitempty"`
	FaultsTotal int64        `json:"faults_total,omitempty"` // when not all are listed
}

// stateRefused stands in summaries of what was not accepted, and so never was a batch.
const stateRefused registry.State = "Refused"
