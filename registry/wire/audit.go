package wire

import "time"

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
}

// CheckpointFault is an object whose record is not what a checkpoint says.
type CheckpointFault struct {
	ObjectID string `json:"object_id"`
	Event    int64  `json:"event"`
	Message  string `json:"message"`
}
