// Package reportfile writes a batch's stored report as a table or as a JSON document.
//
// It needs memory for one page of jobs, whatever the length of the report. An interrupted report
// ends in an error, never in an end that looks complete.
package reportfile

import (
	"context"
	"iter"

	"github.com/holdfast/holdfast/registry"
)

// Source provides the jobs of a report: a Registry, or its client.
type Source interface {
	// ReportJobs is as in registry.ReportReader.
	ReportJobs(ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error)
}

// pageRows is how many jobs are in memory at a time.
const pageRows = 500

// Jobs yields the jobs of a report that q selects, in row order. It ignores q.Limit. q must name a
// closing: with 0, which means the last one, pages of two reports could be mixed. It stops at an
// error.
func Jobs(ctx context.Context, s Source, q registry.ReportQuery) iter.Seq2[registry.JobResult, error] {
	q.Limit = pageRows
	return func(yield func(registry.JobResult, error) bool) {
		for {
			jobs, err := s.ReportJobs(ctx, q)
			if err != nil {
				yield(registry.JobResult{}, err)
				return
			}
			for _, j := range jobs {
				if !yield(j, nil) {
					return
				}
			}
			if len(jobs) < pageRows {
				return
			}
			q.AfterRow = jobs[len(jobs)-1].Row
		}
	}
}
