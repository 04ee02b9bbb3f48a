package wire

import (
	"time"

	"github.com/holdfast/holdfast/registry"
)

// FolderEntry is a file or a folder in a folder of an object's version.
type FolderEntry struct {
	Name string         `json:"name"`
	Path string         `json:"path" doc:"As /files lists it; that of a folder ends in a slash"`
	File *registry.File `json:"file,omitempty" doc:"Left out of folders"`
}

// VerifyReport is the result of reading every byte of an object.
type VerifyReport struct {
	ObjectID string          `json:"object_id"`
	Valid    bool            `json:"valid" doc:"All bytes agree with the record or, where the record could not be read, with the inventory"`
	Against  VerifiedAgainst `json:"against" enum:"record,inventory" doc:"What the stored bytes were compared with: the Registry's record or, where that could not be read, only the inventory beside them"`
	Version  int             `json:"version" doc:"The newest version that every replica has; 0 when unknown"`
	Recorded int             `json:"recorded_version" doc:"The newest version that the Registry has recorded"`
	Files    int             `json:"files" doc:"Content files that were read, in all replicas"`
	Bytes    int64           `json:"bytes" doc:"And their size"`
	Replicas []VerifyReplica `json:"replicas"`
	Faults   []VerifyFault   `json:"faults"`
	At       time.Time       `json:"at"`
}

// VerifiedAgainst names what the stored bytes were compared with.
type VerifiedAgainst string

// Values of VerifiedAgainst.
const (
	// AgainstRecord means the digests and versions that the Registry has recorded. Somebody who can
	// only write to a storage cannot change them.
	AgainstRecord VerifiedAgainst = "record"
	// AgainstInventory means only the inventory beside the files. Whoever can write the files can
	// write the inventory too.
	AgainstInventory VerifiedAgainst = "inventory"
)

// VerifyReplica is the result for one storage.
type VerifyReplica struct {
	Storage  string          `json:"storage"`
	Valid    bool            `json:"valid"`
	Against  VerifiedAgainst `json:"against" enum:"record,inventory" doc:"As above, of the bytes there"`
	Version  int             `json:"version" doc:"The newest version there; 0 when unknown"`
	Recorded int             `json:"recorded_version" doc:"The newest version that the Registry has recorded there"`
	Files    int             `json:"files" doc:"Content files that were read"`
	Bytes    int64           `json:"bytes" doc:"The size of these files in bytes"`
}

// VerifyFault is one fault that a verification found.
type VerifyFault struct {
	Storage string `json:"storage" doc:"The storage"`
	Code    string `json:"code" doc:"An OCFL validation code (E.. errors, W.. warnings), or R.. for differences from the Registry's record"`
	Path    string `json:"path" doc:"The file, below the object's root"`
	Message string `json:"message"`
}

// ReceiptKey is a public key that verifies receipts.
type ReceiptKey struct {
	ID          string    `json:"id" doc:"SHA-256 of the key's DER form, by which receipts name the key"`
	PublicKey   string    `json:"public_key" doc:"In hex"`
	PEM         string    `json:"pem" doc:"In PEM, for openssl"`
	FirstUsedAt time.Time `json:"first_used_at"`
}

// DeletionRequest requests the deletion of an object.
type DeletionRequest struct {
	Reason string `json:"reason" doc:"Why; kept permanently" minLength:"1" maxLength:"2000"`
}

// TermsRequest replaces the terms of an object.
type TermsRequest struct {
	Terms  registry.Terms `json:"terms" doc:"What it leaves out ends: no terms at all end an embargo"`
	Reason string         `json:"reason" doc:"Why; kept permanently" minLength:"1" maxLength:"2000"`
}

// CheckObjectRequest requests fixity checks of all stored files of an object.
type CheckObjectRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"2000" doc:"Why; kept in the history"`
}

// RestoreRequest requests a version of an object as one file.
type RestoreRequest struct {
	Version int    `json:"version,omitempty" minimum:"0" doc:"The newest when absent"`
	Reason  string `json:"reason,omitempty" maxLength:"2000" doc:"Why; kept with the restore"`
}
