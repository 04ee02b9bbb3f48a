// Package reportfile writes a batch's stored report for people and programs: as a table, as a JSON
// document.
//
// A report of any length needs one page of its jobs in memory. A report that is cut short ends in
// an error, never in an end that looks complete.
package reportfile

import (
	"context"
	"iter"

	"github.com/holdfast/holdfast/registry"
)

// Source is what a report is read from: a Registry, or its client.
type Source interface {
	// ReportJobs is as in registry.ReportReader.
	ReportJobs(ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error)
}

// pageRows is how many jobs are held at a time.
const pageRows = 500

// Jobs yields the jobs of a report that q selects, in row order; its Limit is not looked at. q
// names a closing: with 0, for the last one, pages of two reports could be mixed. An error ends it.
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
