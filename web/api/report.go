package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/reportfile"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) reportRoutes(api huma.API, mux *http.ServeMux) {
	get := http.MethodGet
	register(s, api, operation{id: "batch-report", method: get, path: "/batches/{id}/report", summary: "The stored report of a batch"}, s.report)
	register(s, api, operation{id: "list-batch-reports", method: get, path: "/batches/{id}/reports", summary: "The stored reports of a batch, newest first"}, s.reports)
	register(s, api, operation{id: "batch-report-jobs", method: get, path: "/batches/{id}/report/jobs", summary: "The jobs of a stored report, in row order"}, s.reportJobs)
	s.reportFile(api, mux, operation{id: "batch-report-json", path: "/batches/{id}/report.json", summary: "A stored report with its lists, as one JSON document"},
		"application/json", reportfile.JSON)
	s.reportFile(api, mux, operation{id: "batch-report-csv", path: "/batches/{id}/report.csv", summary: "The jobs of a stored report as a table"},
		"text/csv", func(ctx context.Context, w io.Writer, from reportfile.Source, _ registry.BatchReport, q registry.ReportQuery) error {
			return reportfile.CSV(w, reportfile.Jobs(ctx, from, q))
		})
}

// reportFile adds a download of a report, in the form that write writes.
func (s *server) reportFile(api huma.API, mux *http.ServeMux, o operation, contentType string,
	write func(context.Context, io.Writer, reportfile.Source, registry.BatchReport, registry.ReportQuery) error,
) {
	text, number := &huma.Schema{Type: "string"}, &huma.Schema{Type: "integer"}
	params := []*huma.Param{
		{Name: "id", In: "path", Required: true, Description: "The batch", Schema: text},
		{Name: "closing", In: "query", Description: "Which report; the last one when not given", Schema: number},
		{Name: "list", In: "query", Description: listDoc, Schema: text},
		{Name: "change", In: "query", Description: changeDoc, Schema: text},
	}
	o.method = http.MethodGet
	s.streamRoute(api, mux, o, params, contentType, func(r *http.Request) (*streamed, error) {
		ctx := r.Context()
		in, err := reportFileInput(r.PathValue("id"), r.URL.Query())
		if err != nil {
			return nil, err
		}
		report, q, err := s.reportQuery(ctx, in)
		if err != nil {
			return nil, err
		}
		return &streamed{
			contentType: contentType, filename: fmt.Sprintf("report-%s-%d%s", report.BatchID, report.Closing, o.path[strings.LastIndexByte(o.path, '.'):]),
			write: func(w io.Writer) error { return write(ctx, w, s.registry, report, q) },
		}, nil
	})
}

// reportFileInput reads what a download is asked for.
func reportFileInput(id string, query url.Values) (in ReportSelection, err error) {
	in.ID, in.List = id, registry.ReportList(query.Get("list"))
	for _, changes := range query["change"] {
		in.Change = append(in.Change, strings.Split(changes, ",")...)
	}
	if closing := query.Get("closing"); closing != "" {
		if in.Closing, err = strconv.ParseInt(closing, 10, 64); err != nil || in.Closing < 0 {
			return in, invalid("nothing was sent", wire.Fault{Location: "query.closing", Message: "it is no number of a report", Found: closing})
		}
	}
	return in, nil
}

const (
	listDoc   = "completed, or failed: all that did not complete"
	changeDoc = "What changed since the report before; any of several, with commas between them"
)

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
	batch, err := s.batchOf(ctx, id)
	if err != nil {
		return registry.BatchReport{}, err
	}
	r, err := s.registry.ReportOf(ctx, id, closing)
	if closing == 0 && errors.Is(err, registry.ErrNotFound) {
		why, _ := registry.NoReport(batch)
		return r, notFound("batch %s has no report: %s", id, why)
	}
	return r, err
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

// ReportSelection names a report and selects some of its jobs.
type ReportSelection struct {
	ReportInput
	List   registry.ReportList `query:"list" doc:"completed; preserved: not completed although the object is preserved; or failed: all others"`
	Change []string            `query:"change" maxItems:"10" doc:"What changed since the report before; any of several, with commas between them"`
}

// reportQuery finds the report that is asked for. The query names its closing, so that every page is of the same one, whatever
// is closed meanwhile.
func (s *server) reportQuery(ctx context.Context, in ReportSelection) (registry.BatchReport, registry.ReportQuery, error) {
	q := registry.ReportQuery{List: in.List}
	faults := oneOf("query.list", in.List, registry.ReportLists())
	for _, c := range in.Change {
		q.Changes = append(q.Changes, registry.JobChange(c))
		faults = append(faults, oneOf("query.change", registry.JobChange(c), registry.JobChanges())...)
	}
	if err := invalid("the list cannot be made", faults...); err != nil {
		return registry.BatchReport{}, q, err
	}
	r, err := s.reportOf(ctx, in.ID, in.Closing)
	q.BatchID, q.Closing = r.BatchID, r.Closing
	return r, q, err
}

type reportJobsInput struct {
	ReportSelection
	Repeats bool  `query:"repeats" doc:"Only jobs whose rows repeat an earlier row of the batch"`
	After   int64 `query:"after" minimum:"0" doc:"next of the page before"`
	Limit   int   `query:"limit" minimum:"1" maximum:"500" doc:"Rows of a page; 50 when not given"`
}

func (s *server) reportJobs(ctx context.Context, in *reportJobsInput) (*output[registry.Page[registry.JobResult]], error) {
	_, q, err := s.reportQuery(ctx, in.ReportSelection)
	if err != nil {
		return nil, err
	}
	q.Repeats, q.AfterRow, q.Limit = in.Repeats, in.After, Paging{Limit: in.Limit}.size()
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
