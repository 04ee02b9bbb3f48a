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

// deletionsPage is what the list of deletions shows.
type deletionsPage struct {
	Deletions []registry.Deletion
	Next      string
}

// deletions lists what waits for another person.
func (p *pages) deletions(r *http.Request) (page, error) {
	list, err := p.registry.Deletions(r.Context(), registry.DeletionQuery{After: r.URL.Query().Get("after"), Limit: 50})
	if err != nil {
		return page{}, badCursor(r, err)
	}
	content := deletionsPage{Deletions: list.Rows, Next: nextPage(r, list.Next)}
	return page{Name: "deletions", Title: "Deletions", Section: "objects", Content: content}, nil
}

// deletionURL is the address of the form about an object's deletion.
func deletionURL(id string) string { return (&url.URL{Path: "/deletions/" + id}).String() }

// decides is what a button says.
func decides(d registry.Decision) string {
	switch d {
	case registry.DecideAsk:
		return "Ask to delete it"
	case registry.DecideApprove:
		return "Agree to delete it"
	case registry.DecideWithdraw:
		return "Decline the deletion"
	}
	return string(d)
}

// decisionPage is the form of a decision.
type decisionPage struct {
	Object   registry.Object
	Decision registry.Decision
	Reason   string
	// Asked is which asking the form is about: the time of it, in microseconds; "" when there was
	// none.
	Asked   string
	Refused string
}

// mayDecide are the decisions that who asks can make about an object.
func (p *pages) mayDecide(r *http.Request, o registry.Object) []registry.Decision {
	if p.forms == nil {
		return nil
	}
	return p.forms.Decisions(r.Context(), o.Deletion)
}

// askDecision shows the form of a decision, a page of its own as that of an act is.
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
	return page{Name: "decision", Title: decides(d.Decision) + ": " + d.Object.ID, Section: "objects", Content: d}
}

// askedAt tells one asking from another, later one.
func askedAt(o registry.Object) string {
	if o.Deletion == nil {
		return ""
	}
	return strconv.FormatInt(o.Deletion.AskedAt.UnixMicro(), 10)
}

// canDecide returns why a decision cannot be made by who asks.
func (p *pages) canDecide(r *http.Request, o registry.Object, d registry.Decision) error {
	may := p.mayDecide(r, o)
	switch {
	case slices.Contains(may, d):
		return nil
	case len(may) == 0 && (p.forms == nil || !p.forms.MayAct(r.Context())):
		return errForbidden
	case !slices.Contains([]registry.Decision{registry.DecideAsk, registry.DecideApprove, registry.DecideWithdraw}, d):
		return fmt.Errorf("%w: there is no decision %q", errBadQuery, d)
	case o.Deletion == nil:
		return fmt.Errorf("%w: %w", errRefused, registry.ErrNotAsked)
	case d == registry.DecideApprove && o.Deletion.Status == registry.DeletionAsked:
		return fmt.Errorf("%w: %w", errRefused, registry.ErrSamePerson)
	}
	return fmt.Errorf("%w: the deletion of %s is not one to be decided so: %s", errRefused, o.ID, o.Deletion.Text())
}

// decide carries a decision out and goes back to the object's page, which shows what became of it.
// What is refused is shown in the form.
func (p *pages) decide(w http.ResponseWriter, r *http.Request) {
	const mostReason = 2000
	ctx := r.Context()
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, fmt.Errorf("%w: the form cannot be read", errBadQuery))
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
		p.fail(w, r, fmt.Errorf("%w: a deletion needs a reason, of at most %d bytes, which is kept for ever", errBadQuery, mostReason))
		return
	case form.Decision != registry.DecideAsk && form.Asked != askedAt(o):
		// Whoever agrees must have seen to what.
		err = fmt.Errorf("%w: it was asked for anew since this form was shown", errRefused)
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

// isRefusal says whether a decision was understood, and cannot be made as things stand.
func isRefusal(err error) bool {
	var gone *registry.GoneError
	return errors.Is(err, errRefused) || errors.Is(err, registry.ErrSamePerson) || errors.Is(err, registry.ErrNotAsked) ||
		errors.Is(err, registry.ErrAsked) || errors.As(err, &gone)
}
