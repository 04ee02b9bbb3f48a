package wire

import (
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// AuditReport is what following an object's chain of events came to.
type AuditReport struct {
	ObjectID string       `json:"object_id"`
	Valid    bool         `json:"valid" doc:"The chain is whole, and ends as or after the signed receipts say"`
	Events   int64        `json:"events" doc:"In the chain"`
	Receipts int64        `json:"receipts" doc:"Signed receipts that it was compared with"`
	Faults   []AuditFault `json:"faults"`
}

// AuditFault is one thing that is wrong with a chain or a receipt.
type AuditFault struct {
	Event   int64  `json:"event,omitempty" doc:"Its number in the chain; 0: it is about no one event"`
	Message string `json:"message"`
}

// CheckpointReport is what comparing the record with the checkpoints in the storages came to.
type CheckpointReport struct {
	Valid    bool              `json:"valid"`
	Storages []CheckpointAudit `json:"storages"`
}

// CheckpointAudit is what comparing the record with the newest checkpoint in one storage came to.
type CheckpointAudit struct {
	Storage   string            `json:"storage"`
	Name      string            `json:"name,omitempty" doc:"Of the newest checkpoint; none: there is none yet"`
	Valid     bool              `json:"valid"`
	At        time.Time         `json:"at,omitzero" doc:"When it was made"`
	Objects   int64             `json:"objects" doc:"That were compared"`
	Older     int64             `json:"older" doc:"Objects whose record ends before the checkpoint: it was cut off, or a backup from before was restored"`
	Rewritten int64             `json:"rewritten" doc:"Objects with another event than at the checkpoint"`
	Damage    string            `json:"damage,omitempty" doc:"Why the checkpoint itself does not hold"`
	Faults    []CheckpointFault `json:"faults" doc:"The first hundred"`
	Heads     string            `json:"heads,omitempty" doc:"What was signed of its lines: sha256 and hex"`
	Accepted  []AcceptedGap     `json:"accepted,omitempty" doc:"What two people have accepted as lost, in the order of time"`
}

// AcceptedGap is a record that was accepted although it was older than a checkpoint.
type AcceptedGap struct {
	At         time.Time `json:"at"`
	Checkpoint string    `json:"checkpoint" doc:"That the record was older than"`
	AskedBy    string    `json:"asked_by"`
	ApprovedBy string    `json:"approved_by"`
	Reason     string    `json:"reason"`
	Objects    int64     `json:"objects" doc:"Whose last events are lost"`
	Gaps       []Gap     `json:"gaps" doc:"The first hundred"`
}

// Gap is which events of an object's chain are lost.
type Gap struct {
	ObjectID string `json:"object_id"`
	First    int64  `json:"first" doc:"Number of the first event that is lost"`
	Last     int64  `json:"last" doc:"Number of the last one that was signed"`
}

// Text says for people what is lost, a line each.
func (l Lost) Text() []string {
	lines := []string{fmt.Sprintf("older than checkpoint %s in storage %s: objects with lost events: %d, lost events: %d", l.Checkpoint, l.Storage, l.Objects, l.Events)}
	for _, g := range l.Gaps {
		lines = append(lines, fmt.Sprintf("  %s  events %d to %d", g.ObjectID, g.First, g.Last))
	}
	if more := l.Objects - int64(len(l.Gaps)); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more objects", more))
	}
	return lines
}

// AcceptanceRequest asks that the record be accepted although it is older than its checkpoints, or
// agrees.
type AcceptanceRequest struct {
	Reason  string `json:"reason,omitempty" maxLength:"2000" doc:"Asks, and says why; it is kept for ever"`
	Approve bool   `json:"approve,omitempty" doc:"Agrees to what another person has asked for"`
	// AgreesTo is what the approver was shown.
	AgreesTo string `json:"agrees_to,omitempty" maxLength:"200" doc:"With approve: the agrees_to of the confirmation-needed problem that showed what is lost"`
}

// Acceptance is what was decided, and what was written.
type Acceptance struct {
	registry.Acceptance
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"Until when another person can approve it"`
	Lost      []Lost    `json:"lost" doc:"What is lost by the newest checkpoint of each storage that the record is older than"`
	Written   []string  `json:"written" doc:"The checkpoints that were written, each by its storage and name"`
}

// Lost is what a record lacks of what a checkpoint has.
type Lost struct {
	Storage    string `json:"storage"`
	Checkpoint string `json:"checkpoint" doc:"That the record is older than"`
	Objects    int64  `json:"objects" doc:"Whose last events are lost"`
	Events     int64  `json:"events" doc:"That are lost of them, at least: others may have come after the checkpoint"`
	Gaps       []Gap  `json:"gaps" doc:"The first hundred"`
	Digest     string `json:"digest" doc:"Of all gaps: sha256 and hex"`
}

// CheckpointFault is an object whose record is not what a checkpoint says.
type CheckpointFault struct {
	ObjectID string `json:"object_id"`
	Event    int64  `json:"event"`
	Message  string `json:"message"`
	// Rewritten: the event is another one than was signed; otherwise it is missing.
	Rewritten bool `json:"rewritten,omitempty"`
}
