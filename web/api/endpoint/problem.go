package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// sentinel is one line of the table from errors to answers.
type sentinel struct {
	is     error
	status int
	code   wire.Code
	advice string // what to do; it follows the error's own words
}

// sentinels is the one table from the contract's errors to statuses. What is not in it and is no
// type that answerTo knows is our own fault.
func sentinels() []sentinel {
	return []sentinel{
		{registry.ErrNotFound, http.StatusNotFound, wire.CodeNotFound, "check the id, or list what there is"},
		{registry.ErrIdempotencyConflict, http.StatusConflict, wire.CodeIdempotency, "use a new key, or send what was sent first"},
		{registry.ErrLastAdmin, http.StatusConflict, wire.CodeLastAdmin, "nothing was revoked"},
		{registry.ErrNameTaken, http.StatusConflict, wire.CodeNameTaken, "give another name"},
		{registry.ErrIntentOpen, http.StatusConflict, wire.CodeConflict, "wait until that version is recorded"},
		{registry.ErrJobsOpen, http.StatusConflict, wire.CodeConflict, "wait until they are"},
		{registry.ErrEmptyQuery, http.StatusUnprocessableEntity, wire.CodeInvalid, "say which items are meant"},
		{registry.ErrSealed, http.StatusConflict, wire.CodeSealed, "prepare a new graph, whose nodes may require this one's items"},
		{registry.ErrSamePerson, http.StatusForbidden, wire.CodeForbidden, "let somebody else approve it, with a token that neither of the two has made for the other"},
		{registry.ErrNotAsked, http.StatusConflict, wire.CodeConflict, "nothing was changed"},
		{registry.ErrNoAcceptance, http.StatusConflict, wire.CodeConflict, "nothing was changed"},
		{registry.ErrAsked, http.StatusConflict, wire.CodeConflict, "approve that one, or withdraw it first"},
		{registry.ErrNoCallback, http.StatusConflict, wire.CodeConflict, "give its profile a callback first"},
		{registry.ErrNoMail, http.StatusConflict, wire.CodeConflict, "give its profile addresses, and the service a mail server (docs/mail.md)"},
		{registry.ErrWorkerTaken, http.StatusConflict, wire.CodeConflict, "use an id of your own, such as a new UUID at each start"},
		{registry.ErrTaken, http.StatusConflict, wire.CodeConflict, "use another identifier"},
		{registry.ErrClaimLost, http.StatusConflict, wire.CodeConflict, "the attempt is over; write nothing more"},
		{registry.ErrSubscriptionLost, http.StatusConflict, wire.CodeConflict, "take it again; send nothing more of what is in hand"},
		{registry.ErrInvalid, http.StatusUnprocessableEntity, wire.CodeInvalid, "correct it; it would be refused again"},
		{storage.ErrNoSpace, http.StatusInsufficientStorage, wire.CodeNoSpace, "free space on the volume, or try again later; nothing was kept"},
		{registry.ErrUnavailable, http.StatusServiceUnavailable, wire.CodeUnavailable, "try again later"},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, wire.CodeUnavailable, "try again later"},
		{context.Canceled, http.StatusServiceUnavailable, wire.CodeUnavailable, "the request was given up before it was done; send it again"},
	}
}

// answerTo turns an error into the problem that says it. known is false when it is our own fault.
func answerTo(err error) (p *wire.Problem, known bool) {
	var (
		problem    *wire.Problem
		refusal    *intake.Refusal
		transition *registry.TransitionError
		locked     *registry.LockedError
		mismatch   *registry.IdentifierMismatch
		space      *registry.NoSpaceError
		quota      *registry.QuotaError
		refused    *registry.MailRefusedError
		mails      *registry.MailLimitError
		confirm    *registry.ConfirmationNeeded
		late       *registry.PastNoReturn
		graph      *registry.GraphError
		cycle      *registry.CycleError
		closed     *registry.NotAccepting
	)
	switch {
	case errors.As(err, &problem):
		return problem, true
	case errors.As(err, &refusal):
		return contentInvalid(refusal), true
	case errors.As(err, &transition):
		p := wire.NewProblem(http.StatusConflict, wire.CodeTransition, err.Error())
		p.AllowedActs = transition.Allowed
		return p, true
	case errors.As(err, &confirm):
		p := wire.NewProblem(http.StatusConflict, wire.CodeConfirm, err.Error()+"; confirm it to go on")
		p.Consequences, p.AgreesTo = confirm.Consequences, confirm.AgreesTo
		return p, true
	case errors.As(err, &late):
		p := wire.NewProblem(http.StatusConflict, wire.CodePastNoReturn, err.Error())
		p.AllowedActs = late.Allowed
		return p, true
	case errors.As(err, &graph):
		return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeGraph, "nothing was submitted; correct what the errors name",
			GraphFault("body.requires", graph)), true
	case errors.As(err, &cycle):
		p := wire.NewProblem(http.StatusConflict, wire.CodeCycle, err.Error())
		p.Cycle = cycle.Items
		return p, true
	case errors.As(err, &locked):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error()+"; wait until it has settled"), true
	case errors.As(err, &mismatch):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error()), true
	case errors.As(err, &quota):
		return overQuota(quota), true
	case errors.As(err, &refused):
		return mailRefused(err, refused), true
	case errors.As(err, &mails):
		return wire.NewProblem(http.StatusTooManyRequests, wire.CodeMailLimit, err.Error()), true
	case errors.As(err, &space):
		return wire.NewProblem(http.StatusInsufficientStorage, wire.CodeNoSpace, err.Error()+"; free space or try again later"), true
	case errors.As(err, &closed):
		p := wire.NewProblem(http.StatusServiceUnavailable, wire.CodeNotAccepting, closed.Error())
		p.Accepting = &closed.Accepting
		return p, true
	}
	if p := contractRefusal(err); p != nil {
		return p, true
	}
	for _, row := range sentinels() {
		if errors.Is(err, row.is) {
			return wire.NewProblem(row.status, row.code, err.Error()+"; "+row.advice), true
		}
	}
	return wire.NewProblem(http.StatusInternalServerError, wire.CodeInternal,
		"something went wrong on our side; send it again, and if it stays show an operator the instance, which is in the log"), false
}

// contractRefusal is the problem of an error of the Registry's contract that has no other place in
// answerTo, or nil.
func contractRefusal(err error) *wire.Problem {
	var (
		claim *registry.NotClaimable
		owner *registry.OwnerMismatch
		none  *registry.NoObject
		query *registry.QueryError
		turn  *registry.PriorityError
		gone  *registry.GoneError
		other *registry.VersionError
	)
	switch {
	case errors.As(err, &claim), errors.As(err, &owner), errors.As(err, &none):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error())
	case errors.As(err, &gone):
		return wire.NewProblem(http.StatusGone, wire.CodeGone, err.Error())
	case errors.As(err, &query):
		// A query can be read and be too much to ask all the same.
		p := wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, query.Error())
		p.Faults = []wire.Fault{valid.QueryFault("query.q", query)}
		return p
	case errors.As(err, &other):
		return wire.NewProblem(http.StatusPreconditionFailed, wire.CodeVersion, other.Error())
	case errors.As(err, &turn):
		return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, err.Error())
	case errors.Is(err, errors.ErrUnsupported):
		return wire.NewProblem(http.StatusNotImplemented, wire.CodeInternal, "this Registry does not have that yet; update it")
	}
	return nil
}

// ordinary tells a refusal that is nothing to write home about: a worker asks for an item again and
// again.
func ordinary(err error) bool {
	var claim *registry.NotClaimable
	return errors.As(err, &claim)
}

// contentInvalid lists what is wrong with a payload for the depositor who made it.
func contentInvalid(e *intake.Refusal) *wire.Problem {
	v := e.Report
	p := wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeContentInvalid, fmt.Sprintf(
		"the payload was not accepted as %s: it has %s and submit it again", v.Type, errorsToCorrect(v.Errors)))
	if e.Whole {
		p.Detail += "; its collection takes a batch whole or not at all"
	}
	for _, f := range v.Faults {
		p.Faults = append(p.Faults, contentFault(f))
	}
	p.Total = v.Errors + v.Warnings
	return p
}

func errorsToCorrect(n int64) string {
	if n == 1 {
		return "1 error; correct it"
	}
	return fmt.Sprintf("%d errors; correct them", n)
}

func contentFault(f intake.Fault) wire.Fault {
	return wire.Fault{
		Location: f.Location(), Message: f.Text(), Line: f.Line, Column: f.Column, Rule: f.Rule, Severity: string(f.Severity),
		Expected: f.Expected, Found: f.Found, Fix: f.Fix,
	}
}

// Problem makes the answer to an error and writes it to the log, where errors stop.
func (s *Server) Problem(r *http.Request, err error) *wire.Problem {
	p, known := answerTo(err)
	answer := *p // a problem may be shared
	if answer.Cause == nil {
		answer.Cause = wire.CauseOf(err)
	}
	c := access.Of(r.Context())
	answer.Instance = "urn:holdfast:request:" + c.RequestID
	log := s.Log.With(
		slog.String("request", c.RequestID), slog.String("method", r.Method), slog.String("path", webserver.Path(r)),
		slog.Int("status", answer.Status), slog.String("code", string(answer.Code)),
		slog.String("actor", c.Token.Name), slog.String("remote", r.RemoteAddr))
	if answer.Status >= http.StatusInternalServerError && answer.Status != http.StatusServiceUnavailable || !known {
		log.ErrorContext(r.Context(), "request failed", "err", webserver.ErrorText(err))
	} else if ordinary(err) {
		log.DebugContext(r.Context(), "request refused", "err", webserver.ErrorText(err))
	} else {
		log.InfoContext(r.Context(), "request refused", "err", webserver.ErrorText(err))
	}
	if s.notable(r, &answer) {
		s.refused(r, &answer)
	}
	if refused := (*registry.MailRefusedError)(nil); errors.As(err, &refused) {
		answer.Detail = strings.Replace(answer.Detail, refused.Error(), refused.InFull(), 1)
	}
	return &answer
}

// Fail answers a request with the problem that err is.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) {
	WriteProblem(w, s.Problem(r, err))
}

// mailRefused lists the addresses that mails may not go to.
func mailRefused(err error, e *registry.MailRefusedError) *wire.Problem {
	p := wire.NewProblem(http.StatusForbidden, wire.CodeMailRefused, err.Error())
	for _, address := range e.Addresses {
		p.Faults = append(p.Faults, wire.Fault{
			Location: "body.notify", Message: "mails may not go to " + address, Found: address, Fix: "leave it out, or have an admin allow it",
		})
	}
	return p
}

// retryAfter is when what was refused for the time being may be tried again, in seconds; "" when
// nothing says that it may.
func retryAfter(p *wire.Problem) string {
	switch p.Code {
	case wire.CodeNotAccepting:
		return "60"
	case wire.CodeJudging:
		return "1"
	case wire.CodeMailLimit:
		if limit := (*registry.MailLimitError)(nil); errors.As(p.Cause.Err(), &limit) && limit.Need <= limit.Daily {
			return strconv.Itoa(max(1, int(time.Until(limit.Until)/time.Second)))
		}
		return ""
	default:
		return ""
	}
}

// WriteProblem answers with a problem.
func WriteProblem(w http.ResponseWriter, p *wire.Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Del("Content-Length")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	if after := retryAfter(p); after != "" {
		h.Set("Retry-After", after)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the reader has gone if this fails
}

// Invalid is the problem of a request with wrong values, or nil when there are none.
func Invalid(what string, faults ...wire.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, what+"; correct what the errors name", faults...)
}

// NotFound is the problem of a thing that is not there, or not for this caller.
func NotFound(format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusNotFound, wire.CodeNotFound, fmt.Sprintf(format, args...))
}

// Unprocessable is the problem of a request that is understood and cannot be carried out.
func Unprocessable(code wire.Code, format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusUnprocessableEntity, code, fmt.Sprintf(format, args...))
}

// overQuota is the problem of an upload that would exceed a quota.
func overQuota(e *registry.QuotaError) *wire.Problem {
	if e.Never() {
		return wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeQuota, e.Error())
	}
	return wire.NewProblem(http.StatusInsufficientStorage, wire.CodeQuota, e.Error())
}

// GraphFault is what is wrong with a graph, at a location of the request.
func GraphFault(location string, e *registry.GraphError) wire.Fault {
	return wire.Fault{Location: location, Message: e.Problem, Found: e.Key}
}
