package wire

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Code tells programs what went wrong. A code's meaning never changes.
type Code string

// The codes, each with its HTTP status.
const (
	CodeBadRequest       Code = "bad-request"                 // 400: the request is malformed HTTP or JSON
	CodeBrokenOff        Code = "broken-off"                  // 400: the body ended early; nothing was stored
	CodeUnauthenticated  Code = "unauthenticated"             // 401: no token, or an unknown one
	CodeForbidden        Code = "forbidden"                   // 403: the token's role does not allow this
	CodeEmbargo          Code = "embargoed"                   // 403: the object's files are under embargo
	CodeMailRefused      Code = "mail-refused"                // 403: mail to an address is not allowed; errors name each
	CodeCrossOrigin      Code = "cross-origin"                // 403: a browser sent it from another site's page
	CodeNotFound         Code = "not-found"                   // 404: no such thing
	CodeMethodNotAllowed Code = "method-not-allowed"          // 405: the address is right, the method is not
	CodeTransition       Code = "transition-not-allowed"      // 409: the item's state does not allow this act
	CodeLastAdmin        Code = "last-admin"                  // 409: without this token nobody could create another
	CodeNameTaken        Code = "name-taken"                  // 409: a token has or had this name
	CodeConfirm          Code = "confirmation-needed"         // 409: the act has unconfirmed consequences
	CodePastNoReturn     Code = "past-the-point-of-no-return" // 409: the item has announced a version of an object
	CodeIdempotency      Code = "idempotency-conflict"        // 409: the key was used with other arguments
	CodeConflict         Code = "conflict"                    // 409: the present state of the resource does not allow this
	CodeClaimLost        Code = "claim-lost"                  // 409: the attempt is over; its work must stop
	CodeSealed           Code = "graph-sealed"                // 409: the graph is sealed; nothing can be added
	CodeCycle            Code = "cycle"                       // 409: items of the graph wait for each other
	CodeNoKey            Code = "no-secret-key"               // 409: no key to encrypt a secret with
	CodeOffset           Code = "offset-mismatch"             // 409: the upload has another offset; ask for it
	CodeGone             Code = "gone"                        // 410: the object was deleted
	CodeTusVersion       Code = "tus-version"                 // 412: another version of tus
	CodeVersion          Code = "version-mismatch"            // 412: the profile has a newer version than the one to replace
	CodeTooLarge         Code = "too-large"                   // 413: the body is larger than allowed
	CodeUnsupportedMedia Code = "unsupported-media-type"      // 415: the body has another media type than required
	CodeInvalid          Code = "invalid-input"               // 422: a value is invalid; errors name the fields
	CodeGraph            Code = "graph-invalid"               // 422: a requirement or node is invalid; errors name the nodes
	CodeContentInvalid   Code = "content-invalid"             // 422: the payload is wrong; errors name the lines
	CodeDigestMismatch   Code = "digest-mismatch"             // 422: the bytes do not have the given digest
	CodeEmptyUpload      Code = "empty-upload"                // 422: the upload is empty
	CodeBusy             Code = "busy"                        // 423: another request is writing to the same upload
	CodeTooManyAttempts  Code = "too-many-attempts"           // 429: too many attempts to sign in; wait for Retry-After
	CodeMailLimit        Code = "mail-limit"                  // 429: the daily limit of mail addresses is reached; wait for Retry-After
	CodeChecksum         Code = "checksum-mismatch"           // 460: the bytes of this request changed in transit
	CodeInternal         Code = "internal"                    // 500: a fault of Holdfast; the log has it under the request's id
	CodeDamaged          Code = "damaged"                     // 500: preserved content differs from its record or cannot be read
	CodeUnavailable      Code = "unavailable"                 // 503: try again later
	CodeProtocol         Code = "protocol-version"            // 503: the Registry does not serve workers of this version; upgrade it, or them
	CodeNotAccepting     Code = "not-accepting"               // 503: submissions are not accepted at present
	CodeJudging          Code = "judging"                     // 503: the payload is still being checked; try again soon
	CodeQuota            Code = "quota-exceeded"              // 507: a quota for uploads is used up; 413: the upload alone exceeds it; the detail says which
	CodeNoSpace          Code = "no-space"                    // 507: the volume is full
)

// problemType precedes the code in a problem's type. It is a name, not an address.
const problemType = "urn:holdfast:problem:"

// Type returns the URI of the problem type (RFC 9457, 3.1.1).
func (c Code) Type() string { return problemType + string(c) }

// Problem is a refusal (RFC 9457). Detail says what happened, to what, and what to do. A Problem is
// also the client's error: errors.Is finds the sentinel of the registry's contract behind it.
type Problem struct {
	Type   string `json:"type" doc:"urn:holdfast:problem: and the code" example:"urn:holdfast:problem:not-found"`
	Title  string `json:"title" doc:"The status in words" example:"Not Found"`
	Status int    `json:"status" doc:"The HTTP status" example:"404"`
	Code   Code   `json:"code" doc:"What went wrong, for programs" example:"not-found"`
	Detail string `json:"detail" doc:"What happened, to what, and what to do" example:"item 01a20657 was not found; check the id"`
	// Instance identifies the request in the server's log.
	Instance string `json:"instance,omitempty" doc:"Identifies the request in the server's log"`
	// Faults are the single faults; all of them unless Total is set.
	Faults []Fault `json:"errors,omitempty" doc:"All single faults"`
	// Total is the number of faults if there are too many to list.
	Total int64 `json:"errors_total,omitempty" doc:"The number of errors, when not all are listed"`
	// AllowedActs are the acts that the item allows, with CodeTransition and CodePastNoReturn.
	AllowedActs []registry.Act `json:"allowed_acts,omitempty" doc:"The acts that the item allows"`
	// Consequences are the effects of an act on other things, one sentence each, with CodeConfirm.
	Consequences []string `json:"consequences,omitempty" doc:"Effects of the act on other things; confirm them to go on"`
	// AgreesTo identifies the request that a confirmation would approve, with CodeConfirm of act
	// abandon and of an older record.
	AgreesTo string `json:"agrees_to,omitempty" doc:"abandon, and the acceptance of an older record: identifies the other admin's request; return it with the confirmation"`
	// Cycle lists items that wait for each other, with CodeCycle.
	Cycle []string `json:"cycle,omitempty" doc:"Ids of items, each waiting for the next, the last for the first"`
	// Accepting says since when and why submissions are not accepted, with CodeNotAccepting.
	Accepting *registry.Accepting `json:"accepting,omitempty" doc:"Since when and why submissions are not accepted"`
	// Worded says that the detail and the faults are in the reader's language: a page made them.
	Worded bool `json:"-"`
	// Cause is the error of the registry's contract behind the problem.
	Cause *Cause `json:"cause,omitempty" doc:"The error behind the problem, for programs"`
}

// Fault is one fault of a request or a manifest.
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
	// Statement has the facts of the message; nil if it has none.
	Statement *registry.Statement `json:"statement,omitempty" doc:"The facts of the message, for programs that word it themselves"`
}

// NewProblem returns a problem with its derived fields set.
func NewProblem(status int, code Code, detail string, faults ...Fault) *Problem {
	title := http.StatusText(status)
	if status == StatusChecksum {
		title = "Checksum Mismatch"
	}
	return &Problem{Type: code.Type(), Title: title, Status: status, Code: code, Detail: detail, Faults: faults}
}

// Error returns the detail and the first few faults.
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

// Is reports whether target is the sentinel of the registry's contract behind the problem.
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

// Unwrap returns the error of the registry's contract behind the problem, with all its fields, or
// nil. With it, callers need not know whether a store is remote.
func (p *Problem) Unwrap() error { return p.Cause.Err() }
