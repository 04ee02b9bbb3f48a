package wire

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// Cause is the error of the registry's contract behind a problem, with all its fields. With it,
// errors.Is and errors.As give the same answers for a remote store as for a local one.
type Cause struct {
	Kind   string          `json:"kind" doc:"The error of the contract"`
	Fields json.RawMessage `json:"fields,omitempty" doc:"Its fields"`
}

// kind is an error of the contract in JSON.
type kind struct {
	name string
	// find returns the fields of err to send; ok is false if err is not of this kind.
	find func(err error) (fields any, ok bool)
	// make returns the error from its fields.
	make func(fields json.RawMessage) error
}

// kinds lists all errors of the contract. Types come first, because some of them may wrap a
// sentinel.
func kinds() []kind {
	return []kind{
		typed[*registry.NotClaimable]("not-claimable"),
		typed[*registry.TransitionError]("transition"),
		typed[*registry.ConfirmationNeeded]("confirmation-needed"),
		typed[*registry.PastNoReturn]("past-no-return"),
		typed[*registry.NotAccepting]("not-accepting"),
		typed[*registry.LockedError]("locked"),
		typed[*registry.CorrectedError]("corrected"),
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
		typed[*registry.UnknownFunctionError]("unknown-function"),
		typed[*registry.ArgumentError]("argument"),
		typed[*registry.ScheduleBusy]("schedule-busy"),
		typed[*registry.UnknownNamespaceError]("unknown-namespace"),
		typed[*registry.ProcessStateError]("process-state"),
		sentinel("process-exists", registry.ErrProcessExists),
		sentinel("claim-lost", registry.ErrClaimLost),
		sentinel("subscription-lost", registry.ErrSubscriptionLost),
		sentinel("schedule-exists", registry.ErrScheduleExists),
		sentinel("schedule-changed", registry.ErrScheduleChanged),
		sentinel("view-exists", registry.ErrViewExists),
		sentinel("view-changed", registry.ErrViewChanged),
		sentinel("too-many-views", registry.ErrTooManyViews),
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

// CauseOf returns the error of the registry's contract in err's tree, or nil.
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
		c.Fields, _ = json.Marshal(fields) // all fields of the contract's errors can be encoded
		return c
	}
	return nil
}

// Err returns the error of the contract. It returns nil if c is nil or of a kind that this version
// does not know.
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
