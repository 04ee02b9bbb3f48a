package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
		text += ", reason: " + s.Reason
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
		return fmt.Errorf("%w: %q is not one of %v", ErrInvalid, r.Action, ObjectActions())
	case r.Action == DeleteObject:
		return fmt.Errorf("%w: an object is deleted when two people have agreed to it", ErrInvalid)
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
