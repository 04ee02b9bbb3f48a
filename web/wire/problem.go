package wire

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Code says to a program what went wrong. A code's meaning never changes.
type Code string

// The codes, each with the status it comes with.
const (
	CodeBadRequest       Code = "bad-request"                 // 400: not HTTP or JSON as we understand them
	CodeBrokenOff        Code = "broken-off"                  // 400: the body ended before it was whole; nothing was kept
	CodeUnauthenticated  Code = "unauthenticated"             // 401: no token, or one that is not known
	CodeForbidden        Code = "forbidden"                   // 403: the token's role may not do this
	CodeMailRefused      Code = "mail-refused"                // 403: an address that mails may not go to; errors name each
	CodeCrossOrigin      Code = "cross-origin"                // 403: a browser sent it from another site's page
	CodeNotFound         Code = "not-found"                   // 404: no such thing
	CodeMethodNotAllowed Code = "method-not-allowed"          // 405: the address is right, the method is not
	CodeTransition       Code = "transition-not-allowed"      // 409: the state machine does not have this change
	CodeLastAdmin        Code = "last-admin"                  // 409: without this token nobody could make another
	CodeNameTaken        Code = "name-taken"                  // 409: there is or was a token of this name
	CodeConfirm          Code = "confirmation-needed"         // 409: the act has consequences that nobody has confirmed
	CodePastNoReturn     Code = "past-the-point-of-no-return" // 409: the item has announced a version of an object
	CodeIdempotency      Code = "idempotency-conflict"        // 409: the key was used with other arguments
	CodeConflict         Code = "conflict"                    // 409: somebody else's work is in the way
	CodeSealed           Code = "graph-sealed"                // 409: nothing more can be added to the graph
	CodeCycle            Code = "cycle"                       // 409: items of the graph wait for each other
	CodeNoKey            Code = "no-secret-key"               // 409: there is no key to seal a secret with
	CodeOffset           Code = "offset-mismatch"             // 409: the upload stands elsewhere; ask where
	CodeGone             Code = "gone"                        // 410: the object was deleted
	CodeTusVersion       Code = "tus-version"                 // 412: another version of tus
	CodeVersion          Code = "version-mismatch"            // 412: a profile was to be saved over another version than there is
	CodeTooLarge         Code = "too-large"                   // 413: the body is larger than such a request may be
	CodeUnsupportedMedia Code = "unsupported-media-type"      // 415: the body is not of the type that is taken
	CodeInvalid          Code = "invalid-input"               // 422: a value that cannot be; errors name the fields
	CodeGraph            Code = "graph-invalid"               // 422: a requirement or node cannot be; errors name the nodes
	CodeContentInvalid   Code = "content-invalid"             // 422: the payload is wrong; errors name the lines
	CodeDigestMismatch   Code = "digest-mismatch"             // 422: the bytes are not the ones that were announced
	CodeEmptyUpload      Code = "empty-upload"                // 422: no bytes came
	CodeBusy             Code = "busy"                        // 423: another request is bringing bytes of the same upload
	CodeTooManyAttempts  Code = "too-many-attempts"           // 429: to sign in; wait as long as Retry-After says
	CodeMailLimit        Code = "mail-limit"                  // 429: as many addresses were named as may be in a day; wait as long as Retry-After says
	CodeChecksum         Code = "checksum-mismatch"           // 460: the bytes of this request changed on their way
	CodeInternal         Code = "internal"                    // 500: our fault; the log has it under the request's id
	CodeDamaged          Code = "damaged"                     // 500: preserved content cannot be read as it was recorded
	CodeUnavailable      Code = "unavailable"                 // 503: later
	CodeNotAccepting     Code = "not-accepting"               // 503: no submissions are taken for the time being
	CodeJudging          Code = "judging"                     // 503: the payload is still being judged; ask again in a moment
	CodeQuota            Code = "quota-exceeded"              // 507: a quota for uploads is used up; 413: the upload alone exceeds it; the detail says which
	CodeNoSpace          Code = "no-space"                    // 507: the volume is full
)

// problemType is the start of a problem's type; its code follows. It is a name, not an address.
const problemType = "urn:holdfast:problem:"

// Type is the URI of the problem type (RFC 9457, 3.1.1).
func (c Code) Type() string { return problemType + string(c) }

// Problem is an answer that says no (RFC 9457). Detail says what happened, to what, and what to do
// about it. It is also the error that the client returns: errors.Is finds the registry's sentinel
// that it stands for.
type Problem struct {
	Type   string `json:"type" doc:"urn:holdfast:problem: and the code" example:"urn:holdfast:problem:not-found"`
	Title  string `json:"title" doc:"The status in words" example:"Not Found"`
	Status int    `json:"status" doc:"The HTTP status" example:"404"`
	Code   Code   `json:"code" doc:"What went wrong, for programs" example:"not-found"`
	Detail string `json:"detail" doc:"What happened, to what, and what to do" example:"item 01a20657 was not found; check the id"`
	// Instance names the request in the server's log.
	Instance string `json:"instance,omitempty" doc:"Names the request in the server's log"`
	// Faults are the single things that are wrong, all of them unless Total says that there are
	// more.
	Faults []Fault `json:"errors,omitempty" doc:"Every single thing that is wrong"`
	// Total counts the faults; it is above len(Faults) when there are too many to list.
	Total int64 `json:"errors_total,omitempty" doc:"How many errors there are, when not all are listed"`
	// AllowedActs are what may be asked of the item instead, with CodeTransition and
	// CodePastNoReturn.
	AllowedActs []registry.Act `json:"allowed_acts,omitempty" doc:"What may be asked of the item instead"`
	// Consequences are what an act would take along, a sentence each, with CodeConfirm.
	Consequences []string `json:"consequences,omitempty" doc:"What the act would take along; confirm it to go on"`
	// AgreesTo is whose asking the confirmation agrees to, with CodeConfirm of act abandon and of
	// an older record.
	AgreesTo string `json:"agrees_to,omitempty" doc:"abandon, and the acceptance of an older record: the other admin's request that would be agreed to; send it back with the confirmation"`
	// Cycle are items that wait for each other, with CodeCycle.
	Cycle []string `json:"cycle,omitempty" doc:"Ids of items, each waiting for the next, the last for the first"`
	// Accepting says since when and why no submissions are taken, with CodeNotAccepting.
	Accepting *registry.Accepting `json:"accepting,omitempty" doc:"Since when and why no submissions are taken"`
	// Cause is the error of the registry's contract that the problem stands for.
	Cause *Cause `json:"cause,omitempty" doc:"What went wrong, with all that a program needs to go on"`
}

// Fault is one thing that is wrong with a request or with a manifest.
type Fault struct {
	// Location is the field (body.ark, query.limit) or the place in the manifest (line 7, column
	// 3).
	Location string `json:"location,omitempty" doc:"The field (body.ark) or the place in the manifest (line 7, column 3)"`
	Message  string `json:"message" doc:"The fault in one sentence"`
	Line     int    `json:"line,omitempty" doc:"Of a manifest, from 1"`
	Column   int    `json:"column,omitempty" doc:"Of a manifest's row, from 1"`
	Rule     string `json:"rule,omitempty" doc:"The rule that was broken"`
	Severity string `json:"severity,omitempty" doc:"error or warning"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Fix      string `json:"fix,omitempty" doc:"What to do"`
}

// NewProblem returns a problem with its derived fields filled in.
func NewProblem(status int, code Code, detail string, faults ...Fault) *Problem {
	title := http.StatusText(status)
	if status == StatusChecksum {
		title = "Checksum Mismatch"
	}
	return &Problem{Type: code.Type(), Title: title, Status: status, Code: code, Detail: detail, Faults: faults}
}

// Error is the detail with its faults, of which the first few are named.
func (p *Problem) Error() string {
	const shown = 3
	var b strings.Builder
	b.WriteString(p.Detail)
	for i, f := range p.Faults {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", max(p.Total, int64(len(p.Faults)))-shown)
			break
		}
		b.WriteString("; ")
		if f.Location != "" {
			b.WriteString(f.Location + ": ")
		}
		b.WriteString(f.Message)
	}
	return b.String()
}

// Is says that the problem stands for a sentinel of the registry's contract.
func (p *Problem) Is(target error) bool {
	switch p.Code {
	case CodeNotFound:
		return target == registry.ErrNotFound
	case CodeIdempotency:
		return target == registry.ErrIdempotencyConflict
	case CodeSealed:
		return target == registry.ErrSealed
	case CodeLastAdmin:
		return target == registry.ErrLastAdmin
	case CodeNameTaken:
		return target == registry.ErrNameTaken
	case CodeUnavailable, CodeJudging:
		return target == context.DeadlineExceeded || target == registry.ErrUnavailable
	default:
		return false
	}
}

// Unwrap returns the error of the registry's contract that the problem stands for, with all its
// fields, so that callers of a store need not know whether it is a remote one; nil when there is
// none.
func (p *Problem) Unwrap() error { return p.Cause.Err() }
