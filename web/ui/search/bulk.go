package search

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// bulkActs are the acts that the list offers for many items.
var bulkActs = []registry.Act{
	registry.ActRequeue, registry.ActRetryNow, registry.ActHold, registry.ActUnhold, registry.ActPriority, registry.ActCancel, registry.ActAbort, registry.ActDelete,
}

// graceSeconds is how long an act on many items can be withdrawn before it starts.
const graceSeconds = 30

// mostAtOnce is how many items the form counts before it is shown. If more match, the reader sees the
// form at once, and it counts then.
const mostAtOnce = 5000

// causesShown is how many causes the form of a requeue names.
const causesShown = 5

// bulkPage is the form of an act on many items.
type bulkPage struct {
	Act     registry.Act
	Query   string
	Chosen  []registry.WorkItem // what was chosen row by row, in place of the query
	Before  *earlierAct         // the same was asked before
	From    registry.Stage
	Stages  []registry.Stage // where a requeue may restart
	Counted string           // the address of the form with its counts, if it is shown without; then it cannot be sent
	Most    int              // that many items match, or more
	Preview registry.BulkPreview
	Causes  []page.FailureGroup // of a requeue: why its items failed, the largest groups first
	More    bool                // there are more causes
	Back    string
	Key     string
	Reason  string
	Grace   int
	Now     bool // it starts at once
	// NeedsReason and Dangerous say what the form asks for.
	NeedsReason, Dangerous bool
}

// Skipped is the number of items that the act does not change.
func (b bulkPage) Skipped() int64 { return b.Preview.Matched - b.Preview.Applies }

// askBulk shows what an act on many items would do.
func (p pages) askBulk(r *http.Request) (page.Page, error) {
	if !p.May(r.Context(), "bulk") {
		return page.Page{}, page.Forbidden()
	}
	form := r.URL.Query()
	b, err := p.bulkOf(form)
	if err != nil {
		return page.Page{}, err
	}
	if form.Get("counted") != "yes" {
		match, err := query.Parse(b.Query)
		if err != nil {
			return page.Page{}, page.Invalid("%v", err)
		}
		if p.count(r.Context(), match, mostAtOnce) >= mostAtOnce {
			b.Counted, b.Most = page.With(r, "counted", "yes"), mostAtOnce
			return page.Page{Name: "bulk", Title: p.Texts(r).T(page.Label(b.Act)), Section: "items", Content: b}, nil
		}
	}
	b.Key = page.NewKey()
	return p.bulkForm(r, b)
}

// bulkForm fills in the preview.
func (p pages) bulkForm(r *http.Request, b bulkPage) (page.Page, error) {
	var err error
	b.Preview, err = p.API.PreviewBulk(r.Context(), wire.BulkRequest{Query: b.Query, CommandRequest: wire.CommandRequest{Act: string(b.Act), From: string(b.From)}})
	if err != nil {
		return page.Page{}, err
	}
	match, err := query.Parse(b.Query)
	if err != nil {
		return page.Page{}, page.Invalid("%v", err)
	}
	if b.Chosen, err = p.chosen(r.Context(), match); err != nil {
		return page.Page{}, err
	}
	if b.Before, err = p.earlier(r.Context(), b); err != nil {
		return page.Page{}, err
	}
	if b.Act == registry.ActRequeue && slices.ContainsFunc(b.Preview.Parts, func(part registry.BulkPart) bool { return part.State == registry.StateFailed }) {
		failures, err := p.FailuresOf(r.Context(), match)
		if err != nil {
			return page.Page{}, err
		}
		b.Causes, b.More = failures.Groups[:min(len(failures.Groups), causesShown)], failures.More || len(failures.Groups) > causesShown
	}
	t := p.Texts(r)
	return page.Page{Name: "bulk", Title: t.T(page.Label(b.Act)) + ": " + t.T("%d item|%d items", b.Preview.Applies), Section: "items", Content: b}, nil
}

// chosen returns the items that a query names one by one, at most a page of them; nil if it asks for
// anything else.
func (p pages) chosen(ctx context.Context, match registry.Query) ([]registry.WorkItem, error) {
	if match.Chosen() == nil {
		return nil, nil
	}
	list, err := p.API.Items(ctx, registry.ItemQuery{Match: match, Limit: rowsShown})
	return list.Rows, err
}

// earlierAct is an act on the same items that was asked for before a form was shown.
type earlierAct struct {
	Item registry.WorkItem
	Own  bool // the viewer asked for it
}

// justNow is how long ago an act is mentioned that has ended: a form that is shown again within it, by
// going back from the act's page, most often asks for the same by mistake.
const justNow = 10 * time.Minute

// actsCompared bounds how many earlier acts are compared with a form's.
const actsCompared = 100

// earlier finds the newest act like a form's that has not ended, or that the viewer asked for just now;
// nil if there is none.
func (p pages) earlier(ctx context.Context, b bulkPage) (*earlierAct, error) {
	me := p.Caller(ctx).Name
	list, err := p.API.Items(ctx, registry.ItemQuery{Action: registry.Bulk, Limit: actsCompared})
	if err != nil {
		return nil, err
	}
	for _, it := range list.Rows {
		spec, ok := registry.BulkSpecIn(it.Spec)
		own := it.CreatedBy == me
		if !ok || spec.Act != b.Act || spec.Match.String() != b.Query || it.Status.Settled() && (!own || p.since(it.CreatedAt) > justNow) {
			continue
		}
		return &earlierAct{it, own}, nil
	}
	return nil, nil
}

// since returns how long ago a time was.
func (p pages) since(then time.Time) time.Duration {
	if p.Now != nil {
		return p.Now().Sub(then)
	}
	return time.Since(then)
}

// bulkOf reads what an address or a form asks: the chosen rows, or all that match.
func (p pages) bulkOf(form url.Values) (bulkPage, error) {
	b := bulkPage{
		Act: registry.Act(form.Get("act")), From: registry.Stage(form.Get("from")), Key: form.Get("key"), Reason: strings.TrimSpace(form.Get("reason")),
		Grace: graceSeconds, Now: form.Get("now") == "yes",
	}
	if !slices.Contains(bulkActs, b.Act) {
		return b, page.Invalid("%q is not an act for many items", b.Act)
	}
	text := form.Get("q")
	if ids := form["id"]; form.Get("all") != "yes" {
		if len(ids) == 0 {
			return b, page.Invalid("no row is chosen; choose some, or all that match")
		}
		text = "id:" + strings.Join(ids, ",")
	}
	q, err := query.Parse(text)
	if err != nil {
		return b, page.Invalid("%v", err)
	}
	if len(q.Terms) == 0 {
		return b, page.Invalid("the query is empty, and would select everything; give it a condition")
	}
	b.Query, b.Back = q.String(), withQuery(url.Values{}, q)
	b.NeedsReason = b.Act == registry.ActHold
	b.Dangerous = b.Act == registry.ActAbort || b.Act == registry.ActDelete || b.Act == registry.ActCancel
	if route, ok := registry.RouteOf(registry.Ingest); ok && b.Act == registry.ActRequeue {
		for _, s := range route.Steps {
			b.Stages = append(b.Stages, s.Stage)
		}
		if b.From != "" && !slices.Contains(b.Stages, b.From) {
			b.Stages = append(b.Stages, b.From) // of another kind of item
		}
	} else {
		b.From = ""
	}
	return b, nil
}

// startBulk starts the act of a form, and leads to the page of its progress.
func (p pages) startBulk(r *http.Request) (string, *page.Page, error) {
	if !p.May(r.Context(), "bulk") {
		return "", nil, page.Forbidden()
	}
	r.PostForm.Set("all", "yes") // the form has the query of what was chosen
	b, err := p.bulkOf(r.PostForm)
	if err != nil {
		return "", nil, err
	}
	if err := p.CheckReason(r, b.Reason, b.Key, b.NeedsReason); err != nil {
		return "", nil, err
	}
	ask := wire.BulkRequest{Query: b.Query, GraceSeconds: graceSeconds, CommandRequest: wire.CommandRequest{
		Act: string(b.Act), From: string(b.From), Reason: b.Reason, Confirm: true,
	}}
	if b.Now {
		ask.GraceSeconds = 0
	}
	if b.Dangerous && r.PostForm.Get("confirm") != "yes" {
		return "", nil, page.Wrong("confirm", p.Texts(r).T("tick this to confirm"))
	}
	if b.Act == registry.ActPriority {
		n, err := p.NumberOf(r, "priority")
		if err != nil {
			return "", nil, err
		}
		ask.Priority = &n
	}
	it, err := p.API.Bulk(r.Context(), ask, b.Key)
	if err != nil {
		return "", nil, err
	}
	return "/bulk/" + it.ID, nil, nil
}

// progressPage is the content of the progress of an act on many items.
type progressPage struct {
	Item     registry.WorkItem
	Spec     registry.BulkSpec
	Done     registry.BulkProgress
	Query    string
	Chosen   []registry.WorkItem // what was chosen row by row, in place of the query
	Title    string
	List     string         // the items that match now
	Withdraw bool           // it has not started: it can be withdrawn as a whole
	Stop     bool           // it runs: it can be stopped
	Rate     float64        // items a second; 0: unknown
	Left     *time.Duration // until its end; nil: unknown
	Unused   bool           // withdrawn before it changed anything
	Pending  bool
}

// Gone is how many items matched when it was asked for, and did not when it came to them.
func (b progressPage) Gone() int64 {
	if b.Item.Status != registry.Completed {
		return 0
	}
	return max(b.Done.Matched-b.Handled(), 0)
}

// Handled is how many items it has looked at.
func (b progressPage) Handled() int64 { return b.Done.Applied + b.Done.Refused }

// Most is what a bar of Handled ends at.
func (b progressPage) Most() int64 { return max(b.Done.Matched, b.Handled(), 1) }

func (p pages) progress(r *http.Request) (page.Page, error) {
	ctx, id := r.Context(), r.PathValue("id")
	it, err := p.API.Item(ctx, id)
	if err != nil {
		return page.Page{}, err
	}
	b := progressPage{Item: it}
	if it.Action != registry.Bulk || json.Unmarshal(it.Spec, &b.Spec) != nil {
		return page.Page{}, page.NotFound("act " + id)
	}
	if raw, begun := it.Results[registry.ResultBulk]; begun {
		_ = json.Unmarshal(raw, &b.Done) // a progress that cannot be read is none
	}
	b.Done.Matched, b.Query, b.List = b.Spec.Matched, b.Spec.Match.String(), withQuery(url.Values{}, b.Spec.Match)
	if b.Chosen, err = p.chosen(ctx, b.Spec.Match); err != nil {
		return page.Page{}, err
	}
	if b.Title = page.BulkSubject(p.Texts(r), b.Spec); b.Spec.Parent != "" {
		b.List = "/batches/" + url.PathEscape(b.Spec.Parent)
	}
	b.Pending = it.Status == registry.Pending && it.Attempt == 0
	may := p.MayAct(ctx) && slices.Contains(it.AllowedActs, registry.ActCancel)
	b.Withdraw, b.Stop = may && b.Pending, may && !b.Pending
	b.Unused = it.Status == registry.Cancelled && b.Handled() == 0
	if it.Status == registry.Running && b.Handled() > 0 {
		attempts, err := p.API.Attempts(ctx, id)
		if err != nil {
			return page.Page{}, err
		}
		if len(attempts) > 0 {
			if ran := it.UpdatedAt.Sub(attempts[0].StartedAt).Seconds(); ran > 0 {
				b.Rate = float64(b.Handled()) / ran
				left := time.Duration(float64(b.Most()-b.Handled()) / b.Rate * float64(time.Second))
				b.Left = &left
			}
		}
	}
	return page.Page{Name: "progress", Title: p.Heading(r, it), Section: "items", Live: !it.Status.Settled(), Alike: true, Content: b}, nil
}

// stop cancels an act on many items: before its start as a whole, later what is left of it.
func (p pages) stop(r *http.Request) (string, *page.Page, error) {
	id := r.PathValue("id")
	it, err := p.API.Item(r.Context(), id)
	if err != nil {
		return "", nil, err
	}
	if it.Action != registry.Bulk {
		return "", nil, page.NotFound("act " + id)
	}
	_, err = p.API.Command(r.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Reason: "stopped on its page", Confirmed: true, IdempotencyKey: "stop " + id + " " + strconv.Itoa(it.RetryCount)})
	return "/bulk/" + id, nil, err
}
