package registry

import (
	"context"
	"fmt"
	"time"
)

// Submitting is how payloads come in.
type Submitting interface {
	// Submit makes a batch item. The collection's profile is frozen into its spec. With an
	// idempotency key that was used before, the first answer is returned again
	// (ErrIdempotencyConflict when the arguments differ); a submission of the same uploaded bytes
	// with the same description to the same collection within the collection's window answers with
	// the first one's id, unless that one did not complete and will not, or Force is set. What it
	// requires by item id keeps it from starting at all, but says nothing of its content: what is
	// here already stays as it is. *GraphError says that a requirement cannot be, *PriorityError
	// that a submission cannot ask for its priority, *MailRefusedError and *MailLimitError that its
	// Mails do not allow the addresses that it names; ErrNotFound names an unknown collection,
	// upload or required item.
	Submit(ctx context.Context, s Submission) (Receipt, error)
	// Accepting says whether submissions are taken.
	Accepting(ctx context.Context) (Accepting, error)
}

// Submission is a payload on its way in.
type Submission struct {
	Collection     string `json:"collection,omitempty"`
	Name           string `json:"name,omitempty"`     // for people; the payload's file name when empty
	Spec           Spec   `json:"spec"`               // Profile, its version, Priority and RouteVersion are filled in by Submit
	Priority       *int   `json:"priority,omitempty"` // not below 0; nil: from the profile and the batch's size
	Actor          string `json:"actor,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"` // "" for none
	Force          bool   `json:"force,omitempty"`           // make a new batch although the same content is here already
	// Requires are items that must have completed (or settled) before this one starts.
	Requires []Requirement `json:"requires,omitempty"`
	// Limits are what uploads may come to when this one, which was meant for another collection or
	// for none, counts among the collection's from now on.
	Limits []UploadLimit `json:"limits,omitempty"`
	// Mails say to which addresses the submission may have mails sent; nil: to any. They are
	// counted in the transaction that takes it in.
	Mails *MailTerms `json:"mails,omitempty"`
}

// Receipt answers a submission.
type Receipt struct {
	BatchID   string `json:"batch_id"`
	Duplicate bool   `json:"duplicate"` // BatchID is an earlier submission of the same content or key
	// NoMail: the submission names addresses, and this Registry has no mail server: nobody is told.
	NoMail bool `json:"no_mail,omitempty"`
}

// Accepting says whether submissions are taken. Where nobody ever said so, they are, since the zero
// time.
type Accepting struct {
	On     bool      `json:"on"`
	Reason string    `json:"reason,omitempty"`
	Actor  string    `json:"actor,omitempty"`
	Since  time.Time `json:"since"`
}

// NotAccepting refuses a submission while none are taken. It is temporary.
type NotAccepting struct{ Accepting }

// Error says why, and since when.
func (e *NotAccepting) Error() string {
	return fmt.Sprintf("submissions are not accepted since %s (%s, by %s); try again later",
		e.Since.Format(time.RFC3339), e.Reason, e.Actor)
}

// Priorities: lower goes first. Every point is worth a minute of waiting, so that age wins over any
// priority in the end.
const (
	// DefaultPriority is that of a batch for which neither its submission nor its collection's
	// profile asks for another.
	DefaultPriority = 5
	// LeastPriority is the lowest an operator can give. Below 0 an item is express: it goes before
	// everything else in its stage, of all collections, the lowest number first, and does not age.
	LeastPriority = -1_000_000
	// MostPriority is the highest: nearly two years of waiting.
	MostPriority = 1_000_000
)

// PriorityError refuses a priority that is out of bounds. Only an operator's command may give one
// below 0.
type PriorityError struct {
	Given int `json:"given"`
	Least int `json:"least"`
	Most  int `json:"most"`
}

// Error names the bounds.
func (e *PriorityError) Error() string {
	return fmt.Sprintf("priority %d is not between %d and %d", e.Given, e.Least, e.Most)
}

// CheckPriority returns a *[PriorityError] unless p is what a submission or a profile may ask for;
// nil asks for nothing.
func CheckPriority(p *int) error {
	return checkPriority(p, 0)
}

// CheckExpress returns a *[PriorityError] unless p is what an operator may ask for; nil asks for
// nothing.
func CheckExpress(p *int) error {
	return checkPriority(p, LeastPriority)
}

func checkPriority(p *int, least int) error {
	if p == nil || *p >= least && *p <= MostPriority {
		return nil
	}
	return &PriorityError{Given: *p, Least: least, Most: MostPriority}
}
