package ui

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// deletionsPage is the content of the list of deletions.
type deletionsPage struct {
	Deletions []registry.Deletion
	Next      string
}

// deletions lists the deletions that wait for another person's approval.
func (p *pages) deletions(r *http.Request) (page, error) {
	list, err := p.registry.Deletions(r.Context(), registry.DeletionQuery{After: r.URL.Query().Get("after"), Limit: 50})
	if err != nil {
		return page{}, badCursor(r, err)
	}
	content := deletionsPage{Deletions: list.Rows, Next: nextPage(r, list.Next)}
	return page{Name: "deletions", Title: "Deletions", Section: "objects", Content: content}, nil
}

// deletionURL is the address of the form for an object's deletion.
func deletionURL(id string) string { return (&url.URL{Path: "/deletions/" + id}).String() }

// decisionLabel is the text of the button for a decision.
func decisionLabel(d registry.Decision) string {
	switch d {
	case registry.DecideAsk:
		return "Request deletion"
	case registry.DecideApprove:
		return "Approve deletion"
	case registry.DecideWithdraw:
		return "Decline deletion"
	}
	return string(d)
}

// decisionPage is the form of a decision about a deletion.
type decisionPage struct {
	Object   registry.Object
	Decision registry.Decision
	Reason   string
	// Asked identifies the deletion request that the form shows: the time of the request in
	// microseconds. It is "" if there is none.
	Asked   string
	Refused string
}

// decisions returns the decisions that the caller can make about an object's deletion.
func (p *pages) decisions(r *http.Request, o registry.Object) []registry.Decision {
	if p.forms == nil {
		return nil
	}
	return p.forms.Decisions(r.Context(), o.Deletion)
}

// askDecision shows the form of a decision on a page of its own.
func (p *pages) askDecision(r *http.Request) (page, error) {
	o, err := p.objectOf(r)
	if err != nil {
		return page{}, err
	}
	d := registry.Decision(r.URL.Query().Get("decision"))
	if err := p.canDecide(r, o, d); err != nil {
		return page{}, err
	}
	return decisionForm(decisionPage{Object: o, Decision: d, Asked: askedAt(o)}), nil
}

func decisionForm(d decisionPage) page {
	return page{Name: "decision", Title: decisionLabel(d.Decision) + ": " + d.Object.ID, Section: "objects", Content: d}
}

// askedAt distinguishes a deletion request from a later one for the same object.
func askedAt(o registry.Object) string {
	if o.Deletion == nil {
		return ""
	}
	return strconv.FormatInt(o.Deletion.AskedAt.UnixMicro(), 10)
}

// canDecide returns nil if the caller can make a decision, or the reason why not.
func (p *pages) canDecide(r *http.Request, o registry.Object, d registry.Decision) error {
	may := p.decisions(r, o)
	switch {
	case slices.Contains(may, d):
		return nil
	case len(may) == 0 && (p.forms == nil || !p.forms.MayAct(r.Context())):
		return errForbidden
	case !slices.Contains([]registry.Decision{registry.DecideAsk, registry.DecideApprove, registry.DecideWithdraw}, d):
		return fmt.Errorf("%w: unknown decision %q", errBadQuery, d)
	case o.Deletion == nil:
		return fmt.Errorf("%w: %w", errRefused, registry.ErrNotAsked)
	case d == registry.DecideApprove && o.Deletion.Status == registry.DeletionAsked:
		return fmt.Errorf("%w: %w", errRefused, registry.ErrSamePerson)
	}
	return fmt.Errorf("%w: this decision is not possible for the deletion of %s: %s", errRefused, o.ID, o.Deletion.Text())
}

// decide makes a decision and redirects to the object's page. If the decision is refused, it shows
// the form again with the reason.
func (p *pages) decide(w http.ResponseWriter, r *http.Request) {
	const mostReason = 2000
	ctx := r.Context()
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, fmt.Errorf("%w: the form could not be read", errBadQuery))
		return
	}
	o, err := p.objectOf(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	form := decisionPage{
		Object: o, Decision: registry.Decision(r.PostForm.Get("decision")), Reason: strings.TrimSpace(r.PostForm.Get("reason")), Asked: r.PostForm.Get("asked"),
	}
	switch {
	case form.Decision == registry.DecideAsk && (form.Reason == "" || len(form.Reason) > mostReason):
		p.fail(w, r, fmt.Errorf("%w: a deletion needs a reason of at most %d bytes; it is kept permanently", errBadQuery, mostReason))
		return
	case form.Decision != registry.DecideAsk && form.Asked != askedAt(o):
		// A person must approve the request that the form showed, not a later one.
		err = fmt.Errorf("%w: there is a new deletion request since this form was shown; check it and decide again", errRefused)
	case p.forms == nil || !p.forms.MayAct(ctx):
		err = errForbidden
	default:
		_, err = p.forms.Decide(ctx, o.ID, form.Decision, form.Reason)
	}
	if isRefusal(err) {
		form.Refused, form.Asked = err.Error(), askedAt(o)
		p.write(w, r, decisionForm(form), http.StatusConflict)
		return
	} else if err != nil {
		p.fail(w, r, err)
		return
	}
	p.log.InfoContext(ctx, "deletion decided on", "object", o.ID, "decision", string(form.Decision))
	http.Redirect(w, r, objectURL(o.ID), http.StatusSeeOther)
}

// isRefusal reports whether the Registry refused a valid decision in the object's present state.
func isRefusal(err error) bool {
	var gone *registry.GoneError
	return errors.Is(err, errRefused) || errors.Is(err, registry.ErrSamePerson) || errors.Is(err, registry.ErrNotAsked) ||
		errors.Is(err, registry.ErrAsked) || errors.As(err, &gone)
}
