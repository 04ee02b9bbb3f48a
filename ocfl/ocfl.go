// Package ocfl stores objects on a storage.Store in the Oxford Common File Layout. It writes
// version 1.1, and 1.0 where an object or a storage root of others declares that, and validates both
// (https://ocfl.io/1.1/spec/).
//
// [NewVersion] plans a version. It touches no storage, and the same input gives the same bytes.
// [Root.Commit] writes the plan in an order that makes every crash harmless:
//   - first the content files, each read back and verified
//   - then vN/inventory.json, created only once: from this moment the version exists
//   - last the inventory in the object's root, a copy that can be made again (R2)
//
// Before that moment readers see the version before. Commit may be repeated at any point and
// continues from what is there.
//
// The package does not know the Registry. Its caller decides who may write.
package ocfl

import (
	"errors"
	"fmt"
)

// Names that the specification defines.
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

// Errors for errors.Is.
var (
	// ErrNotFound says that there is no such object, version or file.
	ErrNotFound = errors.New("ocfl: not found")
	// ErrVersionExists says that the version is committed with another inventory. It was left
	// unchanged.
	ErrVersionExists = errors.New("ocfl: version exists")
	// ErrNoPredecessor says that the version before the one to be committed is missing.
	ErrNoPredecessor = errors.New("ocfl: the version before is missing")
	// ErrDamaged says that the beginning of an inventory cannot be read.
	ErrDamaged = errors.New("inventory is damaged")
	// ErrUnchanged says that a planned version would equal the one before.
	ErrUnchanged = errors.New("ocfl: nothing changes")
	// ErrLayout says that a storage root has another layout or version than requested.
	ErrLayout = errors.New("ocfl: storage root differs")
	// ErrIDTaken says that the layout maps the identifier to a folder that holds another object.
	ErrIDTaken = errors.New("ocfl: folder belongs to another identifier")
)

// PathError says why a logical path or an identifier is refused.
type PathError struct {
	Path   string
	Reason string
}

// Error implements error.
func (e *PathError) Error() string { return fmt.Sprintf("ocfl: path %q: %s", e.Path, e.Reason) }

// DigestError says that stored bytes have the wrong digest.
type DigestError struct {
	Key       string // of the file in the store
	Algorithm string
	Want, Got string // hex
	Existing  bool   // the file was there before; otherwise it was just copied from the source, and removed again
}

// Error implements error.
func (e *DigestError) Error() string {
	origin := "copied"
	if e.Existing {
		origin = "existing"
	}
	return fmt.Sprintf("ocfl: %s file %q has %s %s, want %s", origin, e.Key, e.Algorithm, e.Got, e.Want)
}

// InventoryError says that an inventory is invalid.
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
