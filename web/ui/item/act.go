package item

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// actPage is the form of an act.
type actPage struct {
	Item        registry.WorkItem
	Command     registry.Command
	Stages      []registry.Stage // where a requeue may restart
	Priority    string
	NeedsReason bool
	Effects     []string           // what the act does
	Confirm     *wire.Problem      // has consequences that cannot be undone, which the form confirms; nil: there are none
	After       *registry.WorkItem // the item as it would be; nil: unknown
	Refused     *wire.Problem
}

// askAct shows the form of an act on a page of its own.
func (p pages) askAct(r *http.Request) (page.Page, error) {
	it, err := p.actedOn(r)
	if err != nil {
		return page.Page{}, err
	}
	act := registry.Act(r.URL.Query().Get("act"))
	if act == registry.ActAbandon && !slices.Contains(p.ButtonsOf(r.Context(), it).Acts, act) && slices.Contains(it.AllowedActs, act) {
		return page.Page{}, page.Forbidden()
	}
	if !slices.Contains(it.AllowedActs, act) {
		refusal := registry.Refuse(it.Position(), act, it.Status)
		refusal.ItemID = it.ID
		if reason := refusal.Reason(); reason != "" {
			return page.Page{}, page.Refused("%v is not possible for %s in its present state (%v); %v", act, p.Heading(r, it), it.State, reason)
		}
		return page.Page{}, page.Refused("%v is not possible for %s in its present state (%v)", act, p.Heading(r, it), it.State)
	}
	form := actPage{Item: it, Command: registry.Command{ItemID: it.ID, Act: act, From: registry.Stage(r.URL.Query().Get("from"))}}
	if err := p.preview(r.Context(), &form); err != nil {
		return page.Page{}, err
	}
	form.Command.IdempotencyKey = page.NewKey()
	return p.actForm(r, form), nil
}

// preview asks what the act of a form would do, and changes nothing.
func (p pages) preview(ctx context.Context, form *actPage) error {
	ask := form.Command
	ask.DryRun, ask.Reason = true, "preview"
	if ask.Act == registry.ActPriority {
		ask.Priority = &form.Item.Priority
	}
	for {
		after, err := p.API.Command(ctx, ask)
		refusal, ok := page.Refusal(err)
		switch {
		case ok && refusal.Code == wire.CodeConfirm && !ask.Confirmed:
			form.Confirm, form.Command.AgreesTo = refusal, refusal.AgreesTo
			ask.Confirmed, ask.AgreesTo = true, refusal.AgreesTo
			continue
		case ok:
			form.Refused = refusal
			return nil
		case err != nil:
			return err
		}
		form.After = &after
		return nil
	}
}

// effectsOf says what an act does, in the viewer's language.
func effectsOf(t lang.Texts, it registry.WorkItem, act registry.Act) []string {
	switch act {
	case registry.ActRequeue:
		return []string{t.T("It becomes due at once, at the stage where it failed or at an earlier one, with all its tries."), t.T("At the stage where it failed it goes on from what it had done; from an earlier stage on, everything is checked again.")}
	case registry.ActRetryNow:
		return []string{t.T("Its next try starts as soon as a worker is free."), t.T("The tries that it had stay counted.")}
	case registry.ActHold:
		if it.Action == registry.Batch {
			return []string{t.T("Neither the batch nor its jobs start a further step until somebody releases the hold."), t.T("Steps that run now are finished first.")}
		}
		return []string{t.T("It starts no further step until somebody releases the hold."), t.T("A step that runs now is finished first.")}
	case registry.ActUnhold:
		return []string{t.T("It goes on, unless another hold covers it, too.")}
	case registry.ActPriority:
		return []string{t.T("Among items that wait for the same stage, lower numbers start first. Numbers below 0 are for express work.")}
	case registry.ActCancel:
		if it.Action == registry.Batch {
			return []string{t.T("The batch and those of its jobs that have not ended are stopped, even running ones."), t.T("They can be requeued later.")}
		}
		return []string{t.T("It is stopped, even if it runs."), t.T("It can be requeued later, and goes on from what it had done.")}
	case registry.ActAbort:
		return []string{t.T("It ends for good, with everything that waits for its success.")}
	case registry.ActDelete:
		return []string{t.T("It is given up: what it has in staging is removed. Preserved objects stay.")}
	case registry.ActPurge:
		return []string{t.T("Its rows are removed from the lists. Its events, and everything preserved, stay.")}
	case registry.ActUpdateReport:
		return []string{t.T("A report is made of what has changed since the last one.")}
	case registry.ActGiveUp:
		return []string{t.T("The job completes without telling its receiver, and records that nobody was told.")}
	case registry.ActAbandon:
		return []string{t.T("The version that the job announced, which nobody can see, is given up once a second admin agrees.")}
	}
	return nil
}

func (p pages) actForm(r *http.Request, a actPage) page.Page {
	a.Effects = effectsOf(p.Texts(r), a.Item, a.Command.Act)
	a.Priority, a.NeedsReason = strconv.Itoa(a.Item.Priority), needsReason(a.Item, a.Command.Act)
	if a.Command.Priority != nil {
		a.Priority = strconv.Itoa(*a.Command.Priority)
	}
	if route, ok := a.Item.Route(); ok && a.Command.Act == registry.ActRequeue {
		a.Stages = route.UpTo(a.Item.Stage)
	}
	return page.Page{Name: "act", Title: p.Texts(r).T(page.Label(a.Command.Act)) + ": " + p.Heading(r, a.Item), Section: "items", Content: a}
}

// needsReason reports whether an act must have a reason.
func needsReason(it registry.WorkItem, act registry.Act) bool {
	asked, ok := it.Abandonment()
	return act == registry.ActHold || act == registry.ActAbandon && (!ok || !asked.Waits(time.Now()))
}

// actedOn returns the item of a form, or an error if the viewer may not act.
func (p pages) actedOn(r *http.Request) (registry.WorkItem, error) {
	if !p.MayAct(r.Context()) {
		return registry.WorkItem{}, page.Forbidden()
	}
	return p.API.Item(r.Context(), r.PathValue("id"))
}

// act does what a form asks and leads to the item's page, which shows the event. If the act needs a
// confirmation or is refused, it shows the form again.
func (p pages) act(r *http.Request) (string, *page.Page, error) {
	ctx := r.Context()
	it, err := p.API.Item(ctx, r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	c, err := p.commandOf(r, it)
	if err != nil {
		return "", nil, err
	}
	before, err := p.Changes.FeedEnd(ctx)
	if err != nil {
		return "", nil, err
	}
	_, err = p.API.Command(ctx, c)
	form := actPage{Item: it, Command: c}
	switch refusal, ok := page.Refusal(err); {
	case ok && refusal.Code == wire.CodeConfirm:
		form.Confirm, form.Command.AgreesTo = refusal, refusal.AgreesTo
	case err != nil:
		return "", nil, err
	default:
		return p.afterAct(ctx, it, c.Act, before), nil, nil
	}
	again := p.actForm(r, form)
	return "", &again, nil
}

// commandOf reads the command of a form.
func (p pages) commandOf(r *http.Request, it registry.WorkItem) (registry.Command, error) {
	c := registry.Command{
		ItemID: it.ID, Act: registry.Act(r.PostForm.Get("act")), From: registry.Stage(r.PostForm.Get("from")),
		Reason: strings.TrimSpace(r.PostForm.Get("reason")), Confirmed: r.PostForm.Get("confirm") == "yes",
		AgreesTo: r.PostForm.Get("agrees_to"), IdempotencyKey: r.PostForm.Get("key"),
	}
	if !slices.Contains(registry.AdminActs(), c.Act) {
		return c, page.Invalid("unknown act %.50q", c.Act)
	}
	if err := p.CheckReason(r, c.Reason, c.IdempotencyKey, needsReason(it, c.Act)); err != nil {
		return c, err
	}
	if c.Act == registry.ActPriority {
		n, err := p.NumberOf(r, "priority")
		if err != nil {
			return c, err
		}
		c.Priority = &n
	}
	if c.Act != registry.ActRequeue {
		c.From = ""
	}
	return c, nil
}

// afterAct is the address of an item's page that shows the event of an act. It is the plain page if
// there is no new event, because the form had already been sent, and the list of items if the act has
// removed the item.
func (p pages) afterAct(ctx context.Context, it registry.WorkItem, act registry.Act, before int64) string {
	if act == registry.ActPurge {
		if _, err := p.API.Item(ctx, it.ID); errors.Is(err, registry.ErrNotFound) {
			return "/items"
		}
	}
	target := url.URL{Path: "/items/" + it.ID}
	if it.Action == registry.Batch {
		target.Path = "/batches/" + it.ID
	}
	events, err := p.API.Events(ctx, it.ID, before, 50)
	if i := slices.IndexFunc(events, func(e registry.Event) bool { return e.Type == string(act) }); err == nil && i >= 0 {
		target.RawQuery = url.Values{"did": {strconv.FormatInt(events[i].Seq, 10)}}.Encode()
	}
	return target.String()
}

// did returns the event that a page was opened to show, or nil. It reads the event from the item's
// history, so that no address can make a page show an invented event.
func (p pages) did(r *http.Request, itemID string) (*registry.Event, error) {
	seq, err := page.Number(r, "did")
	if err != nil || seq == 0 {
		return nil, err
	}
	events, err := p.API.Events(r.Context(), itemID, seq-1, 1)
	if err != nil || len(events) == 0 || events[0].Seq != seq {
		return nil, err
	}
	return &events[0], nil
}
