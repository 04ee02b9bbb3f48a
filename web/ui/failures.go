package ui

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// failuresShown is the largest number of groups of failures on a page; the largest groups are
// shown.
const failuresShown = 20

// failures are failed items, grouped by cause.
type failures struct {
	Groups []failureGroup
	More   bool // more groups exist
}

// failureGroup is a group of failures. Requeue is the query of its items, or "" if the caller
// cannot requeue them.
type failureGroup struct {
	registry.FailureGroup
	Requeue string
}

// failuresOf groups the failed items of a query.
func (p *pages) failuresOf(ctx context.Context, q registry.Query) (f failures, err error) {
	list, err := p.registry.Failures(ctx, registry.ItemQuery{Match: q, Limit: failuresShown})
	if err != nil {
		return f, err
	}
	may := p.forms != nil && p.forms.MayAct(ctx)
	f.More = list.Next != ""
	for _, g := range list.Rows {
		shown := failureGroup{FailureGroup: g}
		if match, ok := g.Requeue(q); ok && may {
			shown.Requeue = match.String()
		}
		f.Groups = append(f.Groups, shown)
	}
	return f, nil
}

// failedActs are the acts that the form of a query's failed items offers.
var failedActs = []registry.Act{registry.ActRequeue, registry.ActAbort, registry.ActHold, registry.ActPriority}

// failedAct returns the act of a form on failed items: requeue unless it names another.
func failedAct(form url.Values) (registry.Act, error) {
	act := registry.Act(cmp.Or(form.Get("act"), string(registry.ActRequeue)))
	if !slices.Contains(failedActs, act) {
		return "", fmt.Errorf("%w: %q is not an act for failed items", errBadQuery, act)
	}
	return act, nil
}

// requeuePage is the form that acts on the failed items of a query. Mostly it requeues them.
type requeuePage struct {
	Act    registry.Act
	Match  string
	From   registry.Stage // where they restart; "": where they failed
	Count  int64
	Groups []registry.FailureGroup // the causes
	Key    string
}

// askRequeue shows the form that requeues the failed items of a query, with their number and
// causes.
func (p *pages) askRequeue(r *http.Request) (page, error) {
	ctx := r.Context()
	if p.forms == nil || !p.forms.MayAct(ctx) {
		return page{}, errForbidden
	}
	act, err := failedAct(r.URL.Query())
	if err != nil {
		return page{}, err
	}
	q, err := requeueQuery(r.URL.Query().Get("match"))
	if err != nil {
		return page{}, err
	}
	list, err := p.registry.Failures(ctx, registry.ItemQuery{Match: q, Limit: failuresShown})
	if err != nil {
		return page{}, asBadQuery(err)
	}
	// One key for each form shown: a form that is sent twice acts once.
	content := requeuePage{Act: act, Match: q.String(), From: registry.Stage(r.URL.Query().Get("from")), Groups: list.Rows, Key: "page " + rand.Text()}
	counts, err := p.registry.CountItems(ctx, registry.ItemQuery{Match: q})
	if err != nil {
		return page{}, err
	}
	for _, n := range counts {
		content.Count += n
	}
	if content.Count == 0 {
		return page{}, fmt.Errorf("%w: no failed item matches %s now", errRefused, content.Match)
	}
	return page{Name: "requeue", Title: label(act) + " " + counted(content.Count, "item"), Section: "status", Content: content}, nil
}

// requeue starts the bulk requeue of a form and redirects to the page of its item, which shows the
// progress.
func (p *pages) requeue(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	it, err := p.bulkOf(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.log.InfoContext(ctx, "bulk act started", "item", it.ID, "act", r.PostForm.Get("act"))
	http.Redirect(w, r, "/items/"+it.ID, http.StatusSeeOther)
}

// bulkOf starts the bulk act of a form and returns its item.
func (p *pages) bulkOf(r *http.Request) (it registry.WorkItem, err error) {
	if p.forms == nil || !p.forms.MayAct(r.Context()) {
		return it, errForbidden
	}
	if err := r.ParseForm(); err != nil {
		return it, fmt.Errorf("%w: the form could not be read", errBadQuery)
	}
	q, err := requeueQuery(r.PostForm.Get("match"))
	if err != nil {
		return it, err
	}
	act, err := failedAct(r.PostForm)
	if err != nil {
		return it, err
	}
	b := registry.BulkRequest{
		Match: q, Act: act, From: registry.Stage(r.PostForm.Get("from")), Reason: strings.TrimSpace(r.PostForm.Get("reason")), Confirmed: true, IdempotencyKey: r.PostForm.Get("key"),
	}
	if err := checkLengths(b.Reason, b.IdempotencyKey); err != nil {
		return it, err
	}
	switch {
	case act == registry.ActHold && b.Reason == "":
		return it, fmt.Errorf("%w: hold needs a reason; it is shown with the items", errBadQuery)
	case act == registry.ActPriority:
		n, err := strconv.Atoi(strings.TrimSpace(r.PostForm.Get("priority")))
		if err != nil {
			return it, fmt.Errorf("%w: a priority is a whole number", errBadQuery)
		}
		b.Priority = &n
	}
	it, err = p.forms.Bulk(r.Context(), b)
	if errors.Is(err, registry.ErrIdempotencyConflict) {
		err = fmt.Errorf("%w: the form was already sent with another reason; open it again", errRefused)
	}
	return it, asBadQuery(err)
}

// asBadQuery turns the Registry's refusal of a query into errBadQuery.
func asBadQuery(err error) error {
	var wrong *registry.QueryError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%w: %w", errBadQuery, err)
	}
	return err
}

// requeueQuery parses the form's query. It accepts only queries that name a cause or a graph, so that a link
// from somebody else cannot requeue arbitrary items.
func requeueQuery(text string) (registry.Query, error) {
	q, err := query.Parse(text)
	if err != nil {
		return q, fmt.Errorf("%w: %w", errBadQuery, err)
	}
	for _, t := range q.Terms {
		if (t.Field == "cause" || t.Field == "graph") && !t.Not {
			return q, nil
		}
	}
	return q, fmt.Errorf("%w: the query names no cause and no graph", errBadQuery)
}
