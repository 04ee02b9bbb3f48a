package registry

import (
	"context"
	"fmt"
	"time"
)

// Submitting accepts submissions.
type Submitting interface {
	// Submit creates a batch item, whose spec keeps the collection's present profile. A repeated
	// idempotency key returns the first answer, or ErrIdempotencyConflict if the arguments differ.
	// A duplicate (the same uploaded bytes and description for the collection within its window)
	// returns the first batch's id, unless that batch will not complete or Force is set. Required
	// items delay the batch's start.
	//
	// *GraphError: a requirement is impossible. *PriorityError: a submission cannot have this
	// priority. *MailRefusedError and *MailLimitError: its Mails do not allow its addresses.
	// ErrNotFound: a collection, upload or required item is unknown.
	Submit(ctx context.Context, s Submission) (Submitted, error)
	// Accepting reports whether submissions are accepted.
	Accepting(ctx context.Context) (Accepting, error)
}

// Submission is a payload with its metadata and options.
type Submission struct {
	Collection     string `json:"collection,omitempty"`
	Name           string `json:"name,omitempty"`     // for people; default: the payload's file name
	Spec           Spec   `json:"spec"`               // Submit sets Profile, ProfileVersion, Priority and RouteVersion
	Priority       *int   `json:"priority,omitempty"` // not below 0; nil: by the profile and the batch's size
	Actor          string `json:"actor,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"` // "" for none
	Force          bool   `json:"force,omitempty"`           // create a new batch even for a duplicate
	// Requires are items that must complete (or settle) before this one starts.
	Requires []Requirement `json:"requires,omitempty"`
	// Limits are the quotas for an upload that counts for the collection from now on, because it
	// was sent for another collection or for none.
	Limits []UploadLimit `json:"limits,omitempty"`
	// Mails limits the addresses in the submission; nil: no limit. They are counted in the
	// transaction of the submission.
	Mails *MailTerms `json:"mails,omitempty"`
}

// Submitted is the answer to a submission.
type Submitted struct {
	BatchID   string `json:"batch_id"`
	Duplicate bool   `json:"duplicate"` // BatchID is an earlier submission with the same content or key
	// NoMail: the submission names addresses, but there is no mail server, so no mails are sent.
	NoMail bool `json:"no_mail,omitempty"`
}

// Accepting says whether submissions are accepted. By default they are, since the zero time.
type Accepting struct {
	On     bool      `json:"on"`
	Reason string    `json:"reason,omitempty"`
	Actor  string    `json:"actor,omitempty"`
	Since  time.Time `json:"since"`
}

// NotAccepting says that submissions are not accepted at present. Try again later.
type NotAccepting struct{ Accepting }

// Error says why, and since when.
func (e *NotAccepting) Error() string {
	return fmt.Sprintf("submissions are not accepted since %s (%s, by %s); try again later",
		e.Since.Format(time.RFC3339), e.Reason, e.Actor)
}

// Priorities: lower comes first. Each point is worth a minute of waiting, so that in the end age
// outweighs any priority.
const (
	// DefaultPriority is the priority of a batch if neither submission nor profile sets one.
	DefaultPriority = 5
	// LeastPriority is the lowest that an operator can set. Below 0 an item is express: it comes
	// before all others in its stage, lowest number first, and does not age.
	LeastPriority = -1_000_000
	// MostPriority is the highest: nearly two years of waiting.
	MostPriority = 1_000_000
)

// PriorityError says that a priority is out of bounds. Only operators can set one below 0.
type PriorityError struct {
	Given int `json:"given"`
	Least int `json:"least"`
	Most  int `json:"most"`
}

// Error names the bounds.
func (e *PriorityError) Error() string {
	return fmt.Sprintf("priority %d is not between %d and %d", e.Given, e.Least, e.Most)
}

// CheckPriority returns a *[PriorityError] unless a submission or profile may set p; nil sets
// nothing.
func CheckPriority(p *int) error {
	return checkPriority(p, 0)
}

// CheckExpress returns a *[PriorityError] unless an operator may set p; nil sets nothing.
func CheckExpress(p *int) error {
	return checkPriority(p, LeastPriority)
}

func checkPriority(p *int, least int) error {
	if p == nil || *p >= least && *p <= MostPriority {
		return nil
	}
	return &PriorityError{Given: *p, Least: least, Most: MostPriority}
}
