package wire

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// Cause is the error of the registry's contract that a problem stands for, with all its fields, so
// that errors.Is and errors.As say the same of a remote store as of one in this process.
type Cause struct {
	Kind   string          `json:"kind" doc:"Which error of the contract"`
	Fields json.RawMessage `json:"fields,omitempty" doc:"Its fields"`
}

// kind is one error of the contract on the wire.
type kind struct {
	name string
	// find returns what of err is to travel; ok is false when err is not of this kind.
	find func(err error) (fields any, ok bool)
	// make returns the error again.
	make func(fields json.RawMessage) error
}

// kinds are all errors of the contract. The types come first: some of them may wrap a sentinel.
func kinds() []kind {
	return []kind{
		typed[*registry.NotClaimable]("not-claimable"),
		typed[*registry.TransitionError]("transition"),
		typed[*registry.ConfirmationNeeded]("confirmation-needed"),
		typed[*registry.PastNoReturn]("past-no-return"),
		typed[*registry.NotAccepting]("not-accepting"),
		typed[*registry.LockedError]("locked"),
		typed[*registry.IdentifierMismatch]("identifier-mismatch"),
		typed[*registry.OwnerMismatch]("owner-mismatch"),
		typed[*registry.NoObject]("no-object"),
		typed[*registry.NoSpaceError]("no-space"),
		typed[*registry.QuotaError]("quota"),
		typed[*registry.MailRefusedError]("mail-refused"),
		typed[*registry.MailLimitError]("mail-limit"),
		typed[*registry.GoneError]("gone"),
		typed[*registry.GraphError]("graph"),
		typed[*registry.CycleError]("cycle"),
		typed[*registry.QueryError]("query"),
		typed[*registry.PriorityError]("priority"),
		typed[*registry.VersionError]("version"),
		sentinel("claim-lost", registry.ErrClaimLost),
		sentinel("subscription-lost", registry.ErrSubscriptionLost),
		sentinel("idempotency-conflict", registry.ErrIdempotencyConflict),
		sentinel("name-taken", registry.ErrNameTaken),
		sentinel("last-admin", registry.ErrLastAdmin),
		sentinel("taken", registry.ErrTaken),
		sentinel("worker-taken", registry.ErrWorkerTaken),
		sentinel("intent-open", registry.ErrIntentOpen),
		sentinel("jobs-open", registry.ErrJobsOpen),
		sentinel("invalid", registry.ErrInvalid),
		sentinel("empty-query", registry.ErrEmptyQuery),
		sentinel("sealed", registry.ErrSealed),
		sentinel("same-person", registry.ErrSamePerson),
		sentinel("not-asked", registry.ErrNotAsked),
		sentinel("no-acceptance", registry.ErrNoAcceptance),
		sentinel("asked", registry.ErrAsked),
		sentinel("no-callback", registry.ErrNoCallback),
		sentinel("no-mail", registry.ErrNoMail),
		sentinel("not-found", registry.ErrNotFound),
		sentinel("unavailable", registry.ErrUnavailable),
		sentinel("deadline", context.DeadlineExceeded),
	}
}

func sentinel(name string, is error) kind {
	return kind{
		name: name,
		find: func(err error) (any, bool) { return nil, errors.Is(err, is) },
		make: func(json.RawMessage) error { return is },
	}
}

func typed[T error](name string) kind {
	return kind{
		name: name,
		find: func(err error) (any, bool) {
			var e T
			ok := errors.As(err, &e)
			return e, ok
		},
		make: func(fields json.RawMessage) error {
			var e *T
			err := json.Unmarshal(fields, &e)
			if err == nil && e != nil {
				return *e
			}
			return nil
		},
	}
}

// CauseOf returns what of err the registry's contract knows, or nil.
func CauseOf(err error) *Cause {
	for _, k := range kinds() {
		fields, ok := k.find(err)
		if !ok {
			continue
		}
		c := &Cause{Kind: k.name}
		if fields == nil {
			return c
		}
		c.Fields, _ = json.Marshal(fields) // no field of the contract's errors is of a kind that cannot be encoded
		return c
	}
	return nil
}

// Err returns the error of the contract; nil when c is nil or of a kind that this version does not
// know.
func (c *Cause) Err() error {
	if c == nil {
		return nil
	}
	for _, k := range kinds() {
		if k.name == c.Kind {
			return k.make(c.Fields)
		}
	}
	return nil
}
