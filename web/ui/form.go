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

// Forms carries out what the pages ask for whoever has logged in. Every method judges by the
// request's context who that is.
type Forms interface {
	// MayAct says whether who asks may ask acts at all: who may not sees no buttons.
	MayAct(ctx context.Context) bool
	// MayAbandon says whether who asks may ask act abandon.
	MayAbandon(ctx context.Context) bool
	// Command is that of registry.Commanding, in the name of who asks.
	Command(ctx context.Context, c registry.Command) (registry.WorkItem, error)
	// Bulk is that of registry.Commanding, in the name of who asks.
	Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error)
	// RemoveHold is that of registry.Holding, in the name of who asks.
	RemoveHold(ctx context.Context, scope registry.HoldScope, key string) error
	// Decisions are those that who asks may make after the last deletion of an object that was
	// asked for; nil: none was.
	Decisions(ctx context.Context, last *registry.Deletion) []registry.Decision
	// Decide makes one of them, in the name of who asks, as registry.Deciding does; the reason is
	// that of asking.
	Decide(ctx context.Context, objectID string, d registry.Decision, reason string) (registry.Deletion, error)
}

// buttons are the acts that who asks may ask of an item.
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

// mayAsk are the acts of an item that somebody may ask who may act.
func (p *pages) mayAsk(ctx context.Context, it registry.WorkItem) []registry.Act {
	return slices.DeleteFunc(slices.Clone(it.AllowedActs), func(a registry.Act) bool { return a == registry.ActAbandon && !p.forms.MayAbandon(ctx) })
}

// label is what a button says.
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

// actPage is the form of an act: its reason, what the act needs to know, and what follows from it.
type actPage struct {
	Item         registry.WorkItem
	Command      registry.Command
	Stages       []registry.Stage // where a requeue may begin
	Priority     string
	NeedsReason  bool
	Consequences []string // not empty: they must be confirmed
	Refused      string   // why it was not done
}

// askAct shows the form of an act. It is a page of its own, which does not load itself again under
// whoever types.
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
		text := fmt.Sprintf("%s cannot be asked of %s as it is now (%s)", act, nameOf(it), it.State)
		if reason := refusal.Reason(); reason != "" {
			text += "; " + reason
		}
		return page{}, fmt.Errorf("%w: %s", errRefused, text)
	}
	// One key for one showing of the form: sent twice, it acts once.
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

// needsReason says whether an act is not asked for without one: who comes across it is shown why.
func needsReason(it registry.WorkItem, act registry.Act) bool {
	asked, ok := it.Abandonment()
	return act == registry.ActHold || act == registry.ActAbandon && (!ok || !asked.Waits(time.Now()))
}

// actedOn is the item of a form, for whoever may ask acts.
func (p *pages) actedOn(r *http.Request) (registry.WorkItem, error) {
	if p.forms == nil || !p.forms.MayAct(r.Context()) {
		return registry.WorkItem{}, errForbidden
	}
	return p.registry.Item(r.Context(), r.PathValue("id"))
}

// act carries an act out and goes back to the item's page, which shows what happened. What needs a
// confirmation, or was refused, is shown in the form.
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
		errors.Is(err, registry.ErrSamePerson), errors.Is(err, registry.ErrNotFound): // a hold that is released: another one, elsewhere, keeps the item
		form.Refused = err.Error()
		form.Command.IdempotencyKey = "page " + rand.Text()
		p.write(w, r, actForm(form), http.StatusConflict)
	case err != nil:
		p.fail(w, r, err)
	default:
		p.log.InfoContext(ctx, "item commanded", "item", it.ID, "act", string(c.Act), "state", string(after.State))
		http.Redirect(w, r, p.happened(ctx, it, c.Act, before), http.StatusSeeOther)
	}
}

// commandOf reads a form.
func commandOf(r *http.Request, it registry.WorkItem) (registry.Command, error) {
	if err := r.ParseForm(); err != nil {
		return registry.Command{}, fmt.Errorf("%w: the form cannot be read", errBadQuery)
	}
	c := registry.Command{
		ItemID: it.ID, Act: registry.Act(r.PostForm.Get("act")), From: registry.Stage(r.PostForm.Get("from")),
		Reason: strings.TrimSpace(r.PostForm.Get("reason")), Confirmed: r.PostForm.Get("confirm") == "yes",
		AgreesTo: r.PostForm.Get("agrees_to"), IdempotencyKey: r.PostForm.Get("key"),
	}
	switch {
	case !isActOfPeople(c.Act):
		return c, fmt.Errorf("%w: there is no act %q", errBadQuery, c.Act)
	case c.Reason == "" && needsReason(it, c.Act):
		return c, fmt.Errorf("%w: %s needs a reason; whoever comes across it is shown it", errBadQuery, c.Act)
	}
	if err := boundForm(c.Reason+c.AgreesTo, c.IdempotencyKey); err != nil {
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

// boundForm refuses a reason or key that no form of ours sends.
func boundForm(reason, key string) error {
	const mostReason, mostKey = 2000, 200
	if len(reason) > mostReason || len(key) > mostKey {
		return fmt.Errorf("%w: a reason has at most %d bytes", errBadQuery, mostReason)
	}
	return nil
}

// isActOfPeople says whether the state machine has the act for people at all.
func isActOfPeople(a registry.Act) bool {
	return slices.ContainsFunc(registry.Transitions(), func(t registry.Transition) bool { return t.Act == a && t.By == "admin" })
}

// happened is the address of an item's page that shows the event of an act; that of the page alone
// when there is none, since the form had been sent before.
func (p *pages) happened(ctx context.Context, it registry.WorkItem, act registry.Act, before int64) string {
	home := url.URL{Path: "/items/" + it.ID}
	if it.Action == registry.Batch {
		home.Path = "/batches/" + it.ID
	}
	events, err := p.registry.Events(ctx, it.ID, before, 50)
	if i := slices.IndexFunc(events, func(e registry.Event) bool { return e.Type == string(act) }); err == nil && i >= 0 {
		home.RawQuery = url.Values{"did": {strconv.FormatInt(events[i].Seq, 10)}}.Encode()
	}
	return home.String()
}

// did is the event that a page was opened to show, nil for none. It is read from the item's
// history, so that no address makes a page say what did not happen.
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
