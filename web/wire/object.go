package wire

import "time"

// VerifyReport is what reading every byte of an object again came to.
type VerifyReport struct {
	ObjectID string          `json:"object_id"`
	Valid    bool            `json:"valid" doc:"All of it is as the record, or where that could not be read the inventory, says"`
	Against  VerifiedAgainst `json:"against" enum:"record,inventory" doc:"What the bytes in storage were compared with: what the Registry recorded, or, where that could not be read, only the inventory that lies beside them"`
	Version  int             `json:"version" doc:"The newest version that every replica has; 0 when it cannot be told"`
	Recorded int             `json:"recorded_version" doc:"The newest version that the Registry has recorded"`
	Files    int             `json:"files" doc:"Content files that were read, in all replicas"`
	Bytes    int64           `json:"bytes" doc:"And their size"`
	Replicas []VerifyReplica `json:"replicas"`
	Faults   []VerifyFault   `json:"faults"`
	At       time.Time       `json:"at"`
}

// VerifiedAgainst is what the bytes in storage were compared with.
type VerifiedAgainst string

// What bytes are compared with.
const (
	// AgainstRecord is the digests and versions that the Registry has recorded, which nobody
	// changes who can only write to storage.
	AgainstRecord VerifiedAgainst = "record"
	// AgainstInventory is the inventory that lies beside the files, alone: whoever can write the
	// files can write it, too.
	AgainstInventory VerifiedAgainst = "inventory"
)

// VerifyReplica is what it came to in one storage.
type VerifyReplica struct {
	Storage  string          `json:"storage"`
	Valid    bool            `json:"valid"`
	Against  VerifiedAgainst `json:"against" enum:"record,inventory" doc:"As above, of the bytes there"`
	Version  int             `json:"version" doc:"The newest version there; 0 when it cannot be told"`
	Recorded int             `json:"recorded_version" doc:"The newest version that the Registry has recorded there"`
	Files    int             `json:"files" doc:"Content files that were read"`
	Bytes    int64           `json:"bytes" doc:"And their size"`
}

// VerifyFault is one thing that is not as it should be.
type VerifyFault struct {
	Storage string `json:"storage" doc:"Where"`
	Code    string `json:"code" doc:"An OCFL validation code (E.. errors, W.. warnings), or R.. for what the Registry knows otherwise"`
	Path    string `json:"path" doc:"The file, below the object's root"`
	Message string `json:"message"`
}

// ReceiptKey is a public key that receipts are verified with.
type ReceiptKey struct {
	ID          string    `json:"id" doc:"SHA-256 of the key's DER form, as receipts name it"`
	PublicKey   string    `json:"public_key" doc:"In hex"`
	PEM         string    `json:"pem" doc:"As openssl reads it"`
	FirstUsedAt time.Time `json:"first_used_at"`
}

// DeletionRequest asks to delete an object.
type DeletionRequest struct {
	Reason string `json:"reason" doc:"Why; it is kept for ever" minLength:"1" maxLength:"2000"`
}

// CheckObjectRequest asks for a check of all stored files of an object.
type CheckObjectRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"2000" doc:"Why; it is kept with the act"`
}

// RestoreRequest asks for a version of an object as one file.
type RestoreRequest struct {
	Version int    `json:"version,omitempty" minimum:"0" doc:"The newest when not given"`
	Reason  string `json:"reason,omitempty" maxLength:"2000" doc:"Why; it is kept with the restore"`
}
