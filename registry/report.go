package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ReportReader is how far a batch is, and what its reports say.
type ReportReader interface {
	// BatchProgress adds up a batch's jobs from their rows.
	BatchProgress(ctx context.Context, id string) (BatchProgress, error)
	// ReportOf returns a batch's report of the given closing, 0 for the last; ErrNotFound before
	// the first.
	ReportOf(ctx context.Context, batchID string, closing int64) (BatchReport, error)
	// ReportJobs lists the jobs of a report that a query selects, in row order. ErrNotFound when
	// there is no such report, ErrInvalid when [ReportQuery.Check] refuses it.
	ReportJobs(ctx context.Context, q ReportQuery) ([]JobResult, error)
}

// ReportLister lists the reports of batches.
type ReportLister interface {
	// Reports lists a batch's reports, the newest first, those of closings below before; 0: all. It
	// is empty before the first, and for what is no batch.
	Reports(ctx context.Context, batchID string, before int64, limit int) ([]BatchReport, error)
}

// BatchReport is a batch's stored report of one closing: what had become of its jobs when the last
// of them settled. What becomes of them later is told by the report of a later closing and never
// changes this one.
type BatchReport struct {
	BatchID   string    `json:"batch_id"`
	Closing   int64     `json:"closing"`
	CreatedAt time.Time `json:"created_at"`
	Jobs      int64     `json:"jobs"`
	Completed int64     `json:"completed"`
	// Preserved did not complete although their objects are preserved: a later step failed, such as
	// telling their receiver.
	Preserved int64 `json:"preserved"`
	Failed    int64 `json:"failed"`         // all others; no report tells of what was deleted without being preserved
	Content   int64 `json:"failed_content"` // of Failed: error class content
	Stopped   int64 `json:"stopped"`        // of Failed: cancelled or aborted by an admin
	Repeats   int64 `json:"repeats"`        // jobs whose rows repeat an earlier row: see [Spec]
	// Difference is what changed since the report before; nil for the first one.
	Difference *ReportDifference `json:"difference,omitempty"`
}

// ReportDifference counts what changed since the report of an earlier closing, by [JobChange].
type ReportDifference struct {
	Since        int64 `json:"since"` // the closing of that report
	NowCompleted int64 `json:"now_completed"`
	StillFailed  int64 `json:"still_failed"`
	NewlyFailed  int64 `json:"newly_failed"`
	NowStopped   int64 `json:"now_stopped"`
	NewJobs      int64 `json:"new_jobs"`
	Unchanged    int64 `json:"unchanged"`
}

// NoReport says why a batch that was never reported has no report, and whether one is still to
// come. What does not come by itself names what brings it.
func NoReport(batch WorkItem) (why string, coming bool) {
	note := ""
	if batch.Note != "" {
		note = " (" + batch.Note + ")"
	}
	switch batch.Status {
	case Failed:
		if !batch.FailedItself() {
			break // that it says it has failed is what its report says
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

// JobChange is what changed of a job since the report before. Each job of a report that has a
// difference has one.
type JobChange string

// The changes.
const (
	ChangeCompleted   JobChange = "now-completed" // it had not completed, and has
	ChangeStillFailed JobChange = "still-failed"  // it had failed, and has again or has not been run again
	ChangeNewlyFailed JobChange = "newly-failed"  // it has failed, and had been stopped before
	ChangeStopped     JobChange = "now-stopped"   // an admin has cancelled or aborted it since
	ChangeNew         JobChange = "new"           // it was not in the report before
	ChangeNone        JobChange = "unchanged"     // completed, cancelled or aborted then and now
)

// JobChanges returns every change, those that a depositor asks for first.
func JobChanges() []JobChange {
	return []JobChange{ChangeCompleted, ChangeStillFailed, ChangeNewlyFailed, ChangeStopped, ChangeNew, ChangeNone}
}

// ReportList is one of the two lists that a report has.
type ReportList string

// The lists. Each job of a report is in one of them.
const (
	ListCompleted ReportList = "completed"
	ListPreserved ReportList = "preserved" // what did not complete although its object is preserved
	ListFailed    ReportList = "failed"    // all others: what failed, and what an admin stopped
)

// ReportLists returns the lists, failed first.
func ReportLists() []ReportList { return []ReportList{ListFailed, ListPreserved, ListCompleted} }

// Of is how many jobs of a report are in a list.
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
	Changes  []JobChange `json:"changes,omitempty"`   // any of these
	Repeats  bool        `json:"repeats,omitempty"`   // only jobs whose rows repeat an earlier row
	AfterRow int64       `json:"after_row,omitempty"` // the last row of the page before
	Limit    int         `json:"limit,omitempty"`     // 0: 50; at most 500
}

// Check returns ErrInvalid, with the reason, for a list or change that there is not.
func (q ReportQuery) Check() error {
	if q.List != "" && !slices.Contains(ReportLists(), q.List) {
		return fmt.Errorf("%w: a report has no list %q; it has %v", ErrInvalid, q.List, ReportLists())
	}
	for _, c := range q.Changes {
		if !slices.Contains(JobChanges(), c) {
			return fmt.Errorf("%w: a report knows no change %q; it knows %v", ErrInvalid, c, JobChanges())
		}
	}
	return nil
}
