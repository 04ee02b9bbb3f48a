package item

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// failedActs are the acts that the form of a query's failed items offers.
var failedActs = []registry.Act{registry.ActRequeue, registry.ActAbort, registry.ActHold, registry.ActPriority}

// failedAct returns the act of a form on failed items: requeue unless it names another.
func failedAct(form url.Values) (registry.Act, error) {
	act := registry.Act(cmp.Or(form.Get("act"), string(registry.ActRequeue)))
	if !slices.Contains(failedActs, act) {
		return "", page.Invalid("%q is not an act for failed items", act)
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
func (p pages) askRequeue(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	if !p.MayAct(ctx) {
		return page.Page{}, page.Forbidden()
	}
	act, err := failedAct(r.URL.Query())
	if err != nil {
		return page.Page{}, err
	}
	q, err := requeueQuery(r.URL.Query().Get("match"))
	if err != nil {
		return page.Page{}, err
	}
	list, err := p.API.Failures(ctx, registry.ItemQuery{Match: q, Limit: page.FailuresShown})
	if err != nil {
		return page.Page{}, err
	}
	// One key for each form shown: a form that is sent twice acts once.
	content := requeuePage{Act: act, Match: q.String(), From: registry.Stage(r.URL.Query().Get("from")), Groups: list.Rows, Key: "page " + rand.Text()}
	counts, err := p.API.CountItems(ctx, registry.ItemQuery{Match: q})
	if err != nil {
		return page.Page{}, err
	}
	for _, n := range counts {
		content.Count += n
	}
	if content.Count == 0 {
		return page.Page{}, page.Refused("no failed item matches %s now", content.Match)
	}
	return page.Page{Name: "requeue", Title: p.Texts(r).T(page.Label(act)) + ": " + p.Texts(r).T("%d item|%d items", content.Count), Section: "items", Content: content}, nil
}

// requeue starts the bulk act of a form and leads to the page of its item, which shows the progress.
func (p pages) requeue(r *http.Request) (string, *page.Page, error) {
	if !p.May(r.Context(), "bulk") {
		return "", nil, page.Forbidden()
	}
	q, err := requeueQuery(r.PostForm.Get("match"))
	if err != nil {
		return "", nil, err
	}
	act, err := failedAct(r.PostForm)
	if err != nil {
		return "", nil, err
	}
	b := wire.BulkRequest{Query: q.String(), CommandRequest: wire.CommandRequest{
		Act: string(act), From: r.PostForm.Get("from"), Reason: strings.TrimSpace(r.PostForm.Get("reason")), Confirm: true,
	}}
	key := r.PostForm.Get("key")
	if err := page.CheckLengths(b.Reason, key); err != nil {
		return "", nil, err
	}
	switch {
	case act == registry.ActHold && b.Reason == "":
		return "", nil, page.Invalid("hold needs a reason; it is shown with the items")
	case act == registry.ActPriority:
		n, err := strconv.Atoi(strings.TrimSpace(r.PostForm.Get("priority")))
		if err != nil {
			return "", nil, page.Invalid("a priority is a whole number")
		}
		b.Priority = &n
	}
	it, err := p.API.Bulk(r.Context(), b, key)
	if err != nil {
		return "", nil, err
	}
	return "/items/" + it.ID, nil, nil
}

// requeueQuery parses the form's query. It accepts only queries that name a cause or a graph, so that a link
// from somebody else cannot requeue arbitrary items.
func requeueQuery(text string) (registry.Query, error) {
	q, err := query.Parse(text)
	if err != nil {
		return q, page.Invalid("%v", err)
	}
	for _, t := range q.Terms {
		if (t.Field == "cause" || t.Field == "graph") && !t.Not {
			return q, nil
		}
	}
	return q, page.Invalid("the query names no cause and no graph")
}
