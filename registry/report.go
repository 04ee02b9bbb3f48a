package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ReportReader reads the progress and reports of batches.
type ReportReader interface {
	// BatchProgress counts a batch's jobs.
	BatchProgress(ctx context.Context, id string) (BatchProgress, error)
	// ReportOf returns a batch's report of a closing, 0 for the last. ErrNotFound: there is none
	// yet.
	ReportOf(ctx context.Context, batchID string, closing int64) (BatchReport, error)
	// ReportJobs lists the jobs of a report that a query selects, in row order. ErrNotFound: there
	// is no such report. ErrInvalid: [ReportQuery.Check] refuses the query.
	ReportJobs(ctx context.Context, q ReportQuery) ([]JobResult, error)
}

// ReportLister lists the reports of batches.
type ReportLister interface {
	// Reports lists a batch's reports of closings below before (0: all), newest first. It is empty
	// before the first, and for items that are not batches.
	Reports(ctx context.Context, batchID string, before int64, limit int) ([]BatchReport, error)
}

// BatchReport is a batch's stored report of one closing: the outcomes of its jobs when the last of
// them settled. Later outcomes go into the report of a later closing.
type BatchReport struct {
	BatchID   string    `json:"batch_id"`
	Closing   int64     `json:"closing"`
	CreatedAt time.Time `json:"created_at"`
	Jobs      int64     `json:"jobs"`
	Completed int64     `json:"completed"`
	// Preserved counts jobs that did not complete although their objects are preserved: a later
	// step failed, such as the callback.
	Preserved int64 `json:"preserved"`
	Failed    int64 `json:"failed"`         // all others; jobs that were deleted without a preserved object are in no report
	Content   int64 `json:"failed_content"` // of Failed: error class content
	Stopped   int64 `json:"stopped"`        // of Failed: cancelled or aborted by an admin
	Repeats   int64 `json:"repeats"`        // jobs whose rows repeat an earlier row: see [Spec]
	// Difference is the change since the previous report; nil in the first.
	Difference *ReportDifference `json:"difference,omitempty"`
}

// ReportDifference counts the changes since the report of an earlier closing, by [JobChange].
type ReportDifference struct {
	Since        int64 `json:"since"` // closing of that report
	NowCompleted int64 `json:"now_completed"`
	StillFailed  int64 `json:"still_failed"`
	NewlyFailed  int64 `json:"newly_failed"`
	NowStopped   int64 `json:"now_stopped"`
	NewJobs      int64 `json:"new_jobs"`
	Unchanged    int64 `json:"unchanged"`
}

// NoReport says why a batch has no report, and whether one will come without a person's act.
// Otherwise it says which act helps.
func NoReport(batch WorkItem) (why string, coming bool) {
	note := ""
	if batch.Note != "" {
		note = " (" + batch.Note + ")"
	}
	switch batch.Status {
	case Failed:
		if !batch.FailedItself() {
			break // the failure is what its report says
		}
		what := "it failed when its report was to be made"
		if batch.Stage == Expand {
			what = "it failed before it had jobs"
		}
		return what + note + ", and no report will come unless it is requeued", false
	case Cancelled:
		return "it was cancelled" + note + ", and no report will come unless it is requeued", false
	case Aborted, Deleted:
		return "it is " + strings.ToLower(string(batch.State)) + note + ", and no report will come", false
	case Prepare, Pending, Running, Completed:
	}
	return "a report is made when every job is settled", true
}

// JobChange is the change of a job since the previous report. Each job of a report with a
// difference has one.
type JobChange string

// The changes.
const (
	ChangeCompleted   JobChange = "now-completed" // it has completed since
	ChangeStillFailed JobChange = "still-failed"  // it had failed, and has failed again or not been requeued
	ChangeNewlyFailed JobChange = "newly-failed"  // it has failed, and had been stopped before
	ChangeStopped     JobChange = "now-stopped"   // an admin has cancelled or aborted it since
	ChangeNew         JobChange = "new"           // it was not in the previous report
	ChangeNone        JobChange = "unchanged"     // completed, cancelled or aborted in both
)

// JobChanges returns all changes, those of most interest to depositors first.
func JobChanges() []JobChange {
	return []JobChange{ChangeCompleted, ChangeStillFailed, ChangeNewlyFailed, ChangeStopped, ChangeNew, ChangeNone}
}

// ReportList is one of the lists of a report.
type ReportList string

// The lists. Each job of a report is in one.
const (
	ListCompleted ReportList = "completed"
	ListPreserved ReportList = "preserved" // not completed, although the object is preserved
	ListFailed    ReportList = "failed"    // all others: failed, or stopped by an admin
)

// ReportLists returns the lists, failed first.
func ReportLists() []ReportList { return []ReportList{ListFailed, ListPreserved, ListCompleted} }

// Of returns the number of a report's jobs in a list.
func (r BatchReport) Of(list ReportList) int64 {
	switch list {
	case ListCompleted:
		return r.Completed
	case ListPreserved:
		return r.Preserved
	case ListFailed:
		return r.Failed
	}
	return r.Jobs
}

// ReportQuery selects jobs of a stored report; empty fields do not restrict.
type ReportQuery struct {
	BatchID  string      `json:"batch_id"`
	Closing  int64       `json:"closing,omitempty"` // 0: the last
	List     ReportList  `json:"list,omitempty"`
	Changes  []JobChange `json:"changes,omitempty"`   // any of them
	Repeats  bool        `json:"repeats,omitempty"`   // only jobs whose rows repeat an earlier row
	AfterRow int64       `json:"after_row,omitempty"` // last row of the previous page
	Limit    int         `json:"limit,omitempty"`     // 0: 50; at most 500
}

// Check returns ErrInvalid, with the reason, for an unknown list or change.
func (q ReportQuery) Check() error {
	if q.List != "" && !slices.Contains(ReportLists(), q.List) {
		return fmt.Errorf("%w: a report has no list %q; it has %v", ErrInvalid, q.List, AllOf(ReportLists()))
	}
	for _, c := range q.Changes {
		if !slices.Contains(JobChanges(), c) {
			return fmt.Errorf("%w: a report knows no change %q; it knows %v", ErrInvalid, c, AllOf(JobChanges()))
		}
	}
	return nil
}
