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
	NoMail      bool   `json:"no_mail,omitempty"` // the service has no mail server, so no mail is sent
}

type errorLine struct {
	MessageType string       `json:"message_type"` // error
	Payload     string       `json:"payload,omitempty"`
	Error       string       `json:"error"`
	ExitCode    int          `json:"exit_code"`
	Faults      []wire.Fault `json:"faults,omitempty"`
	FaultsTotal int64        `json:"faults_total,omitempty"` // if Faults lists only some
}

// stateRefused is the state, in summaries, of a payload that never became a batch.
const stateRefused registry.State = "Refused"
