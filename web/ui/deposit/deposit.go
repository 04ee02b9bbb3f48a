package deposit

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// jobsShown is the number of jobs on a deposit's page. For each whose object is preserved, the object
// is read.
const jobsShown = 20

// onePage is the content of a deposit's page.
type onePage struct {
	standing

	Corrects *registry.WorkItem // the deposit that this one corrects
	Rest     string             // the address of the failed rows that are still to be corrected
	Spec     registry.Spec
	Again    bool // the same content had been submitted before
	Jobs     []jobRow
	Next     string
	Causes   page.Failures
	Release  string // the form that releases the hold on it; "": there is none, or the viewer may not
	Receipt  string // the address of the receipt, if the deposit is one preserved object; else ""
	Address  string // of its payload; "": it was uploaded
	Report   *registry.BatchReport
	Safe     int // of the rows: safe to delete
	Once     int // of the rows: preserved, but not verified in two storages
}

// jobRow is a job with what is known of its object.
type jobRow struct {
	registry.JobResult
	Safety *safety // nil: not preserved
}

// LineText is as in package registry.
func (j jobRow) LineText() string { return registry.LineText(j.Row, j.Line) }

// one shows how a deposit stands, what came of it, and what its depositor can do.
func (p pages) one(r *http.Request) (page.Page, error) {
	ctx, id := r.Context(), r.PathValue("id")
	batch, err := p.API.Batch(ctx, id)
	if err != nil {
		return page.Page{}, err
	}
	me, err := p.API.OwnToken(ctx)
	if err != nil {
		return page.Page{}, err
	}
	content := onePage{Spec: specOf(batch), Again: r.URL.Query().Get("again") != ""}
	if content.standing, err = p.standingOf(ctx, batch, me); err != nil {
		return page.Page{}, err
	}
	if h := content.About.HeldBy; h != nil && p.May(ctx, "remove-hold") {
		content.Release = page.ReleaseURL(*h, depositURL(id, false))
	}
	if from := content.Spec.Corrects; from != nil {
		if first, err := p.API.Batch(ctx, from.BatchID); err == nil { // otherwise nothing is said of it
			content.Corrects = &first
			if asked := r.URL.Query(); asked.Has("rest") {
				progress, err := p.API.BatchProgress(ctx, first.ID)
				if err != nil {
					return page.Page{}, err
				}
				if progress.Content > progress.Corrected {
					content.Rest = (&url.URL{Path: "/deposits/" + first.ID + "/rows", RawQuery: asked.Get("rest")}).String()
				}
			}
		}
	}
	jobs, err := p.API.BatchJobs(ctx, id, r.URL.Query().Get("after"), jobsShown)
	if err != nil {
		return page.Page{}, err
	}
	content.Next = page.Next(r, jobs.Next)
	for _, j := range jobs.Rows {
		row := jobRow{JobResult: j}
		if j.ObjectID != "" && j.Version > 0 && (j.State == registry.StateCompleted || j.Preserved) {
			if row.Safety, err = p.safetyOf(ctx, j.ObjectID, j.Version); err != nil && !errors.Is(err, registry.ErrNotFound) {
				return page.Page{}, err
			}
		}
		switch {
		case row.Safety == nil:
		case row.Safety.Safe:
			content.Safe++
		default:
			content.Once++
		}
		content.Jobs = append(content.Jobs, row)
	}
	if content.Phase == phaseDone && content.Progress.Jobs == 1 && content.Safe+content.Once == 1 {
		content.Receipt = page.ReceiptURL(content.Jobs[0].ObjectID, content.Jobs[0].Version)
	}
	if _, upload := registry.UploadID(content.Spec.URL); !upload { // without its secrets
		content.Address = content.Spec.URL
	}
	if content.Progress.Failed+content.Progress.Preserved > 0 || batch.FailedItself() {
		field := "batch"
		if batch.FailedItself() {
			field = "id"
		}
		if content.Causes, err = p.FailuresOf(ctx, registry.Query{Terms: []registry.Term{{Field: field, Value: id}}}); err != nil {
			return page.Page{}, err
		}
	}
	if batch.Closing > 0 {
		if report, err := p.API.ReportOf(ctx, id, 0); err == nil { // there is none while it is being written
			content.Report = &report
		}
	}
	return page.Page{Name: "mydeposit", Title: batch.Heading(), Section: "deposits", Live: !batch.Status.Settled(), Content: content}, nil
}

// cancelPage is the form that cancels a deposit.
type cancelPage struct {
	Batch    registry.WorkItem
	Progress registry.BatchProgress
	Key      string
}

// askCancel shows the form that cancels a deposit, with what it would stop.
func (p pages) askCancel(r *http.Request) (page.Page, error) {
	ctx, id := r.Context(), r.PathValue("id")
	batch, err := p.API.Batch(ctx, id)
	if err != nil {
		return page.Page{}, err
	}
	me, err := p.API.OwnToken(ctx)
	if err != nil {
		return page.Page{}, err
	}
	if !p.mayCancel(ctx, batch, me) {
		return page.Page{}, page.Forbidden()
	}
	c := cancelPage{Batch: batch, Key: page.NewKey()}
	c.Progress, err = p.API.BatchProgress(ctx, id)
	return page.Page{Name: "cancel", Title: p.Texts(r).T("Cancel: %s", batch.Heading()), Section: "deposits", Content: c}, err
}

// cancel cancels a deposit and leads to its page. Sent twice, it acts once.
func (p pages) cancel(r *http.Request) (string, *page.Page, error) {
	id, reason := r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("reason"))
	batch, err := p.API.CancelBatch(r.Context(), id, reason, r.PostForm.Get("key"))
	if refused, ok := page.Refusal(err); ok {
		if now, err := p.API.Batch(r.Context(), id); err == nil && now.Status.Settled() {
			return "", nil, page.Told(refused.Status, refused.Code, p.Texts(r).T("nothing was done: this deposit has already ended"))
		}
	}
	return depositURL(batch.ID, false), nil, err
}

// itemOf is a job as an item, for its state.
func itemOf(j registry.JobResult) registry.WorkItem {
	return registry.WorkItem{State: j.State, NextTry: j.NextTry}
}
