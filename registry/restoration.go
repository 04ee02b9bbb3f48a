package registry

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Restoring is how a restore ends.
type Restoring interface {
	// RecordRestoration makes what the item has restored, which lies at r.Place whole and right,
	// one that can be fetched for r.Keep from now on, with its preservation events. A repeat
	// changes nothing and returns what was recorded first: of several places the one that counts.
	// ErrNotFound when the item restores nothing, *GoneError when the object was deleted meanwhile,
	// ErrInvalid when [RestorationRecord.Check] refuses it.
	RecordRestoration(ctx context.Context, l Lease, r RestorationRecord) (Restoration, error)
}

// Restoration is a version of an object on its way to where its depositors fetch it, or there: one
// valid bag (RFC 8493) in one tar file. The record stays when the file is removed.
type Restoration struct {
	ObjectID string            `json:"object_id"`
	N        int               `json:"n"` // its number among the object's restores, from 1 on
	Version  int               `json:"version"`
	Status   RestorationStatus `json:"status"`
	Note     string            `json:"note,omitempty"` // what it waits for, or why it failed
	Reason   string            `json:"reason,omitempty"`
	AskedBy  string            `json:"asked_by"`
	AskedAt  time.Time         `json:"asked_at"`
	ItemID   string            `json:"item_id"` // that carries it out
	RestoredParcel
	ReadyAt *time.Time `json:"ready_at,omitempty"`
	// ExpiresAt is when it is removed.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// RestoredParcel is the file that a restore came to.
type RestoredParcel struct {
	Name      string `json:"name,omitempty"`       // of the file, for people
	Place     string `json:"place,omitempty"`      // its key on the staging volume
	SizeBytes int64  `json:"size_bytes,omitempty"` // of the file
	SHA256    string `json:"sha256,omitempty"`     // of the file, hex
	Files     int64  `json:"files,omitempty"`      // of the object that are in it
}

// RestorationStatus says how far a restore is.
type RestorationStatus string

// The statuses of a restore.
const (
	RestoreWaiting RestorationStatus = "waiting" // for its turn, for room, for a thaw, or for whoever holds it
	RestoreRunning RestorationStatus = "running"
	RestoreReady   RestorationStatus = "ready"
	RestoreFailed  RestorationStatus = "failed"   // its item may be sent back
	RestoreGivenUp RestorationStatus = "given-up" // its item was cancelled, aborted, deleted or purged
	RestoreRemoved RestorationStatus = "removed"  // it was ready; its time is over, or its object was deleted
)

// Open says that it may still become ready by itself.
func (s RestorationStatus) Open() bool { return s == RestoreWaiting || s == RestoreRunning }

// RestorationRecord is what becomes visible when a restore is ready.
type RestorationRecord struct {
	RestoredParcel
	Keep   time.Duration `json:"keep"` // for how long
	Events []Premis      `json:"events"`
}

// Check returns ErrInvalid for a record that no file can have, and for a place that is not the
// attempt's own: what lies there can be fetched by whoever reads the object.
func (r RestorationRecord) Check(l Lease) error {
	if r.Place == "" || r.Name == "" || r.SizeBytes <= 0 || len(r.SHA256) != 64 || r.Keep <= 0 {
		return fmt.Errorf("%w: a restored parcel has a name, a place, a size, a SHA-256 and a time to be kept", ErrInvalid)
	}
	if strings.Contains(r.Name, "/") || r.Name == "." || r.Name == ".." || r.Place != RestoredKey(l, r.Name) {
		return fmt.Errorf("%w: what attempt %d of item %s restored as %q lies at %s, not at %q", ErrInvalid, l.N, l.ItemID, r.Name, RestoredKey(l, r.Name), r.Place)
	}
	return nil
}

// EventRestored is the type of the event that tells where a restored parcel lies.
const EventRestored = "restored"

// RestoredPrefix begins the keys of what was restored, on the staging volume.
const RestoredPrefix = "restores/"

// RestoredKey is the key of what an attempt of a restore came to. It is the attempt's own, as all
// its keys are, and lies apart from them: it stays when the item has given back everything else.
func RestoredKey(l Lease, name string) string {
	return RestoredPrefix + l.ItemID + "/" + strconv.FormatInt(l.N, 10) + "/" + name
}

// RestoredBy says which item a key that begins with RestoredPrefix belongs to, "" when it is no
// such key.
func RestoredBy(key string) (itemID string) {
	rest, ok := strings.CutPrefix(key, RestoredPrefix)
	if !ok {
		return ""
	}
	itemID, _, ok = strings.Cut(rest, "/")
	if !ok {
		return ""
	}
	return itemID
}
