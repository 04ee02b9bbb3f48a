package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Requesting creates items about preserved objects.
type Requesting interface {
	// RequestObject creates an item about a preserved object. The item belongs to the object's
	// collection and storage, so that holds on these cover it. Its first event contains the
	// request. While a restore of the same version runs or can be fetched, its item is returned
	// instead. ErrNotFound: the object or version is not recorded. ErrInvalid:
	// [ObjectRequest.Check] refuses it. *GoneError: the object is deleted. ErrIdempotencyConflict
	// as for Submit.
	RequestObject(ctx context.Context, r ObjectRequest) (WorkItem, error)
	// SearchOrphans creates an item of action tidy that searches for orphaned data, and removes it
	// if requested. Its results[ResultOrphans] is an OrphanReport. ErrInvalid: [OrphanSearch.Check]
	// refuses it. ErrIdempotencyConflict as for Submit.
	SearchOrphans(ctx context.Context, r OrphanRequest) (WorkItem, error)
}

// ObjectSpec is the immutable input of an item about a preserved object: of all actions whose route
// has [Route.Object].
type ObjectSpec struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"` // version concerned; the head at the time of the request if none was named
	// File is the content path of the only stored file concerned, such as v1/content/a.txt; empty:
	// the whole object. It is bytes (base64 in JSON), because a name may not be UTF-8.
	File   []byte `json:"file,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Title describes the item for people.
func (s ObjectSpec) Title(a Action) string {
	title := string(a) + " of " + s.ObjectID
	if len(s.File) > 0 {
		title += " " + strings.ToValidUTF8(string(s.File), "\uFFFD")
	}
	return title
}

// Text describes the request for people.
func (s ObjectSpec) Text() string {
	text := fmt.Sprintf("version %d of %s", s.Version, s.ObjectID)
	if len(s.File) > 0 {
		text += ", " + strings.ToValidUTF8(string(s.File), "\uFFFD")
	}
	if s.Reason != "" {
		text = fmt.Sprintf("%v, reason: %s", text, s.Reason)
	}
	return text
}

// ObjectSpecIn decodes the spec of an item, or of its first event; ok is false if it is not about
// an object.
func ObjectSpecIn(raw json.RawMessage) (s ObjectSpec, ok bool) {
	return s, json.Unmarshal(raw, &s) == nil && s.ObjectID != ""
}

// ObjectRequest requests an item about a preserved object.
type ObjectRequest struct {
	Action         Action     `json:"action"` // action whose route has Object
	Spec           ObjectSpec `json:"spec"`   // Version 0: the head
	Actor          string     `json:"actor,omitempty"`
	IdempotencyKey string     `json:"idempotency_key,omitempty"` // "" for none
}

// Check returns ErrInvalid for impossible requests.
func (r ObjectRequest) Check() error {
	switch {
	case !r.Action.AboutObject():
		return fmt.Errorf("%w: %q is not one of %v", ErrInvalid, r.Action, OneOf(ObjectActions()))
	case r.Action == DeleteObject:
		return fmt.Errorf("%w: an object is deleted when two people have agreed to it", ErrInvalid)
	case r.Action == CopyObject:
		return fmt.Errorf("%w: objects are copied when a storage is added or retired", ErrInvalid)
	case r.Action == RestoreObject && len(r.Spec.File) > 0:
		return fmt.Errorf("%w: a whole version is restored, not one file of it", ErrInvalid)
	}
	return nil
}

// AboutObject reports whether items of an action are about preserved objects, with an [ObjectSpec].
func (a Action) AboutObject() bool {
	r, ok := RouteOf(a)
	return ok && r.Object
}

// ObjectActions returns the actions about preserved objects.
func ObjectActions() (out []Action) {
	for _, r := range routes {
		if r.Object {
			out = append(out, r.Action)
		}
	}
	return slices.Clip(out)
}

// Restoring completes restores.
type Restoring interface {
	// RecordRestoration records that what the item has restored can be fetched at r.Place for
	// r.Keep from now on, with its preservation events. The data must be complete and correct. A
	// repeat changes nothing and returns the first record, which says which place counts.
	// ErrNotFound: the item is not a restore. *GoneError: the object was deleted meanwhile.
	// ErrInvalid: [RestorationRecord.Check] refuses it.
	RecordRestoration(ctx context.Context, l Lease, r RestorationRecord) (Restoration, error)
}

// Restoration is a restore of one version: one valid bag (RFC 8493) in one tar file, which
// depositors fetch. The record outlives the file.
type Restoration struct {
	ObjectID string            `json:"object_id"`
	N        int               `json:"n"` // number among the object's restores, from 1
	Version  int               `json:"version"`
	Status   RestorationStatus `json:"status"`
	Note     string            `json:"note,omitempty"` // what it waits for, or why it failed
	Reason   string            `json:"reason,omitempty"`
	AskedBy  string            `json:"asked_by"`
	AskedAt  time.Time         `json:"asked_at"`
	ItemID   string            `json:"item_id"` // that carries it out
	RestoredParcel
	ReadyAt *time.Time `json:"ready_at,omitempty"`
	// ExpiresAt is when the file is removed.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// RestoredParcel is the file of a restore.
type RestoredParcel struct {
	Name      string `json:"name,omitempty"`       // file name, for people
	Place     string `json:"place,omitempty"`      // key on the staging volume
	SizeBytes int64  `json:"size_bytes,omitempty"` // of the file
	SHA256    string `json:"sha256,omitempty"`     // of the file, hex
	Files     int64  `json:"files,omitempty"`      // files of the object in it
}

// RestorationStatus says how far a restore is.
type RestorationStatus string

// The statuses of a restore.
const (
	RestoreWaiting RestorationStatus = "waiting" // for a worker, for room, for a thaw, or for the release of a hold
	RestoreRunning RestorationStatus = "running"
	RestoreReady   RestorationStatus = "ready"
	RestoreFailed  RestorationStatus = "failed"   // its item can be requeued
	RestoreGivenUp RestorationStatus = "given-up" // its item was cancelled, aborted, deleted or purged
	RestoreRemoved RestorationStatus = "removed"  // it was ready, and expired or its object was deleted
)

// Open reports that the restore may still become ready without a person's act.
func (s RestorationStatus) Open() bool { return s == RestoreWaiting || s == RestoreRunning }

// RestorationRecord is the result of a restore.
type RestorationRecord struct {
	RestoredParcel
	Keep   time.Duration `json:"keep"` // how long the file is kept
	Events []Premis      `json:"events"`
}

// Check returns ErrInvalid for an incomplete record, and for a place that is not the attempt's own:
// everybody who can read the object can fetch what lies there.
func (r RestorationRecord) Check(l Lease) error {
	if r.Place == "" || r.Name == "" || r.SizeBytes <= 0 || len(r.SHA256) != 64 || r.Keep <= 0 {
		return fmt.Errorf("%w: a restored parcel has a name, a place, a size, a SHA-256 and a time to be kept", ErrInvalid)
	}
	if strings.Contains(r.Name, "/") || r.Name == "." || r.Name == ".." || r.Place != RestoredKey(l, r.Name) {
		return fmt.Errorf("%w: what attempt %d of item %s restored as %q lies at %s, not at %q", ErrInvalid, l.N, l.ItemID, r.Name, RestoredKey(l, r.Name), r.Place)
	}
	return nil
}

// EventRestored is the type of the event that records where a restored parcel lies.
const EventRestored = "restored"

// RestoredPrefix begins the keys of restored parcels on the staging volume.
const RestoredPrefix = "restores/"

// RestoredKey returns the key of an attempt's restored parcel. It belongs to the attempt, but not
// to its other staging, which is removed earlier.
func RestoredKey(l Lease, name string) string {
	return RestoredPrefix + l.ItemID + "/" + strconv.FormatInt(l.N, 10) + "/" + name
}

// RestoredBy returns the item of a key that begins with RestoredPrefix, or "".
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
