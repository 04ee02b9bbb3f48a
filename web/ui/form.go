package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Forms does what the pages' forms ask, on behalf of the caller. The context of the request
// identifies the caller.
type Forms interface {
	// MayAct reports whether the caller may act at all. Callers who may not see no buttons.
	MayAct(ctx context.Context) bool
	// MayAbandon reports whether the caller may abandon items.
	MayAbandon(ctx context.Context) bool
	// Command is as in registry.Commanding.
	Command(ctx context.Context, c registry.Command) (registry.WorkItem, error)
	// Bulk is as in registry.Commanding.
	Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error)
	// RemoveHold is as in registry.Holding.
	RemoveHold(ctx context.Context, scope registry.HoldScope, key string) error
	// Decisions returns the decisions that the caller may make, given the last deletion request of
	// an object, or nil if there was none.
	Decisions(ctx context.Context, last *registry.Deletion) []registry.Decision
	// Decide makes one of these decisions, as registry.Deciding does. The reason is that of a
	// deletion request.
	Decide(ctx context.Context, objectID string, d registry.Decision, reason string) (registry.Deletion, error)
}

// buttons are the acts that the caller may ask of an item.
type buttons struct {
	ItemID string
	Acts   []registry.Act
}

func (p *pages) buttons(ctx context.Context, it registry.WorkItem) buttons {
	if p.forms == nil || !p.forms.MayAct(ctx) {
		return buttons{}
	}
	return buttons{it.ID, p.mayAsk(ctx, it)}
}

// mayAsk returns the acts of an item that the caller, who may act, may ask.
func (p *pages) mayAsk(ctx context.Context, it registry.WorkItem) []registry.Act {
	return slices.DeleteFunc(slices.Clone(it.AllowedActs), func(a registry.Act) bool { return a == registry.ActAbandon && !p.forms.MayAbandon(ctx) })
}

// label is the text of an act's button.
func label(a registry.Act) string {
	switch a {
	case registry.ActUnhold:
		return "Release"
	case registry.ActRetryNow:
		return "Retry now"
	case registry.ActPriority:
		return "Change priority"
	default:
		return capital(strings.ReplaceAll(string(a), "-", " "))
	}
}

// actPage is the form of an act.
type actPage struct {
	Item         registry.WorkItem
	Command      registry.Command
	Stages       []registry.Stage // where a requeue may restart
	Priority     string
	NeedsReason  bool
	Consequences []string // if any, the caller must confirm them
	Refused      string   // why it was not done
}

// askAct shows the form of an act on a page of its own, which does not reload while the caller
// types.
func (p *pages) askAct(r *http.Request) (page, error) {
	it, err := p.actedOn(r)
	if err != nil {
		return page{}, err
	}
	act := registry.Act(r.URL.Query().Get("act"))
	if act == registry.ActAbandon && !p.forms.MayAbandon(r.Context()) {
		return page{}, errForbidden
	}
	if !slices.Contains(it.AllowedActs, act) {
		refusal := registry.Refuse(it.Position(), act, it.Status)
		refusal.ItemID = it.ID
		text := fmt.Sprintf("%s is not possible for %s in its present state (%s)", act, nameOf(it), it.State)
		if reason := refusal.Reason(); reason != "" {
			text += "; " + reason
		}
		return page{}, fmt.Errorf("%w: %s", errRefused, text)
	}
	// One key for each form shown: a form that is sent twice acts once.
	return actForm(actPage{Item: it, Command: registry.Command{ItemID: it.ID, Act: act, IdempotencyKey: "page " + rand.Text()}}), nil
}

func actForm(a actPage) page {
	a.Priority, a.NeedsReason = strconv.Itoa(a.Item.Priority), needsReason(a.Item, a.Command.Act)
	if a.Command.Priority != nil {
		a.Priority = strconv.Itoa(*a.Command.Priority)
	}
	if route, ok := a.Item.Route(); ok && a.Command.Act == registry.ActRequeue {
		a.Stages = route.UpTo(a.Item.Stage)
	}
	return page{Name: "act", Title: label(a.Command.Act) + ": " + nameOf(a.Item), Section: "status", Content: a}
}

// needsReason reports whether an act must have a reason.
func needsReason(it registry.WorkItem, act registry.Act) bool {
	asked, ok := it.Abandonment()
	return act == registry.ActHold || act == registry.ActAbandon && (!ok || !asked.Waits(time.Now()))
}

// actedOn returns the item of a form, or errForbidden if the caller may not act.
func (p *pages) actedOn(r *http.Request) (registry.WorkItem, error) {
	if p.forms == nil || !p.forms.MayAct(r.Context()) {
		return registry.WorkItem{}, errForbidden
	}
	return p.registry.Item(r.Context(), r.PathValue("id"))
}

// act does what a form asks and redirects to the item's page, which shows the event. If the act
// needs a confirmation or is refused, it shows the form again.
func (p *pages) act(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	it, err := p.actedOn(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	c, err := commandOf(r, it)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	before, err := p.registry.FeedEnd(ctx)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	after, err := p.forms.Command(ctx, c)
	var needed *registry.ConfirmationNeeded
	var transition *registry.TransitionError
	var late *registry.PastNoReturn
	switch form := (actPage{Item: it, Command: c}); {
	case errors.As(err, &needed):
		form.Consequences, form.Command.AgreesTo = needed.Consequences, needed.AgreesTo
		p.write(w, r, actForm(form), http.StatusConflict)
	case errors.As(err, &transition), errors.As(err, &late), errors.Is(err, registry.ErrIdempotencyConflict),
		errors.Is(err, registry.ErrSamePerson), errors.Is(err, registry.ErrNotFound): // ErrNotFound: the hold to release is on something else, such as the batch
		form.Refused = err.Error()
		form.Command.IdempotencyKey = "page " + rand.Text()
		p.write(w, r, actForm(form), http.StatusConflict)
	case err != nil:
		p.fail(w, r, err)
	default:
		p.log.InfoContext(ctx, "item commanded", "item", it.ID, "act", string(c.Act), "state", string(after.State))
		http.Redirect(w, r, p.afterAct(ctx, it, c.Act, before), http.StatusSeeOther)
	}
}

// commandOf reads the command of a form.
func commandOf(r *http.Request, it registry.WorkItem) (registry.Command, error) {
	if err := r.ParseForm(); err != nil {
		return registry.Command{}, fmt.Errorf("%w: the form could not be read", errBadQuery)
	}
	c := registry.Command{
		ItemID: it.ID, Act: registry.Act(r.PostForm.Get("act")), From: registry.Stage(r.PostForm.Get("from")),
		Reason: strings.TrimSpace(r.PostForm.Get("reason")), Confirmed: r.PostForm.Get("confirm") == "yes",
		AgreesTo: r.PostForm.Get("agrees_to"), IdempotencyKey: r.PostForm.Get("key"),
	}
	switch {
	case !isActOfPeople(c.Act):
		return c, fmt.Errorf("%w: unknown act %q", errBadQuery, c.Act)
	case c.Reason == "" && needsReason(it, c.Act):
		return c, fmt.Errorf("%w: %s needs a reason; it is shown with the item", errBadQuery, c.Act)
	}
	if err := checkLengths(c.Reason+c.AgreesTo, c.IdempotencyKey); err != nil {
		return c, err
	}
	if text := r.PostForm.Get("priority"); c.Act == registry.ActPriority {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return c, fmt.Errorf("%w: a priority is a whole number", errBadQuery)
		}
		c.Priority = &n
	}
	if c.Act != registry.ActRequeue {
		c.From = ""
	}
	return c, nil
}

// checkLengths refuses a reason or key longer than those of the pages' forms.
func checkLengths(reason, key string) error {
	const mostReason, mostKey = 2000, 200
	if len(reason) > mostReason || len(key) > mostKey {
		return fmt.Errorf("%w: the reason is longer than %d bytes", errBadQuery, mostReason)
	}
	return nil
}

// isActOfPeople reports whether people can ask an act at all.
func isActOfPeople(a registry.Act) bool {
	return slices.ContainsFunc(registry.Transitions(), func(t registry.Transition) bool { return t.Act == a && t.By == "admin" })
}

// afterAct is the address of an item's page that shows the event of an act. It is the plain page if
// there is no new event, because the form had already been sent.
func (p *pages) afterAct(ctx context.Context, it registry.WorkItem, act registry.Act, before int64) string {
	target := url.URL{Path: "/items/" + it.ID}
	if it.Action == registry.Batch {
		target.Path = "/batches/" + it.ID
	}
	events, err := p.registry.Events(ctx, it.ID, before, 50)
	if i := slices.IndexFunc(events, func(e registry.Event) bool { return e.Type == string(act) }); err == nil && i >= 0 {
		target.RawQuery = url.Values{"did": {strconv.FormatInt(events[i].Seq, 10)}}.Encode()
	}
	return target.String()
}

// did returns the event that a page was opened to show, or nil. It reads the event from the item's
// history, so that no address can make a page show an invented event.
func (p *pages) did(r *http.Request, itemID string) (*registry.Event, error) {
	seq, err := queryNumber(r, "did")
	if err != nil || seq == 0 {
		return nil, err
	}
	events, err := p.registry.Events(r.Context(), itemID, seq-1, 1)
	if err != nil || len(events) == 0 || events[0].Seq != seq {
		return nil, err
	}
	return &events[0], nil
}
