package item

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
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) reportRoutes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "batch-report", Method: get, Path: "/batches/{id}/report", Summary: "Show a stored report of a batch"}, s.report)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-batch-reports", Method: get, Path: "/batches/{id}/reports", Summary: "List the stored reports of a batch, newest first"}, s.reports)
	endpoint.Register(s.Server, endpoint.Operation{ID: "batch-report-jobs", Method: get, Path: "/batches/{id}/report/jobs", Summary: "List the jobs of a stored report, in row order"}, s.reportJobs)
	s.reportFile(endpoint.Operation{ID: "batch-report-json", Path: "/batches/{id}/report.json", Summary: "Download a stored report with its lists, as JSON"},
		"application/json", reportfile.JSON)
	s.reportFile(endpoint.Operation{ID: "batch-report-csv", Path: "/batches/{id}/report.csv", Summary: "Download the jobs of a stored report, as CSV"},
		"text/csv", func(ctx context.Context, w io.Writer, from reportfile.Source, _ registry.BatchReport, q registry.ReportQuery) error {
			return reportfile.CSV(w, reportfile.Jobs(ctx, from, q))
		})
}

// reportFile adds a download of a report in the format of write.
func (s *Service) reportFile(o endpoint.Operation, contentType string,
	write func(context.Context, io.Writer, reportfile.Source, registry.BatchReport, registry.ReportQuery) error,
) {
	text, number := &huma.Schema{Type: "string"}, &huma.Schema{Type: "integer"}
	params := []*huma.Param{
		{Name: "id", In: "path", Required: true, Description: "The batch", Schema: text},
		{Name: "closing", In: "query", Description: "Number of the report; the latest when absent", Schema: number},
		{Name: "list", In: "query", Description: listDoc, Schema: text},
		{Name: "change", In: "query", Description: changeDoc, Schema: text},
	}
	o.Method = http.MethodGet
	s.Stream(o, params, contentType, func(r *http.Request) (*endpoint.Streamed, error) {
		ctx := r.Context()
		in, err := reportFileInput(r.PathValue("id"), r.URL.Query())
		if err != nil {
			return nil, err
		}
		report, q, err := s.reportQuery(ctx, in)
		if err != nil {
			return nil, err
		}
		return &endpoint.Streamed{
			ContentType: contentType, Filename: fmt.Sprintf("report-%s-%d%s", report.BatchID, report.Closing, o.Path[strings.LastIndexByte(o.Path, '.'):]),
			Write: func(w io.Writer) error { return write(ctx, w, s.Registry, report, q) },
		}, nil
	})
}

// reportFileInput reads the parameters of a download.
func reportFileInput(id string, query url.Values) (in ReportSelection, err error) {
	in.ID, in.List = id, registry.ReportList(query.Get("list"))
	for _, changes := range query["change"] {
		in.Change = append(in.Change, strings.Split(changes, ",")...)
	}
	if closing := query.Get("closing"); closing != "" {
		if in.Closing, err = strconv.ParseInt(closing, 10, 64); err != nil || in.Closing < 0 {
			return in, endpoint.Invalid("the report was not sent", wire.Fault{Location: "query.closing", Message: "not the number of a report", Found: closing})
		}
	}
	return in, nil
}

const (
	listDoc   = "completed; or failed: all jobs that did not complete"
	changeDoc = "Changes since the previous report; several are separated by commas"
)

// ReportInput names a report in path and query.
type ReportInput struct {
	lookup.ItemID
	Closing int64 `query:"closing" minimum:"0" doc:"Number of the report; the latest when absent"`
}

func (s *Service) report(ctx context.Context, in *ReportInput) (*endpoint.Output[registry.BatchReport], error) {
	return endpoint.Answered(s.reportOf(ctx, in.ID, in.Closing))
}

func (s *Service) reportOf(ctx context.Context, id string, closing int64) (registry.BatchReport, error) {
	batch, err := lookup.Batch(ctx, s.Registry, id)
	if err != nil {
		return registry.BatchReport{}, err
	}
	r, err := s.Registry.ReportOf(ctx, id, closing)
	if closing == 0 && errors.Is(err, registry.ErrNotFound) {
		why, _ := registry.NoReport(batch)
		return r, endpoint.NotFound("batch %s has no report: %s", id, why)
	}
	return r, err
}

type reportsInput struct {
	lookup.ItemID
	Before int64 `query:"before" minimum:"0" doc:"next of the previous page"`
	Limit  int   `query:"limit" minimum:"1" maximum:"500" doc:"Rows per page; 50 when absent"`
}

func (s *Service) reports(ctx context.Context, in *reportsInput) (*endpoint.Output[registry.Page[registry.BatchReport]], error) {
	if _, err := lookup.Batch(ctx, s.Registry, in.ID); err != nil {
		return nil, err
	}
	limit := endpoint.Paging{Limit: in.Limit}.Size()
	list, err := s.Registry.Reports(ctx, in.ID, in.Before, limit)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.BatchReport]{Rows: list}
	if len(list) == limit {
		p.Next = strconv.FormatInt(list[limit-1].Closing, 10)
	}
	return endpoint.Page(p), nil
}

// ReportSelection names a report and selects jobs of it.
type ReportSelection struct {
	ReportInput
	List   registry.ReportList `query:"list" doc:"completed; preserved: the object is preserved but the job did not complete; or failed: all others"`
	Change []string            `query:"change" maxItems:"10" doc:"Changes since the previous report; several are separated by commas"`
}

// reportQuery finds the requested report. The returned query names its closing, so that all pages
// come from the same report even if the batch closes again meanwhile.
func (s *Service) reportQuery(ctx context.Context, in ReportSelection) (registry.BatchReport, registry.ReportQuery, error) {
	q := registry.ReportQuery{List: in.List}
	faults := valid.OneOf("query.list", in.List, registry.ReportLists())
	for _, c := range in.Change {
		q.Changes = append(q.Changes, registry.JobChange(c))
		faults = append(faults, valid.OneOf("query.change", registry.JobChange(c), registry.JobChanges())...)
	}
	if err := endpoint.Invalid("the list could not be read", faults...); err != nil {
		return registry.BatchReport{}, q, err
	}
	r, err := s.reportOf(ctx, in.ID, in.Closing)
	q.BatchID, q.Closing = r.BatchID, r.Closing
	return r, q, err
}

type reportJobsInput struct {
	ReportSelection
	Repeats bool  `query:"repeats" doc:"Only jobs whose rows repeat an earlier row of the batch"`
	After   int64 `query:"after" minimum:"0" doc:"next of the previous page"`
	Limit   int   `query:"limit" minimum:"1" maximum:"500" doc:"Rows per page; 50 when absent"`
}

func (s *Service) reportJobs(ctx context.Context, in *reportJobsInput) (*endpoint.Output[registry.Page[registry.JobResult]], error) {
	_, q, err := s.reportQuery(ctx, in.ReportSelection)
	if err != nil {
		return nil, err
	}
	q.Repeats, q.AfterRow, q.Limit = in.Repeats, in.After, endpoint.Paging{Limit: in.Limit}.Size()
	jobs, err := s.Registry.ReportJobs(ctx, q)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.JobResult]{Rows: jobs}
	if len(jobs) == q.Limit {
		p.Next = strconv.FormatInt(jobs[q.Limit-1].Row, 10)
	}
	return endpoint.Page(p), nil
}
