package object

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// deletionsPage is the content of the list of deletions.
type deletionsPage struct {
	Deletions []deletionRow
	Next      string
	May       bool   // the viewer may decide
	Me        string // the viewer's name
}

// deletionRow is a deletion with the title of its object.
type deletionRow struct {
	registry.Deletion

	Title string
}

// deletionsShown is the number of deletions on a page. Each takes a read of its object.
const deletionsShown = 25

// deletions lists the deletions that wait for another person's approval.
func (p pages) deletions(r *http.Request) (page.Page, error) {
	list, err := p.API.Deletions(r.Context(), registry.DeletionQuery{After: r.URL.Query().Get("after"), Limit: deletionsShown})
	if err != nil {
		return page.Page{}, err
	}
	content := deletionsPage{Next: page.Next(r, list.Next), May: p.May(r.Context(), "approve-deletion"), Me: p.Caller(r.Context()).Name}
	for _, d := range list.Rows {
		o, err := p.API.Object(r.Context(), d.ObjectID)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return page.Page{}, err
		}
		content.Deletions = append(content.Deletions, deletionRow{Deletion: d, Title: o.Title})
	}
	return page.Page{Name: "deletions", Title: p.Texts(r).T("Deletions"), Section: "deletions", Content: content}, nil
}

// deletionURL is the address of the form for an object's deletion.
func deletionURL(id string) string { return (&url.URL{Path: "/deletions/" + id}).String() }

// decisionLabel is the text of the button for a decision. own says that the request is the viewer's.
func decisionLabel(d registry.Decision, own bool) string {
	switch {
	case d == registry.DecideAsk:
		return "Request deletion"
	case d == registry.DecideApprove:
		return "Approve deletion"
	case d == registry.DecideWithdraw && own:
		return "Withdraw the request"
	case d == registry.DecideWithdraw:
		return "Decline deletion"
	}
	return string(d)
}

// asks reports whether the viewer requested the deletion of an object.
func (p pages) asks(r *http.Request, o registry.Object) bool {
	return o.Deletion != nil && o.Deletion.AskedBy == p.Caller(r.Context()).Name
}

// decisionPage is the form of a decision about a deletion.
type decisionPage struct {
	Object   registry.Object
	Decision registry.Decision
	// Asked identifies the deletion request that the form shows: the time of the request in
	// microseconds. It is "" if there is none.
	Asked string
	Own   bool // the request is the viewer's
}

// decisions returns the decisions that the caller can make about an object's deletion.
func (p pages) decisions(r *http.Request, o registry.Object) []registry.Decision {
	if !p.May(r.Context(), "approve-deletion") {
		return nil
	}
	return o.Deletion.Decisions(p.Caller(r.Context()).Name)
}

// askDecision shows the form of a decision on a page of its own.
func (p pages) askDecision(r *http.Request) (page.Page, error) {
	o, err := p.objectOf(r)
	if err != nil {
		return page.Page{}, err
	}
	d := registry.Decision(r.URL.Query().Get("decision"))
	if may := p.decisions(r, o); d == "" && len(may) > 0 { // an address that was shortened
		d = may[0]
	}
	if err := p.canDecide(r, o, d); err != nil {
		return page.Page{}, err
	}
	return p.decisionForm(r, decisionPage{Object: o, Decision: d, Asked: askedAt(o)}), nil
}

func (p pages) decisionForm(r *http.Request, d decisionPage) page.Page {
	d.Own = p.asks(r, d.Object)
	return page.Page{Name: "decision", Title: p.Texts(r).T(decisionLabel(d.Decision, d.Own)) + ": " + d.Object.ID, Section: "deletions", Content: d}
}

// askedAt distinguishes a deletion request from a later one for the same object.
func askedAt(o registry.Object) string {
	if o.Deletion == nil {
		return ""
	}
	return strconv.FormatInt(o.Deletion.AskedAt.UnixMicro(), 10)
}

// canDecide returns nil if the caller can make a decision, or the reason why not.
func (p pages) canDecide(r *http.Request, o registry.Object, d registry.Decision) error {
	may := p.decisions(r, o)
	switch {
	case slices.Contains(may, d):
		return nil
	case len(may) == 0 && !p.May(r.Context(), "approve-deletion"):
		return page.Forbidden()
	case !slices.Contains([]registry.Decision{registry.DecideAsk, registry.DecideApprove, registry.DecideWithdraw}, d):
		return page.Invalid("unknown decision %q", d)
	case o.Deletion == nil:
		return page.Refused("%v", registry.ErrNotAsked)
	case d == registry.DecideApprove && o.Deletion.Status == registry.DeletionAsked:
		return page.Refused("%v", registry.ErrSamePerson)
	}
	return page.Refused("this decision is not possible for the deletion of %s: %v", o.ID, o.Deletion.Text())
}

// decide makes a decision and leads to the object's page. If the decision is refused, it shows the
// form again with the reason.
func (p pages) decide(r *http.Request) (string, *page.Page, error) {
	ctx := r.Context()
	o, err := p.objectOf(r)
	if err != nil {
		return "", nil, err
	}
	form, reason := decisionPage{Object: o, Decision: registry.Decision(r.PostForm.Get("decision")), Asked: r.PostForm.Get("asked")}, strings.TrimSpace(r.PostForm.Get("reason"))
	if err := p.CheckReason(r, reason, "", form.Decision == registry.DecideAsk); err != nil {
		return "", nil, err
	}
	switch {
	case form.Decision != registry.DecideAsk && form.Asked != askedAt(o):
		// A person must approve the request that the form showed, not a later one.
		err = page.Refused("there is a new deletion request since this form was shown; check it and decide again")
	case form.Decision == registry.DecideAsk:
		_, err = p.API.AskDeletion(ctx, o.ID, reason)
	case form.Decision == registry.DecideApprove:
		_, err = p.API.ApproveDeletion(ctx, o.ID)
	case form.Decision == registry.DecideWithdraw:
		_, err = p.API.WithdrawDeletion(ctx, o.ID)
	default:
		err = page.Invalid("unknown decision %q", form.Decision)
	}
	return page.ObjectURL(o.ID), nil, err
}
