package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// sentinel is one row of the table from errors to answers.
type sentinel struct {
	is     error
	status int
	code   wire.Code
	advice string // what to do; appended to the error's text
}

// sentinels is the table from the contract's errors to statuses. An error that is neither here nor
// a type that answerTo knows is a fault of Holdfast.
func sentinels() []sentinel {
	return []sentinel{
		{registry.ErrNotFound, http.StatusNotFound, wire.CodeNotFound, "check the id, or list the existing ones"},
		{registry.ErrIdempotencyConflict, http.StatusConflict, wire.CodeIdempotency, "use a new key, or repeat the first request unchanged"},
		{registry.ErrLastAdmin, http.StatusConflict, wire.CodeLastAdmin, "nothing was revoked"},
		{registry.ErrNameTaken, http.StatusConflict, wire.CodeNameTaken, "use another name"},
		{registry.ErrProcessExists, http.StatusConflict, wire.CodeConflict, "use another id, or call the process"},
		{registry.ErrIntentOpen, http.StatusConflict, wire.CodeConflict, "wait until that version is recorded"},
		{registry.ErrJobsOpen, http.StatusConflict, wire.CodeConflict, "wait until they have settled"},
		{registry.ErrEmptyQuery, http.StatusUnprocessableEntity, wire.CodeInvalid, "say which items to select"},
		{registry.ErrSealed, http.StatusConflict, wire.CodeSealed, "prepare a new graph; its nodes may require items of this one"},
		{registry.ErrSamePerson, http.StatusForbidden, wire.CodeForbidden, "their token must be one that neither person made for the other"},
		{registry.ErrNotAsked, http.StatusConflict, wire.CodeConflict, "nothing was changed"},
		{registry.ErrNoAcceptance, http.StatusConflict, wire.CodeConflict, "nothing was changed"},
		{registry.ErrAsked, http.StatusConflict, wire.CodeConflict, "approve that request, or withdraw it first"},
		{registry.ErrNoCallback, http.StatusConflict, wire.CodeConflict, "add a callback to its profile first"},
		{registry.ErrNoMail, http.StatusConflict, wire.CodeConflict, "add addresses to its profile, and a mail server to the service (docs/mail.md)"},
		{registry.ErrWorkerTaken, http.StatusConflict, wire.CodeConflict, "use a unique id, such as a new UUID at each start"},
		{registry.ErrTaken, http.StatusConflict, wire.CodeConflict, "use another identifier"},
		{registry.ErrClaimLost, http.StatusConflict, wire.CodeConflict, "the attempt is over; write nothing more"},
		{registry.ErrSubscriptionLost, http.StatusConflict, wire.CodeConflict, "take it again before sending more events"},
		{registry.ErrScheduleExists, http.StatusConflict, wire.CodeNameTaken, "use another name, or edit it"},
		{registry.ErrScheduleChanged, http.StatusConflict, wire.CodeConflict, "read it again, then repeat the edit"},
		{registry.ErrViewExists, http.StatusConflict, wire.CodeNameTaken, "use another name, or replace it"},
		{registry.ErrViewChanged, http.StatusConflict, wire.CodeConflict, "read it again, then repeat the change"},
		{registry.ErrTooManyViews, http.StatusConflict, wire.CodeConflict, "remove one first"},
		{registry.ErrInvalid, http.StatusUnprocessableEntity, wire.CodeInvalid, "correct the request before you repeat it"},
		{storage.ErrNoSpace, http.StatusInsufficientStorage, wire.CodeNoSpace, "nothing was stored; free space on the volume, or try again later"},
		{registry.ErrUnavailable, http.StatusServiceUnavailable, wire.CodeUnavailable, "try again later"},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, wire.CodeUnavailable, "try again later"},
		{context.Canceled, http.StatusServiceUnavailable, wire.CodeUnavailable, "the request was cancelled before it was complete; send it again"},
	}
}

// answerTo converts an error to a problem. known is false for a fault of Holdfast.
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
		return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeGraph, "nothing was submitted; correct the nodes that the errors name",
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
			return wire.NewProblem(row.status, row.code, err.Error()+"; "+row.advice, fieldFaults(err)...), true
		}
	}
	return wire.NewProblem(http.StatusInternalServerError, wire.CodeInternal,
		"Holdfast failed to answer; send the request again, and if that fails too, give an operator the instance: the log has it"), false
}

// fieldFaults returns the fault of the field that an error is about; none if it names no field.
func fieldFaults(err error) []wire.Fault {
	var field *registry.FieldError
	if !errors.As(err, &field) {
		return nil
	}
	return []wire.Fault{{Location: "body." + field.Field, Message: strings.TrimPrefix(field.Error(), registry.ErrInvalid.Error()+": ")}}
}

// contractRefusal returns the problem of the remaining errors of the Registry's contract, or nil.
func contractRefusal(err error) *wire.Problem {
	var (
		claim *registry.NotClaimable
		owner *registry.OwnerMismatch
		none  *registry.NoObject
		query *registry.QueryError
		turn  *registry.PriorityError
		gone  *registry.GoneError
		other *registry.VersionError
		name  *registry.UnknownFunctionError
		args  *registry.ArgumentError
		busy  *registry.ScheduleBusy
		state *registry.ProcessStateError
		space *registry.UnknownNamespaceError
		again *registry.CorrectedError
	)
	switch {
	case errors.As(err, &again):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error())
	case errors.As(err, &state):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error())
	case errors.As(err, &space):
		return wire.NewProblem(http.StatusNotFound, wire.CodeNotFound, err.Error())
	case errors.As(err, &claim), errors.As(err, &owner), errors.As(err, &none):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error())
	case errors.As(err, &gone):
		return wire.NewProblem(http.StatusGone, wire.CodeGone, err.Error())
	case errors.As(err, &query):
		// A query can be valid and still too expensive.
		p := wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, query.Error())
		p.Faults = []wire.Fault{valid.QueryFault("query.q", query)}
		return p
	case errors.As(err, &other):
		return wire.NewProblem(http.StatusPreconditionFailed, wire.CodeVersion, other.Error())
	case errors.As(err, &name), errors.As(err, &args):
		return TaskProblem(err, "body")
	case errors.As(err, &busy):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error()+"; wait until it has ended")
	case errors.As(err, &turn):
		return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, err.Error())
	case errors.Is(err, errors.ErrUnsupported):
		return wire.NewProblem(http.StatusNotImplemented, wire.CodeInternal, "this version of Holdfast does not have this operation; update it")
	}
	return nil
}

// level returns how a refused request is logged: at debug level if it is part of normal work, such as a
// worker that asks for an item or for room repeatedly.
func level(err error, status int, known bool) slog.Level {
	var (
		claim   *registry.NotClaimable
		space   *registry.NoSpaceError
		quota   *registry.QuotaError
		problem *wire.Problem
	)
	switch {
	case errors.As(err, &claim), errors.As(err, &space):
		return slog.LevelDebug
	case errors.As(err, &problem) && waits(problem.Code), errors.As(err, &quota), known && (status < http.StatusInternalServerError || status == http.StatusServiceUnavailable):
		return slog.LevelInfo
	}
	return slog.LevelError
}

// waits reports whether a refusal is a normal wait, until there is room again or a person or a check has
// come further, and no failure of Holdfast.
func waits(code wire.Code) bool {
	return slices.Contains([]wire.Code{wire.CodeNoSpace, wire.CodeQuota, wire.CodeJudging, wire.CodeNotAccepting}, code)
}

type waitKey struct{}

// NoteWait returns a context for a request. wait becomes true if the request is refused as a normal wait,
// or one of its calls, which may run at the same time.
func NoteWait(ctx context.Context) (with context.Context, wait *atomic.Bool) {
	wait = new(atomic.Bool)
	return context.WithValue(ctx, waitKey{}, wait), wait
}

// contentInvalid returns the problem of a faulty payload, with its faults.
func contentInvalid(e *intake.Refusal) *wire.Problem {
	v := e.Report
	p := wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeContentInvalid, fmt.Sprintf(
		"the payload was not accepted as %s: it has %s and submit it again", v.Type, errorsToCorrect(v.Errors)))
	if e.Whole {
		p.Detail += "; its collection accepts a batch only if all of it is valid"
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

// Problem converts an error to the answer and logs it.
func (s *Server) Problem(r *http.Request, err error) *wire.Problem {
	p, known := answerTo(err)
	answer := *p // the problem may be shared
	if answer.Cause == nil {
		answer.Cause = wire.CauseOf(err)
	}
	c := access.Of(r.Context())
	answer.Instance = "urn:holdfast:request:" + c.RequestID
	log := s.Log.With(
		slog.String("request", c.RequestID), slog.String("method", r.Method), slog.String("path", webserver.Path(r)),
		slog.Int("status", answer.Status), slog.String("code", string(answer.Code)),
		slog.String("actor", c.Token.Name), slog.String("remote", r.RemoteAddr))
	if at := level(err, answer.Status, known); at < slog.LevelError {
		log.Log(r.Context(), at, "request refused", "err", webserver.ErrorText(err))
	} else {
		log.ErrorContext(r.Context(), "request failed", "err", webserver.ErrorText(err))
	}
	if wait, _ := r.Context().Value(waitKey{}).(*atomic.Bool); wait != nil && waits(answer.Code) {
		wait.Store(true)
	}
	if s.notable(r, &answer) {
		s.refused(r, &answer)
	}
	if refused := (*registry.MailRefusedError)(nil); errors.As(err, &refused) {
		answer.Detail = strings.Replace(answer.Detail, refused.Error(), refused.InFull(), 1)
	}
	return &answer
}

// Fail answers a request with the problem of an error.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) {
	WriteProblem(w, s.Problem(r, err))
}

// mailRefused returns the problem of addresses to which no mail may go.
func mailRefused(err error, e *registry.MailRefusedError) *wire.Problem {
	p := wire.NewProblem(http.StatusForbidden, wire.CodeMailRefused, err.Error())
	for _, address := range e.Addresses {
		fault := valid.Found("body.notify", address, registry.Statement{Says: registry.SaysNoMailTo, Name: address})
		fault.Fix = "remove it, or ask an admin to allow it"
		p.Faults = append(p.Faults, fault)
	}
	return p
}

// retryAfter returns the seconds after which a temporarily refused request may be repeated, or "".
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

// WriteProblem answers a request with a problem.
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

// Invalid returns the problem of a request with invalid values, or nil if there are no faults.
func Invalid(what string, faults ...wire.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, what+"; correct the fields that the errors name", faults...)
}

// NotFound returns the problem of a thing that does not exist or that the caller may not see.
func NotFound(format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusNotFound, wire.CodeNotFound, fmt.Sprintf(format, args...))
}

// Unprocessable returns the problem of a request that is valid but cannot be carried out.
func Unprocessable(code wire.Code, format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusUnprocessableEntity, code, fmt.Sprintf(format, args...))
}

// overQuota returns the problem of an upload that would exceed a quota.
func overQuota(e *registry.QuotaError) *wire.Problem {
	if e.Never() {
		return wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeQuota, e.Error())
	}
	return wire.NewProblem(http.StatusInsufficientStorage, wire.CodeQuota, e.Error())
}

// TaskProblem returns the problem of a task at a location of the request whose function is unknown
// or whose arguments do not fit, or nil.
func TaskProblem(err error, location string) *wire.Problem {
	var p *wire.Problem
	var name *registry.UnknownFunctionError
	var args *registry.ArgumentError
	switch {
	case errors.As(err, &name):
		p = NotFound("%s", name.Error())
		p.Faults = []wire.Fault{{Location: location + ".function", Message: "unknown function", Found: name.Function}}
	case errors.As(err, &args):
		p = Unprocessable(wire.CodeInvalid, "the arguments of %s do not fit its schema; correct them: the function's schema is in the list of functions", args.Function)
		p.Faults = []wire.Fault{{Location: location + ".args", Message: args.Problem}}
	default:
		return nil
	}
	p.Cause = wire.CauseOf(err)
	return p
}

// GraphFault returns the fault of a graph at a location of the request.
func GraphFault(location string, e *registry.GraphError) wire.Fault {
	return wire.Fault{Location: location, Message: e.Problem, Found: e.Key}
}
