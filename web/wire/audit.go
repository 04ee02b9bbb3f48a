package wire

import (
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// AuditReport is the result of verifying an object's chain of events.
type AuditReport struct {
	ObjectID string       `json:"object_id"`
	Valid    bool         `json:"valid" doc:"The chain is complete and agrees with the signed receipts"`
	Events   int64        `json:"events" doc:"In the chain"`
	Receipts int64        `json:"receipts" doc:"Signed receipts that the chain was compared with"`
	Faults   []AuditFault `json:"faults"`
}

// AuditFault is one fault of a chain or a receipt.
type AuditFault struct {
	Event   int64  `json:"event,omitempty" doc:"Number of the event in the chain; 0: the fault concerns no single event"`
	Message string `json:"message"`
}

// CheckpointReport is the result of comparing the record with the checkpoints in all storages.
type CheckpointReport struct {
	Valid    bool              `json:"valid"`
	Storages []CheckpointAudit `json:"storages"`
}

// CheckpointAudit is the result of comparing the record with the newest checkpoint in one storage.
type CheckpointAudit struct {
	Storage   string            `json:"storage"`
	Name      string            `json:"name,omitempty" doc:"The newest checkpoint; absent if there is none yet"`
	Valid     bool              `json:"valid"`
	At        time.Time         `json:"at,omitzero" doc:"When the checkpoint was made"`
	Objects   int64             `json:"objects" doc:"Objects that were compared"`
	Older     int64             `json:"older" doc:"Objects whose record ends before the checkpoint: it was truncated, or an older backup was restored"`
	Rewritten int64             `json:"rewritten" doc:"Objects with an event that differs from the checkpoint's"`
	Buried    int64             `json:"buried,omitempty" doc:"Deleted objects whose events the record lost, as in a rebuild; their signed tombstone says where they ended"`
	Damage    string            `json:"damage,omitempty" doc:"Why the checkpoint itself is invalid"`
	Faults    []CheckpointFault `json:"faults" doc:"The first hundred"`
	Heads     string            `json:"heads,omitempty" doc:"The signed digest of its lines: SHA-256 in hex"`
	Accepted  []AcceptedGap     `json:"accepted,omitempty" doc:"Losses that two people have accepted, oldest first"`
}

// AcceptedGap is an accepted loss: a record that was older than a checkpoint.
type AcceptedGap struct {
	At         time.Time `json:"at"`
	Checkpoint string    `json:"checkpoint" doc:"The checkpoint that is newer than the record"`
	AskedBy    string    `json:"asked_by"`
	ApprovedBy string    `json:"approved_by"`
	Reason     string    `json:"reason"`
	Objects    int64     `json:"objects" doc:"Whose last events are lost"`
	Gaps       []Gap     `json:"gaps" doc:"The first hundred"`
}

// Gap is a range of lost events of an object's chain.
type Gap struct {
	ObjectID string `json:"object_id"`
	First    int64  `json:"first" doc:"Number of the first event that is lost"`
	Last     int64  `json:"last" doc:"Number of the last one that was signed"`
}

// Text lists the losses for people, one per line.
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

// AcceptanceRequest requests to accept a record that is older than its checkpoints, or approves
// such a request.
type AcceptanceRequest struct {
	Reason  string `json:"reason,omitempty" maxLength:"2000" doc:"Makes the request and says why; kept permanently"`
	Approve bool   `json:"approve,omitempty" doc:"Approves another person's request"`
	// AgreesTo identifies what the approver was shown.
	AgreesTo string `json:"agrees_to,omitempty" maxLength:"200" doc:"With approve: the agrees_to of the confirmation-needed problem that showed what is lost"`
}

// Acceptance is a request or approval, and the checkpoints that were written.
type Acceptance struct {
	registry.Acceptance
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"Until when another person can approve the request"`
	Lost      []Lost    `json:"lost" doc:"The losses, by the newest checkpoint of each storage whose checkpoint is newer than the record"`
	Written   []string  `json:"written" doc:"The checkpoints that were written, each with its storage and name"`
}

// Lost is what the record lacks compared with a checkpoint.
type Lost struct {
	Storage    string `json:"storage"`
	Checkpoint string `json:"checkpoint" doc:"The checkpoint that is newer than the record"`
	Objects    int64  `json:"objects" doc:"Whose last events are lost"`
	Events     int64  `json:"events" doc:"Lost events of these objects, at least: more may have followed the checkpoint"`
	Gaps       []Gap  `json:"gaps" doc:"The first hundred"`
	Digest     string `json:"digest" doc:"Digest of all gaps: SHA-256 in hex"`
}

// CheckpointFault is an object whose record differs from a checkpoint.
type CheckpointFault struct {
	ObjectID string `json:"object_id"`
	Event    int64  `json:"event"`
	Message  string `json:"message"`
	// Rewritten says that the event differs from the signed one; otherwise it is missing.
	Rewritten bool `json:"rewritten,omitempty"`
}
