package registry

import (
	"fmt"
	"math"
	"time"
)

// DepositReceipt is the part of a version's signed receipt that is kept. The lines of files and events, which it holds the
// digests of, are those of the inventory.
type DepositReceipt struct {
	ObjectID  string `json:"object_id"`
	Version   int    `json:"version"`
	KeyID     string `json:"key_id"` // of the key that signed
	Head      string `json:"head"`   // the signed line
	Signature []byte `json:"signature"`
	// FirstEvent and LastEvent bound the events of the object's chain that it holds. It holds none when the last is before the
	// first.
	FirstEvent int64 `json:"first_event"`
	LastEvent  int64 `json:"last_event"`
}

// ReceiptKey is a key that receipts were signed with.
type ReceiptKey struct {
	ID          string    `json:"id"`         // SHA-256 of the key's DER form
	PublicKey   string    `json:"public_key"` // in hex
	FirstUsedAt time.Time `json:"first_used_at"`
}

// FilePlace names a row of an object's files; the zero value is before all of them.
type FilePlace struct {
	Path    string
	Version int
}

// AfterSeq is the cursor of PremisEvents behind the event with this number in the chain; behind 0 are all that are in it.
func AfterSeq(seq int64) string { return EventCursor(seq, math.MaxInt64, "") }

// EventCursor is the cursor of PremisEvents behind the event with this number, time (microseconds) and id.
func EventCursor(seq, at int64, id string) string { return fmt.Sprintf("%d.%d.%s", seq, at, id) }
