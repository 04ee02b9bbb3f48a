package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
)

func (s *server) batchRoutes(api huma.API) {
	get := http.MethodGet
	register(s, api, operation{id: "list-batches", method: get, path: "/batches", summary: "List batches, newest first"}, s.batches)
	register(s, api, operation{id: "read-batch", method: get, path: "/batches/{id}", summary: "Show a batch"}, s.batch)
	register(s, api, operation{id: "batch-progress", method: get, path: "/batches/{id}/progress", summary: "How far a batch is"}, s.progress)
	register(s, api, operation{id: "list-batch-jobs", method: get, path: "/batches/{id}/jobs", summary: "The jobs of a batch as they are now, in row order"}, s.jobs)
	register(s, api, operation{id: "batch-report", method: get, path: "/batches/{id}/report", summary: "The stored report of a batch"}, s.report)
	register(s, api, operation{id: "list-batch-reports", method: get, path: "/batches/{id}/reports", summary: "The stored reports of a batch, newest first"}, s.reports)
	register(s, api, operation{id: "batch-report-jobs", method: get, path: "/batches/{id}/report/jobs", summary: "The jobs of a stored report, in row order"}, s.reportJobs)
}

type batchesInput struct {
	Paging
	Matching
	Collection string          `query:"collection" maxLength:"200"`
	Status     registry.Status `query:"status"`
	Text       string          `query:"text" maxLength:"500" doc:"Part of the name or the note"`
}

func (s *server) batches(ctx context.Context, in *batchesInput) (*output[registry.Page[registry.WorkItem]], error) {
	match, faults := in.query()
	faults = append(faults, oneOf("query.status", in.Status, registry.Statuses())...)
	if err := invalid("the list cannot be made", faults...); err != nil {
		return nil, err
	}
	return s.listItems(ctx, in.Paging, registry.ItemQuery{
		Action: registry.Batch, Collection: in.Collection, Status: in.Status, Text: in.Text, Match: match,
	})
}

// batchOf returns a batch, or a problem that says that there is none.
func (s *server) batchOf(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := s.registry.Item(ctx, id)
	if err != nil {
		return it, err
	}
	if it.Action != registry.Batch {
		return it, notFound("item %s is no batch but of action %s; see /items/%s", id, it.Action, id)
	}
	return it, nil
}

func (s *server) batch(ctx context.Context, in *ItemID) (*output[registry.WorkItem], error) {
	it, err := s.batchOf(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return shown(it)
}

func (s *server) progress(ctx context.Context, in *ItemID) (*output[registry.BatchProgress], error) {
	if _, err := s.batchOf(ctx, in.ID); err != nil {
		return nil, err
	}
	p, err := s.registry.BatchProgress(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &output[registry.BatchProgress]{Body: p}, nil
}

type jobsInput struct {
	ItemID
	Paging
	Status registry.Status `query:"status"`
}

func (s *server) jobs(ctx context.Context, in *jobsInput) (*output[registry.Page[registry.JobResult]], error) {
	if err := invalid("the list cannot be made", oneOf("query.status", in.Status, registry.Statuses())...); err != nil {
		return nil, err
	}
	if _, err := s.batchOf(ctx, in.ID); err != nil {
		return nil, err
	}
	items, err := s.registry.Items(ctx, registry.ItemQuery{
		ParentID: in.ID, Status: in.Status, After: in.After, Limit: in.size(),
	})
	if err != nil {
		return nil, in.badCursor(err)
	}
	p := registry.Page[registry.JobResult]{Next: items.Next}
	for _, it := range items.Rows {
		j, err := registry.JobResultOf(it)
		if err != nil {
			return nil, err
		}
		p.Rows = append(p.Rows, j)
	}
	return page(p), nil
}

// ReportInput names a report in a path and a query.
type ReportInput struct {
	ItemID
	Closing int64 `query:"closing" minimum:"0" doc:"Which report; the last one when not given"`
}

func (s *server) report(ctx context.Context, in *ReportInput) (*output[registry.BatchReport], error) {
	r, err := s.reportOf(ctx, in.ID, in.Closing)
	if err != nil {
		return nil, err
	}
	return &output[registry.BatchReport]{Body: r}, nil
}

func (s *server) reportOf(ctx context.Context, id string, closing int64) (registry.BatchReport, error) {
	if _, err := s.batchOf(ctx, id); err != nil {
		return registry.BatchReport{}, err
	}
	return s.registry.ReportOf(ctx, id, closing)
}

type reportsInput struct {
	ItemID
	Before int64 `query:"before" minimum:"0" doc:"next of the page before"`
	Limit  int   `query:"limit" minimum:"1" maximum:"500" doc:"Rows of a page; 50 when not given"`
}

func (s *server) reports(ctx context.Context, in *reportsInput) (*output[registry.Page[registry.BatchReport]], error) {
	if _, err := s.batchOf(ctx, in.ID); err != nil {
		return nil, err
	}
	limit := Paging{Limit: in.Limit}.size()
	list, err := s.registry.Reports(ctx, in.ID, in.Before, limit)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.BatchReport]{Rows: list}
	if len(list) == limit {
		p.Next = strconv.FormatInt(list[limit-1].Closing, 10)
	}
	return page(p), nil
}

type reportJobsInput struct {
	ReportInput
	List   registry.ReportList `query:"list" doc:"completed, or failed: all that did not complete"`
	Change []string            `query:"change" maxItems:"10" doc:"What changed since the report before; any of several"`
	After  int64               `query:"after" minimum:"0" doc:"next of the page before"`
	Limit  int                 `query:"limit" minimum:"1" maximum:"500" doc:"Rows of a page; 50 when not given"`
}

func (s *server) reportJobs(ctx context.Context, in *reportJobsInput) (*output[registry.Page[registry.JobResult]], error) {
	faults := oneOf("query.list", in.List, registry.ReportLists())
	q := registry.ReportQuery{List: in.List, AfterRow: in.After, Limit: Paging{Limit: in.Limit}.size()}
	for _, c := range in.Change {
		q.Changes = append(q.Changes, registry.JobChange(c))
		faults = append(faults, oneOf("query.change", registry.JobChange(c), registry.JobChanges())...)
	}
	if err := invalid("the list cannot be made", faults...); err != nil {
		return nil, err
	}
	r, err := s.reportOf(ctx, in.ID, in.Closing)
	if err != nil {
		return nil, err
	}
	q.BatchID, q.Closing = in.ID, r.Closing // the same one on every page, whatever is closed meanwhile
	jobs, err := s.registry.ReportJobs(ctx, q)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.JobResult]{Rows: jobs}
	if len(jobs) == q.Limit {
		p.Next = strconv.FormatInt(jobs[q.Limit-1].Row, 10)
	}
	return page(p), nil
}
