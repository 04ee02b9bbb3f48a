package function

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// processPage is the content of a process's page.
type processPage struct {
	registry.ProcessInfo

	Trace  []registry.TracedStep // the newest steps
	Older  string                // address of older steps
	MayAct bool
	Key    string // of the acts of this page: a form that is sent twice acts once
}

// Broken reports whether a step failed, so that only a retry or a repair helps. With a timer it is being
// tried again.
func (p processPage) Broken() bool { return p.Status == registry.ProcessFailed && p.Timer == nil }

// Callable reports whether the process takes calls: not before its first step, in error or when it is done.
func (p processPage) Callable() bool { return p.Status == registry.ProcessRunning }

// processURL is the address of a process's page.
func processURL(k registry.ProcessKey) string {
	return "/processes/" + url.PathEscape(k.Namespace) + "/" + url.PathEscape(k.ProcessID)
}

func processOf(r *http.Request) registry.ProcessKey {
	return registry.ProcessKey{Namespace: r.PathValue("namespace"), ProcessID: r.PathValue("process")}
}

// newestEvents is how many events, and steps, a process's page shows.
const newestEvents = 50

func (p pages) process(r *http.Request) (page.Page, error) {
	ctx, key := r.Context(), processOf(r)
	var content processPage
	var err error
	if content.ProcessInfo, err = p.API.Process(ctx, key, registry.HistoryRange{Backward: true, Limit: newestEvents}); err != nil {
		return page.Page{}, err
	}
	trace, err := p.API.TraceProcess(ctx, registry.TraceQuery{ProcessKey: key, After: r.URL.Query().Get("after"), Limit: newestEvents})
	if err != nil {
		return page.Page{}, err
	}
	content.Trace, content.Older, content.Key, content.MayAct = trace.Rows, page.Next(r, trace.Next), page.NewKey(), p.May(ctx, "call-process")
	return page.Page{Name: "process", Title: p.Texts(r).T("Process") + " " + key.String(), Section: "processes", Content: content}, nil
}

// actOnProcess calls, repairs, retries or removes a process. A call and a repair lead to their step.
func (p pages) actOnProcess(r *http.Request) (to string, again *page.Page, err error) {
	ctx, key := r.Context(), processOf(r)
	do, args := r.PostForm.Get("do"), strings.TrimSpace(r.PostForm.Get("args"))
	act := registry.ProcessAct{ProcessKey: key, Reason: strings.TrimSpace(r.PostForm.Get("reason")), IdempotencyKey: r.PostForm.Get("key")}
	call := registry.NewCall{ProcessKey: key, IdempotencyKey: act.IdempotencyKey}
	if args != "" {
		call.Args = json.RawMessage(args)
	}
	if !json.Valid(call.Args) && args != "" {
		return "", nil, page.Wrong("args", p.Texts(r).T("the arguments are not JSON; write text in quotes"))
	}
	to = processURL(key)
	var step registry.Answer
	switch do {
	case "call":
		step, err = p.API.CallProcess(ctx, call)
	case "repair":
		step, err = p.API.RepairProcess(ctx, call)
	case "retry":
		_, err = p.API.RetryProcess(ctx, act)
	case "remove":
		to = "/processes"
		err = p.API.RemoveProcess(ctx, act)
	default:
		err = page.Invalid("unknown act %.50q", do)
	}
	if step.ItemID != "" {
		to = "/items/" + url.PathEscape(step.ItemID)
	}
	return to, nil, err
}
