package item

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// jobsShown is how many jobs a page of a batch lists.
const jobsShown = registry.MostReasons

// batchPage is the content of a batch's page.
type batchPage struct {
	Buttons  page.Buttons
	Did      *registry.Event
	Batch    registry.WorkItem
	Spec     registry.Spec
	Progress registry.BatchProgress
	Stages   []stageBox
	Left     time.Duration // how long the open jobs will take; 0: unknown
	Why      registry.Why
	WayOn    *wayOn
	Report   *registry.BatchReport
	NoReport string // why there is no report and none will come
	Again    bool   // the viewer may deliver the outcomes of its jobs again: it has finished jobs, and a callback
	Failures page.Failures
	Filters  []jobFilter
	Filtered bool
	Stage    registry.Stage // of the filter
	Jobs     []jobRow
	Prev     string
	Next     string
	Here     string // address of this list, without its place
	Live     bool
}

// stageBox is a stage in the strip.
type stageBox struct {
	registry.StageProgress

	Jobs    int64 // that are in the batch
	URL     string
	Current bool
}

// Free is how many jobs wait here and are not held.
func (s stageBox) Free() int64 { return s.Waiting - s.Held }

// jobRow is a job with the ARK of its object, "" before it has one.
type jobRow struct {
	registry.WorkItem
	ARK     string
	Receipt string             // the address of its receipt; "": its object is not preserved
	Repeats *registry.RowPlace // the earlier row that this one repeats
	Waits   *registry.Why      // what it waits for; nil for settled ones
}

// LineText is as in package registry.
func (j jobRow) LineText() string { return registry.LineText(j.Row, j.Line) }

// jobFilter selects jobs of a batch by how they stand.
type jobFilter struct {
	Name    string // in the address; also its title
	Count   int64
	URL     string
	Current bool
	status  registry.Status // of the jobs; "": terms say it
	terms   []registry.Term
}

// filtersOf returns the filters of a batch's jobs. All are always shown, so that nothing moves when
// the first job fails.
func filtersOf(r *http.Request, b registry.BatchProgress) []jobFilter {
	all := []jobFilter{
		{Name: "all", Count: b.Jobs},
		{Name: "waiting", status: registry.Pending, terms: []registry.Term{{Field: "state", Value: string(registry.StateHeld), Not: true}}},
		{Name: "held", status: registry.Pending, terms: []registry.Term{{Field: "state", Value: string(registry.StateHeld)}}},
		{Name: "running", status: registry.Running},
		{Name: "failed", status: registry.Failed},
		{Name: "stopped", terms: []registry.Term{{Field: "status", Value: "cancelled,aborted"}}},
		{Name: "completed", Count: b.Completed, status: registry.Completed},
	}
	chosen := r.URL.Query().Get("show")
	for i := range all {
		f := &all[i]
		for _, s := range b.Stages {
			switch f.Name {
			case "waiting":
				f.Count += s.Waiting - s.Held
			case "held":
				f.Count += s.Held
			case "running":
				f.Count += s.Running
			case "failed":
				f.Count += s.Failed
			case "stopped":
				f.Count += s.Stopped
			}
		}
		f.Current = f.Name == chosen || chosen == "" && i == 0
		f.URL = listOf(r, "show", f.Name)
		if i == 0 {
			f.URL = listOf(r, "show", "")
		}
	}
	return all
}

// listOf is the address of the jobs' list from its first row, with another value in its query.
func listOf(r *http.Request, name, value string) string {
	query := url.Values{}
	for _, kept := range []string{"show", "stage"} {
		if v := r.URL.Query().Get(kept); v != "" {
			query.Set(kept, v)
		}
	}
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode(), Fragment: "jobs"}).String()
}

func (p pages) batch(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	id := r.PathValue("id")
	it, err := p.API.Item(ctx, id)
	if err != nil {
		return page.Page{}, err
	}
	if it.Action != registry.Batch {
		return page.Page{}, page.NotFound("batch " + id)
	}
	b := batchPage{Batch: it, Spec: specOf(it), Buttons: p.ButtonsOf(ctx, it), Live: !it.Status.Settled()}
	if b.Did, err = p.did(r, id); err != nil {
		return page.Page{}, err
	}
	if b.Progress, err = p.API.BatchProgress(ctx, id); err != nil {
		return page.Page{}, err
	}
	b.Left, _ = b.Progress.ETA()
	if it.FailedItself() {
		if b.Failures, err = p.FailuresOf(ctx, registry.Query{Terms: []registry.Term{{Field: "id", Value: id}}}); err != nil {
			return page.Page{}, err
		}
	} else if b.Progress.Failed+b.Progress.Preserved > 0 {
		if b.Failures, err = p.FailuresOf(ctx, registry.Query{Terms: []registry.Term{{Field: "batch", Value: id}}}); err != nil {
			return page.Page{}, err
		}
	}
	if b.Why, err = p.API.Why(ctx, id); err != nil {
		return page.Page{}, err
	}
	if b.WayOn, err = p.wayOn(ctx, it, b.Why); err != nil {
		return page.Page{}, err
	}
	b.Buttons = b.WayOn.others(b.Buttons)
	b.Again = b.Spec.Profile.Callback != nil && b.Progress.Completed+b.Progress.Failed+b.Progress.Preserved > 0 && p.May(ctx, "redeliver-jobs")
	if it.Closing > 0 {
		// There is no report while it is being written.
		if report, err := p.API.ReportOf(ctx, id, 0); err == nil {
			b.Report = &report
		}
	}
	if why, coming := registry.NoReport(it); b.Report == nil && !coming {
		b.NoReport = why
	}
	if err := p.jobsOf(r, &b); err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "batch", Title: p.Texts(r).T("Batch") + " " + it.Heading(), Section: "deposits", Live: b.Live, Alike: true, Content: b}, nil
}

// jobsOf fills in the list of jobs, the filters, and the strip of stages.
func (p pages) jobsOf(r *http.Request, b *batchPage) error {
	q := registry.ItemQuery{ParentID: b.Batch.ID, After: r.URL.Query().Get("after"), Before: r.URL.Query().Get("before"), Limit: jobsShown}
	b.Filters = filtersOf(r, b.Progress)
	chosen := slices.IndexFunc(b.Filters, func(f jobFilter) bool { return f.Current })
	if chosen < 0 {
		return page.Invalid("there is no filter %q", r.URL.Query().Get("show"))
	}
	q.Status, q.Match.Terms = b.Filters[chosen].status, slices.Clone(b.Filters[chosen].terms)
	b.Filtered, b.Here = chosen > 0, listOf(r, "show", r.URL.Query().Get("show"))
	if stage := r.URL.Query().Get("stage"); stage != "" {
		b.Stage = registry.Stage(stage)
		if !slices.ContainsFunc(b.Progress.Stages, func(s registry.StageProgress) bool { return s.Stage == b.Stage }) {
			return page.Invalid("jobs have no stage %q", stage)
		}
		q.Match.Terms, b.Filtered = append(q.Match.Terms, registry.Term{Field: "stage", Value: stage}), true
	}
	jobs, err := p.API.Items(r.Context(), q)
	if err != nil {
		return err
	}
	b.Prev, b.Next = atJobs(page.Prev(r, jobs.Prev)), atJobs(page.Next(r, jobs.Next))
	waits, err := p.waitsOf(r.Context(), jobs.Rows)
	if err != nil {
		return err
	}
	taken := map[registry.Stage]bool{}
	for _, job := range jobs.Rows {
		row := jobRow{WorkItem: job, Repeats: specOf(job).Repeats, Waits: waits[job.ID]}
		var version int
		if row.ARK, version = objectOf(job); version > 0 && (job.Status == registry.Completed || job.Commitment == registry.Preserved) {
			row.Receipt = page.ReceiptURL(row.ARK, version)
		}
		b.Jobs = append(b.Jobs, row)
		for _, stage := range job.Optional {
			taken[stage] = true
		}
	}
	route, _ := registry.RouteOf(registry.Ingest) // there is one
	for _, s := range b.Progress.Stages {
		step, _ := route.Step(s.Stage)
		if step.Optional && !taken[s.Stage] && s.Waiting+s.Running+s.Failed+s.Stopped == 0 {
			continue
		}
		b.Stages = append(b.Stages, stageBox{StageProgress: s, Jobs: b.Progress.Jobs, URL: listOf(r, "stage", string(s.Stage)), Current: s.Stage == b.Stage})
	}
	return nil
}

// atJobs is an address of the page at its list of jobs; "" for none.
func atJobs(address string) string {
	if address == "" {
		return ""
	}
	return address + "#jobs"
}

// waitsOf says in a phrase what each unsettled job waits for, by id.
func (p pages) waitsOf(ctx context.Context, jobs []registry.WorkItem) (map[string]*registry.Why, error) {
	var ids []string
	for _, job := range jobs {
		if !job.Status.Settled() {
			ids = append(ids, job.ID)
		}
	}
	waits := map[string]*registry.Why{}
	if len(ids) == 0 {
		return waits, nil
	}
	all, err := p.API.WhyEach(ctx, ids)
	for i := range all {
		waits[all[i].ItemID] = &all[i]
	}
	return waits, err
}
