package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// failuresShown is how many groups of failures a page shows, the largest.
const failuresShown = 20

// failures are groups of failed items.
type failures struct {
	Groups []failureGroup
	More   bool // there are smaller ones
}

// failureGroup is a group with the query of its items, "" where who looks cannot send them again.
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

// requeuePage is the form that requeues the failed items of a query.
type requeuePage struct {
	Match  string
	From   registry.Stage // where they begin; "": where they failed
	Count  int64
	Groups []registry.FailureGroup // what they failed for
	Key    string
}

// askRequeue shows how many items a query means and what they failed for, and asks whether to
// requeue them.
func (p *pages) askRequeue(r *http.Request) (page, error) {
	ctx := r.Context()
	if p.forms == nil || !p.forms.MayAct(ctx) {
		return page{}, errForbidden
	}
	q, err := requeueQuery(r.URL.Query().Get("match"))
	if err != nil {
		return page{}, err
	}
	list, err := p.registry.Failures(ctx, registry.ItemQuery{Match: q, Limit: failuresShown})
	if err != nil {
		return page{}, tooMuch(err)
	}
	// One key for one showing of the form: sent twice, it acts once.
	content := requeuePage{Match: q.String(), From: registry.Stage(r.URL.Query().Get("from")), Groups: list.Rows, Key: "page " + rand.Text()}
	counts, err := p.registry.CountItems(ctx, registry.ItemQuery{Match: q})
	if err != nil {
		return page{}, err
	}
	for _, n := range counts {
		content.Count += n
	}
	if content.Count == 0 {
		return page{}, fmt.Errorf("%w: nothing that failed matches %s any more", errRefused, content.Match)
	}
	return page{Name: "requeue", Title: "Requeue " + counted(content.Count, "item"), Section: "status", Content: content}, nil
}

// requeue makes the item that requeues them and goes to its page, which shows how far it is.
func (p *pages) requeue(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	it, err := p.bulkOf(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.log.InfoContext(ctx, "bulk act begun", "item", it.ID, "act", string(registry.ActRequeue))
	http.Redirect(w, r, "/items/"+it.ID, http.StatusSeeOther)
}

// bulkOf begins what the form asks.
func (p *pages) bulkOf(r *http.Request) (it registry.WorkItem, err error) {
	if p.forms == nil || !p.forms.MayAct(r.Context()) {
		return it, errForbidden
	}
	if err := r.ParseForm(); err != nil {
		return it, fmt.Errorf("%w: the form cannot be read", errBadQuery)
	}
	q, err := requeueQuery(r.PostForm.Get("match"))
	if err != nil {
		return it, err
	}
	b := registry.BulkRequest{
		Match: q, Act: registry.ActRequeue, From: registry.Stage(r.PostForm.Get("from")), Reason: strings.TrimSpace(r.PostForm.Get("reason")), Confirmed: true, IdempotencyKey: r.PostForm.Get("key"),
	}
	if err := boundForm(b.Reason, b.IdempotencyKey); err != nil {
		return it, err
	}
	it, err = p.forms.Bulk(r.Context(), b)
	if errors.Is(err, registry.ErrIdempotencyConflict) {
		err = fmt.Errorf("%w: the form was sent before, with another reason; open it anew", errRefused)
	}
	return it, tooMuch(err)
}

// tooMuch turns the refusal of a query that can be read into one of the address.
func tooMuch(err error) error {
	var wrong *registry.QueryError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%w: %w", errBadQuery, err)
	}
	return err
}

// requeueQuery reads the query of the form: that of a group of failures, so that nothing else is
// requeued by an address that somebody was sent.
func requeueQuery(text string) (registry.Query, error) {
	q, err := query.Parse(text)
	if err != nil {
		return q, fmt.Errorf("%w: %w", errBadQuery, err)
	}
	for _, t := range q.Terms {
		if t.Field == "cause" && !t.Not {
			return q, nil
		}
	}
	return q, fmt.Errorf("%w: it names no cause", errBadQuery)
}
