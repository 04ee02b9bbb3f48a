// Package ocfl keeps objects on a storage.Store in the Oxford Common File Layout: it writes version
// 1.1 and validates 1.0 and 1.1 (https://ocfl.io/1.1/spec/).
//
// [NewVersion] plans a version. It touches nothing, and the same input gives the same bytes.
// [Root.Commit] then writes the plan in an order that makes every crash harmless: content files,
// each read back and verified; then vN/inventory.json, created only once, the moment at which the
// version exists; at last the inventory in the object's root, a copy that can be made again (R2).
// Before that moment the object reads as before. Commit may be repeated at any point, and finishes
// what is there. The package knows nothing of the Registry: who may write is for its caller to
// decide.
package ocfl

import (
	"errors"
	"fmt"
)

// Names that the specification gives.
const (
	inventoryName    = "inventory.json"
	objectPrefix     = "0=ocfl_object_"
	rootPrefix       = "0=ocfl_"
	layoutName       = "ocfl_layout.json"
	extensionsFolder = "extensions"
	logsFolder       = "logs"
	defaultContent   = "content"
	inventoryType    = "https://ocfl.io/%s/spec/#inventory"
)

// Specification versions.
const (
	Spec10 = "1.0"
	Spec11 = "1.1"
)

// Errors that are told apart by errors.Is.
var (
	// ErrNotFound says that there is no such object, version or file.
	ErrNotFound = errors.New("ocfl: not found")
	// ErrVersionExists says that the version is committed already, with another inventory. It was
	// left as it is.
	ErrVersionExists = errors.New("ocfl: version exists")
	// ErrNoPredecessor says that a version was to be committed whose predecessor is not there.
	ErrNoPredecessor = errors.New("ocfl: the version before is missing")
	// ErrUnchanged says that a planned version would be the same as the one before.
	ErrUnchanged = errors.New("ocfl: nothing changes")
	// ErrLayout says that a storage root has another layout, or another version, than was asked
	// for.
	ErrLayout = errors.New("ocfl: storage root differs")
	// ErrIDTaken says that the layout maps the identifier to a folder that holds an object with
	// another one.
	ErrIDTaken = errors.New("ocfl: folder belongs to another identifier")
)

// PathError says why a logical path cannot be part of an object.
type PathError struct {
	Path   string
	Reason string
}

// Error implements error.
func (e *PathError) Error() string { return fmt.Sprintf("ocfl: path %q: %s", e.Path, e.Reason) }

// DigestError says that stored bytes are not the ones that were promised.
type DigestError struct {
	Key       string // where they are
	Algorithm string
	Want, Got string // hex
	Existing  bool   // they had been there before; otherwise they came from the source just now and were removed again
}

// Error implements error.
func (e *DigestError) Error() string {
	whence := "copied"
	if e.Existing {
		whence = "existing"
	}
	return fmt.Sprintf("ocfl: %s file %q has %s %s, want %s", whence, e.Key, e.Algorithm, e.Got, e.Want)
}

// InventoryError says that an inventory cannot be used.
type InventoryError struct {
	Key    string
	Faults []Fault // errors only
}

// Error implements error.
func (e *InventoryError) Error() string {
	if len(e.Faults) == 0 {
		return fmt.Sprintf("ocfl: inventory %q is invalid", e.Key)
	}
	return fmt.Sprintf("ocfl: inventory %q is invalid (%d faults): %s", e.Key, len(e.Faults), e.Faults[0])
}
