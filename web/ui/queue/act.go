package queue

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// operation is an act on the whole queue or on a worker. Its texts are in the viewer's language.
type operation struct {
	Do      string
	Title   string
	Means   string // what follows from it
	Button  string
	Danger  bool
	Minutes bool // asks how long running steps may take
	Worker  bool // is about a worker
	needs   string
	act     func(ctx context.Context, p pages, f operateForm) error
}

// operateForm is what the form of an operation says.
type operateForm struct {
	Reason, Worker string
	Stop           time.Duration
}

// acts are the acts of the page. Resuming and accepting need no form of their own, but have
// one, so that their consequences are seen before.
func (p pages) acts(r *http.Request) []operation {
	t := p.Texts(r)
	hold := func(scope registry.HoldScope) func(context.Context, pages, operateForm) error {
		return func(ctx context.Context, p pages, f operateForm) error {
			return p.API.AddHold(ctx, registry.Hold{Scope: scope, Key: f.Worker, Reason: f.Reason})
		}
	}
	return []operation{
		{
			Do: "pause", Title: t.T("Pause deposits"), Button: t.T("Pause"), needs: "add-hold", act: hold(registry.HoldIngest),
			Means: t.T("Running steps finish. No deposit starts its next step until the queue is resumed; nothing is lost. Fixity checks, restores and mails go on."),
		},
		{
			Do: "resume", Title: t.T("Resume"), Button: t.T("Resume"), needs: "remove-hold", act: resume,
			Means: t.T("What waits because of the pause starts as soon as there is a free slot. Other holds stay."),
		},
		{
			Do: "drain", Title: t.T("Drain"), Button: t.T("Drain"), Danger: true, Minutes: true, needs: "drain",
			Means: t.T("Everything is held, and running steps stop at their next safe point. What still runs after the time is taken away from its worker; it goes on later from where it stood, and no try is counted. When nothing is left, workers can be stopped or upgraded."),
			act:   func(ctx context.Context, p pages, f operateForm) error { return p.API.Drain(ctx, f.Reason, f.Stop) },
		},
		{
			Do: "refuse", Title: t.T("Refuse submissions"), Button: t.T("Refuse submissions"), Danger: true, needs: "set-accepting",
			Means: t.T("New submissions are answered with the reason and asked to come back later. What was submitted before goes on."),
			act: func(ctx context.Context, p pages, f operateForm) error {
				return p.API.SetAccepting(ctx, registry.Accepting{Reason: f.Reason})
			},
		},
		{
			Do: "accept", Title: t.T("Accept submissions"), Button: t.T("Accept submissions"), needs: "set-accepting",
			Means: t.T("Depositors can submit again."),
			act: func(ctx context.Context, p pages, f operateForm) error {
				return p.API.SetAccepting(ctx, registry.Accepting{On: true, Reason: f.Reason})
			},
		},
		{
			Do: "hold-worker", Title: t.T("Drain this worker"), Button: t.T("Drain this worker"), Worker: true, needs: "add-hold", act: hold(registry.HoldWorker),
			Means: t.T("The worker gets no further items; its running steps finish. When none of its slots is busy, its process can be stopped without loss. The name of its host holds all workers there, also later ones."),
		},
	}
}

// resume removes the hold on everything or on all deposits.
func resume(ctx context.Context, p pages, _ operateForm) error {
	q, err := p.API.QueueStatus(ctx)
	if err != nil || q.Paused == nil {
		return err
	}
	return p.API.RemoveHold(ctx, q.Paused.Scope, q.Paused.Key)
}

// operatePage is the content of an operation's form.
type operatePage struct {
	operation

	Form  operateForm
	Queue registry.QueueStatus
}

// Reasoned says that the operation needs a reason.
func (o operatePage) Reasoned() bool { return o.Do != "resume" && o.Do != "accept" }

// Mins is the time of a drain, in minutes.
func (o operatePage) Mins() int { return int(o.Form.Stop / time.Minute) }

const defaultStop = 10 * time.Minute

// askAct shows the form of an operation.
func (p pages) askAct(r *http.Request) (page.Page, error) {
	o, err := p.operationOf(r, r.URL.Query().Get("do"))
	if err != nil {
		return page.Page{}, err
	}
	return p.operate(r, operatePage{operation: o, Form: operateForm{Worker: r.URL.Query().Get("worker"), Stop: defaultStop}})
}

func (p pages) operationOf(r *http.Request, do string) (operation, error) {
	for _, o := range p.acts(r) {
		if o.Do != do {
			continue
		}
		if !p.May(r.Context(), o.needs) {
			return o, page.Forbidden()
		}
		return o, nil
	}
	return operation{}, page.Invalid("the address names no act")
}

func (p pages) operate(r *http.Request, o operatePage) (page.Page, error) {
	var err error
	o.Queue, err = p.API.QueueStatus(r.Context())
	return page.Page{Name: "operate", Title: o.Title, Section: "operations", Content: o}, err
}

// act does what the form asks, and leads back to the operations.
func (p pages) act(r *http.Request) (string, *page.Page, error) {
	o, err := p.operationOf(r, r.PostForm.Get("do"))
	if err != nil {
		return "", nil, err
	}
	f := operateForm{Reason: strings.TrimSpace(r.PostForm.Get("reason"))}
	if o.Worker {
		f.Worker = strings.TrimSpace(r.PostForm.Get("worker"))
	}
	if o.Minutes {
		n, err := p.NumberOf(r, "minutes")
		if err != nil {
			return "", nil, err
		}
		if n < 0 {
			return "", nil, page.Wrong("minutes", p.Texts(r).T("a time cannot be below 0"))
		}
		f.Stop = time.Duration(n) * time.Minute
	}
	return "/operations", nil, o.act(r.Context(), p, f)
}

// limit sets or removes a limit, and leads back to the operations.
func (p pages) limit(r *http.Request) (string, *page.Page, error) {
	const back = "/operations#limits"
	scope, key := registry.HoldScope(r.PostForm.Get("scope")), strings.TrimSpace(r.PostForm.Get("key"))
	if r.PostForm.Get("do") == "remove" {
		return back, nil, p.API.RemoveLimit(r.Context(), scope, key)
	}
	l := registry.Limit{Scope: scope, Key: key}
	for name, into := range map[string]*int{"most": &l.Most, "weight": &l.Weight} {
		if strings.TrimSpace(r.PostForm.Get(name)) == "" {
			continue
		}
		n, err := p.NumberOf(r, name)
		if err != nil {
			return "", nil, err
		}
		*into = n
	}
	return back, nil, p.API.SetLimit(r.Context(), l)
}
