package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// problem is the content of an error page.
type problem struct {
	What    string        // "": the problem says it
	Problem *wire.Problem // nil: none
	Do      string
	First   string // address of the first page of the list, whose page was not found; "": it is another problem
	ID      string // of the request, in the log
}

// Invalid is the error of an address or form with an invalid value.
func Invalid(format string, args ...any) error {
	return wire.NewProblem(http.StatusBadRequest, wire.CodeBadRequest, fmt.Sprintf(format, args...))
}

// Refused is the error of something that is not possible in the present state.
func Refused(format string, args ...any) error {
	return wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf(format, args...))
}

// Forbidden is the error of something that the viewer's role does not allow.
func Forbidden() error {
	return wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, "your role does not allow this")
}

// NotFound is the error of a page about something that does not exist.
func NotFound(what string) error {
	return wire.NewProblem(http.StatusNotFound, wire.CodeNotFound, what+" was not found")
}

// Told returns a problem that is worded in the viewer's language already.
func Told(status int, code wire.Code, text string, faults ...wire.Fault) *wire.Problem {
	p := wire.NewProblem(status, code, text, faults...)
	p.Worded = true
	return p
}

// Refusal returns the problem of an error if it is a refusal that a form should show: a value that
// must be corrected, a field that names what does not exist, or a state that does not allow it.
func Refusal(err error) (*wire.Problem, bool) {
	var p *wire.Problem
	if !errors.As(err, &p) {
		return nil, false
	}
	switch p.Status {
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusBadRequest:
		return p, true
	case http.StatusNotFound:
		return p, len(p.Faults) > 0 // else the page's own subject is gone
	default:
		return p, false
	}
}

// ofCursor reports whether a problem is about the cursor of an address.
func ofCursor(p *wire.Problem, asked url.Values) bool {
	return slices.ContainsFunc(p.Faults, func(f wire.Fault) bool {
		name, ok := strings.CutPrefix(f.Location, "query.")
		return ok && (name == "after" || name == "before") && asked.Has(name)
	})
}

// Fail shows an error as a page. The page has the id of the request, which is in the log.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, err error) {
	t := s.Texts(r)
	content := problem{ID: w.Header().Get(wire.RequestIDHeader)}
	var p *wire.Problem
	status, title := http.StatusInternalServerError, t.T("Something went wrong")
	switch {
	case errors.As(err, &p):
		status, content.Problem = p.Status, p
	case errors.Is(err, registry.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, context.Canceled):
		status, content.What = http.StatusServiceUnavailable, t.T("The request was cancelled before the page was complete.")
	}
	switch {
	case p != nil && ofCursor(p, r.URL.Query()):
		title, content.Problem = t.T("Not found"), nil
		content.What = t.T("This page of the list is not there: the address names a place in another list, or in another order of it.")
		content.First = Without(r, "after", "before")
	case status == http.StatusNotFound:
		title, content.Do = t.T("Not found"), t.T("Check the address. What it showed may have been removed.")
		if p == nil {
			content.What = t.T("No page at %s.", webserver.Path(r))
		}
	case status == http.StatusForbidden:
		title, content.Do = t.T("Not allowed"), t.T("Ask an operator or an admin.")
		if s.Caller(r.Context()).Role == registry.RoleOperator {
			content.Do = t.T("Ask an admin.")
		}
	case status == http.StatusConflict:
		title, content.Do = t.T("Not possible"), t.T("Go back and reload the page.")
	case status < http.StatusInternalServerError:
		title, content.Do = t.T("Not understood"), t.T("Go back and correct it.")
	default:
		content.Do = t.T("Reload the page. If this persists, tell an operator the number of the request.")
		if p == nil && content.What == "" {
			content.What = t.T("The Registry did not answer.")
		}
		s.Log.ErrorContext(r.Context(), "page failed", "request", content.ID, "path", webserver.Path(r), "status", strconv.Itoa(status), "err", webserver.ErrorText(err))
	}
	s.write(w, r, Page{Name: "problem", Title: title, Content: content}, status)
}
