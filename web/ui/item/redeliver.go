package item

import (
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// redeliverPage is the form that delivers a job's outcome again.
type redeliverPage struct {
	Item registry.WorkItem
	Key  string
}

func (p pages) askRedeliver(r *http.Request) (page.Page, error) {
	if !p.May(r.Context(), "redeliver-item") {
		return page.Page{}, page.Forbidden()
	}
	it, err := p.API.Item(r.Context(), r.PathValue("id"))
	if err != nil {
		return page.Page{}, err
	}
	form := redeliverPage{Item: it, Key: page.NewKey()}
	return page.Page{Name: "redeliver", Title: p.Texts(r).T("Deliver again") + ": " + it.Heading(), Section: "items", Content: form}, nil
}

// redeliver enqueues the delivery, and leads to the page of its item.
func (p pages) redeliver(r *http.Request) (string, *page.Page, error) {
	reason, key := strings.TrimSpace(r.PostForm.Get("reason")), r.PostForm.Get("key")
	if err := p.CheckReason(r, reason, key, false); err != nil {
		return "", nil, err
	}
	delivery, err := p.API.Redeliver(r.Context(), r.PathValue("id"), reason, key)
	if err != nil {
		return "", nil, err
	}
	return "/items/" + delivery.ID, nil, nil
}

// redeliveredByForm is how often one form asks for the deliveries of further jobs: of 5,000 jobs.
const redeliveredByForm = 20

// redeliverJobsPage is the form that delivers the outcomes of a batch's jobs again.
type redeliverJobsPage struct {
	Batch    registry.WorkItem
	Progress registry.BatchProgress
	After    string // where an earlier form ended; "": at the beginning
	Queued   int64  // deliveries by earlier forms
	Most     int    // jobs of one form
	Reason   string
	Key      string
}

// Told is how many jobs have an outcome.
func (f redeliverJobsPage) Told() int64 {
	return f.Progress.Completed + f.Progress.Failed + f.Progress.Preserved
}

func (p pages) askRedeliverJobs(r *http.Request) (page.Page, error) {
	return p.redeliverJobsForm(r, redeliverJobsPage{After: r.URL.Query().Get("after")})
}

func (p pages) redeliverJobsForm(r *http.Request, f redeliverJobsPage) (shown page.Page, err error) {
	ctx := r.Context()
	if !p.May(ctx, "redeliver-jobs") {
		return page.Page{}, page.Forbidden()
	}
	if f.Batch, err = p.API.Batch(ctx, r.PathValue("id")); err != nil {
		return page.Page{}, err
	}
	if f.Progress, err = p.API.BatchProgress(ctx, f.Batch.ID); err != nil {
		return page.Page{}, err
	}
	f.Key, f.Most = page.NewKey(), redeliveredByForm*registry.RedeliveredAtOnce
	return page.Page{Name: "redeliverjobs", Title: p.Texts(r).T("Deliver again") + ": " + f.Batch.Heading(), Section: "deposits", Content: f}, nil
}

// redeliverJobs queues the deliveries, and leads to them. Of a large batch with more jobs than one
// form takes it shows the form again, for the rest.
func (p pages) redeliverJobs(r *http.Request) (string, *page.Page, error) {
	f := redeliverJobsPage{After: r.PostForm.Get("after"), Reason: strings.TrimSpace(r.PostForm.Get("reason"))}
	key := r.PostForm.Get("key")
	if err := p.CheckReason(r, f.Reason, key, false); err != nil {
		return "", nil, err
	}
	for range redeliveredByForm {
		// Each call has a key of its own, so that a form that is sent twice acts once.
		done, err := p.API.RedeliverJobs(r.Context(), r.PathValue("id"), f.After, f.Reason, key+" "+f.After)
		if err != nil {
			return "", nil, err
		}
		f.Queued, f.After = f.Queued+done.Queued, done.Next
		if f.After == "" {
			return "/subscriptions?deliveries=pending#deliveries", nil, nil
		}
	}
	again, err := p.redeliverJobsForm(r, f)
	return "", &again, err
}
