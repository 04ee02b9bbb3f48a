package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Requesting makes items about objects that are preserved already.
type Requesting interface {
	// RequestObject makes an item about a preserved object. It belongs to the object's collection
	// and to the storage volume that its version lies on, so that holds on these cover it; its
	// first event tells what was asked, by whom and why. ErrNotFound for an object or version that
	// is not recorded, ErrInvalid when [ObjectRequest.Check] refuses it, *GoneError for an object
	// that is deleted, ErrIdempotencyConflict as for Submit. While a restore of the same version is
	// under way, or what it came to can be fetched, its item is returned and none is made.
	RequestObject(ctx context.Context, r ObjectRequest) (WorkItem, error)
	// SearchOrphans makes an item of action tidy that looks for what belongs to nobody, and removes
	// it if it is asked to; its results[ResultOrphans] is an OrphanReport. ErrInvalid when
	// [OrphanSearch.Check] refuses it, ErrIdempotencyConflict as for Submit.
	SearchOrphans(ctx context.Context, r OrphanRequest) (WorkItem, error)
}

// ObjectSpec is the immutable input of an item about a preserved object: of every action whose
// route is [Route.Object].
type ObjectSpec struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"` // the one that is meant; the head when it was asked for, where none was named
	// File names the one stored file that the item is about by its content path, such as
	// v1/content/a.txt. It is bytes, base64 in JSON, since a name may be no UTF-8. Empty: the
	// object as a whole.
	File   []byte `json:"file,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Title says for people what an item of an action is about.
func (s ObjectSpec) Title(a Action) string {
	title := string(a) + " of " + s.ObjectID
	if len(s.File) > 0 {
		title += " " + strings.ToValidUTF8(string(s.File), "\uFFFD")
	}
	return title
}

// Text says for people what was asked, and why.
func (s ObjectSpec) Text() string {
	text := fmt.Sprintf("version %d of %s", s.Version, s.ObjectID)
	if len(s.File) > 0 {
		text += ", " + strings.ToValidUTF8(string(s.File), "\uFFFD")
	}
	if s.Reason != "" {
		text += ", reason: " + s.Reason
	}
	return text
}

// ObjectSpecIn reads the spec of an item, or of its first event; ok is false when it is not about
// an object.
func ObjectSpecIn(raw json.RawMessage) (s ObjectSpec, ok bool) {
	return s, json.Unmarshal(raw, &s) == nil && s.ObjectID != ""
}

// ObjectRequest asks for an item about a preserved object.
type ObjectRequest struct {
	Action         Action     `json:"action"` // one whose route is Object
	Spec           ObjectSpec `json:"spec"`   // Version 0: the head
	Actor          string     `json:"actor,omitempty"`
	IdempotencyKey string     `json:"idempotency_key,omitempty"` // "" for none
}

// Check returns ErrInvalid for what cannot be asked for.
func (r ObjectRequest) Check() error {
	switch {
	case !r.Action.AboutObject():
		return fmt.Errorf("%w: %q is not one of %v", ErrInvalid, r.Action, ObjectActions())
	case r.Action == DeleteObject:
		return fmt.Errorf("%w: an object is deleted when two people have agreed to it", ErrInvalid)
	case r.Action == RestoreObject && len(r.Spec.File) > 0:
		return fmt.Errorf("%w: a whole version is restored, not one file of it", ErrInvalid)
	}
	return nil
}

// AboutObject says whether the items of an action are about preserved objects, so that their spec
// is an [ObjectSpec].
func (a Action) AboutObject() bool {
	r, ok := RouteOf(a)
	return ok && r.Object
}

// ObjectActions returns the actions whose items are about preserved objects.
func ObjectActions() (out []Action) {
	for _, r := range routes {
		if r.Object {
			out = append(out, r.Action)
		}
	}
	return slices.Clip(out)
}
