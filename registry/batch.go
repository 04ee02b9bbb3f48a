package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Batching creates a batch's jobs when the batch starts, and its report when the batch ends.
type Batching interface {
	// AddJobs adds rows of a batch as jobs, at most 500 a call and in ascending order over all
	// calls. Existing rows stay unchanged (R22). The same transaction records the last line in
	// results[ResultExpanded]. AddJobs returns how many it added.
	AddJobs(ctx context.Context, l Lease, jobs []NewJob) (added int, err error)
	// FirstOf records the present validator of a batch's address, and returns the id of the batch
	// that it repeats, or "". That is another batch in the collection with the same address,
	// validator and description, submitted within the collection's window, that completed or still
	// runs. A batch that was submitted with Force or from an upload repeats none. Of several
	// concurrent batches exactly one is the first. A repeated call returns the same answer,
	// whatever the validator. ErrInvalid: the item is not a batch at its expansion.
	FirstOf(ctx context.Context, l Lease, validator string) (batchID string, err error)
	// CloseReport stores the report of a batch's present closing from one snapshot of its jobs,
	// with the difference to the previous report, and returns it. A repeat returns the stored
	// report. ErrJobsOpen: a job was requeued since the batch became due, and this closing has no
	// report yet; the batch waits for the job. ErrInvalid: the item is not a batch at its report.
	CloseReport(ctx context.Context, l Lease) (BatchReport, error)
}

// NewJob is one row of a batch.
type NewJob struct {
	// Line is the line in the manifest, or 1 without a manifest; it is unique in the batch and
	// above 0. Its JSON name is from before rows were counted, because workers and Registry are not
	// replaced at once.
	Line     int64      `json:"row"`
	Row      int64      `json:"ordinal,omitempty"` // counted from 1 in the order of lines; 0: unknown
	Name     string     `json:"name"`
	Priority int        `json:"priority"`
	Spec     Spec       `json:"spec"`
	Fault    string     `json:"fault,omitempty"` // not empty: the row is bad; its job is inserted as failed with this note
	Class    ErrorClass `json:"class,omitempty"` // of Fault
	Code     string     `json:"code,omitempty"`  // of Fault: the rule that the row violates
}

// BatchProgress sums up a batch's jobs.
type BatchProgress struct {
	BatchID   string          `json:"batch_id"`
	State     State           `json:"state"`
	Settled   bool            `json:"settled"`  // the batch itself
	Expanded  bool            `json:"expanded"` // no more jobs will be added
	Jobs      int64           `json:"jobs"`
	Open      int64           `json:"open"`
	Completed int64           `json:"completed"`
	Preserved int64           `json:"preserved"`      // settled without completing, although the object is preserved
	Failed    int64           `json:"failed"`         // all others that have settled
	Content   int64           `json:"failed_content"` // of Failed: error class content
	Held      bool            `json:"held"`           // all open jobs are held
	States    map[State]int64 `json:"states"`
	Files     int64           `json:"files"` // expected so far
	DoneFiles int64           `json:"done_files"`
	Bytes     int64           `json:"bytes"` // expected so far
	DoneBytes int64           `json:"done_bytes"`
	SizeKnown bool            `json:"size_known"` // Bytes and Files are final
	Error     string          `json:"error,omitempty"`
	Class     ErrorClass      `json:"error_class,omitempty"`
	Current   []string        `json:"current,omitempty"` // names of a few running jobs
	// DuplicateOf is the id of the earlier batch that this one repeats; such a batch has no jobs.
	// "" if it repeats none.
	DuplicateOf string `json:"duplicate_of,omitempty"`
	// Corrections are the later batches that correct this one, the newest first; at most 50.
	Corrections []Correction `json:"corrections,omitempty"`
	// Corrected is how many of Content later batches correct.
	Corrected int64 `json:"corrected,omitempty"`
	// Stages are the stages of the jobs' route, in its order, with the optional ones.
	Stages []StageProgress `json:"stages"`
	// Recent is how many jobs settled within the last RecentSeconds, which are fewer than
	// [RecentSpan] in a young batch.
	Recent        int64 `json:"recent"`
	RecentSeconds int64 `json:"recent_seconds"`
}

// Correction is a batch that corrects an earlier one.
type Correction struct {
	BatchID string `json:"batch_id"`
	Rows    int64  `json:"rows,omitempty"` // of the earlier batch's failed rows; 0: it stands for all that failed
	State   State  `json:"state,omitempty"`
	Status  Status `json:"status,omitempty"`
	Void    bool   `json:"void,omitempty"` // it failed as a whole, or was given up: what it has may be submitted again
}

// CorrectedBy returns the oldest of the corrections that together have all that failed because of its
// content; "" if something is left. Rows that failed again count: they are corrected in the correction.
func (p BatchProgress) CorrectedBy() (by string) {
	all := p.Content > 0 && p.Corrected >= p.Content
	for _, c := range p.Corrections {
		if c.Void {
			continue
		}
		if c.Rows == 0 {
			return c.BatchID
		}
		if all {
			by = c.BatchID
		}
	}
	return by
}

// CorrectionReader tells which rows of batches are corrected.
type CorrectionReader interface {
	// CorrectedJobs returns of jobs of a batch, by their ids, the batch that corrects each one: the
	// oldest whose correction is not void. Jobs that no batch corrects are left out. Ids are at
	// most as many as a list has rows.
	CorrectedJobs(ctx context.Context, batchID string, ids []string) (map[string]string, error)
	// JudgeCorrection returns the error with which Submit refuses, now, what a submission to a collection
	// corrects; nil if it does not. It changes nothing.
	JudgeCorrection(ctx context.Context, collection string, c Corrects) error
}

// StageProgress is how the jobs of a batch stand at a stage.
type StageProgress struct {
	Stage   Stage `json:"stage"`
	Waiting int64 `json:"waiting"` // pending here
	Held    int64 `json:"held"`    // of Waiting
	Running int64 `json:"running"`
	Failed  int64 `json:"failed"`  // here
	Stopped int64 `json:"stopped"` // cancelled or aborted here
	Done    int64 `json:"done"`    // went on to later stages
}

// RecentSpan is the time for which a batch's rate is measured.
const RecentSpan = 10 * time.Minute

// ETA is how long the open jobs will take at the recent rate; ok is false if that is not known:
// nothing settled recently, or more jobs will be added.
func (p BatchProgress) ETA() (left time.Duration, ok bool) {
	if p.Recent == 0 || p.RecentSeconds == 0 || p.Open == 0 || !p.Expanded || p.Held {
		return 0, false
	}
	return time.Duration(float64(p.Open) / float64(p.Recent) * float64(p.RecentSeconds) * float64(time.Second)), true
}

// PerHour is the recent rate, in jobs.
func (p BatchProgress) PerHour() int64 {
	if p.RecentSeconds == 0 {
		return 0
	}
	return p.Recent * int64(time.Hour/time.Second) / p.RecentSeconds
}

// stand adds n jobs that stand at a position of the route to the counts by state and stage.
func (p *BatchProgress) stand(pos Position, n int64) {
	p.States[StateOf(pos)] += n
	p.Jobs += n
	for i := range p.Stages {
		s := &p.Stages[i]
		if s.Stage != pos.Stage {
			if pos.Status != Deleted {
				s.Done += n
			}
			continue
		}
		switch pos.Status {
		case Pending:
			s.Waiting += n
			if pos.Held {
				s.Held += n
			}
		case Running:
			s.Running += n
		case Failed:
			s.Failed += n
		case Cancelled, Aborted:
			s.Stopped += n
		case Completed:
			s.Done += n
		case Prepare, Deleted:
		}
		return
	}
}

// Add adds n jobs that stand at a position of their route, which are of an error class.
func (p *BatchProgress) Add(pos Position, class ErrorClass, n int64) {
	if n == 0 {
		return
	}
	p.stand(pos, n)
	switch {
	case pos.Status == Completed:
		p.Completed += n
	case pos.Commitment == Preserved:
		p.Preserved += n
	case pos.Status == Deleted: // not part of the batch any more
	case pos.Status.Settled():
		p.Failed += n
		if class == ContentFault {
			p.Content += n
		}
	default:
		p.Open += n
	}
}

// Names of durable results that several packages use. ResultARK is an [Identity]. ResultVersion is
// the number of the version that the item stored.
const (
	ResultARK     = "ark"
	ResultVersion = "version"
	// ResultPlan is the plan of an announced version, which Intend writes.
	ResultPlan = "plan"
	// ResultChanges is the key of the list of the version's changes, if it differs from the plan's, and
	// ResultChangesDigest its digest.
	ResultChanges       = "changes"
	ResultChangesDigest = "changes-digest"
	// ResultRecheck is the number of an attempt. Interim data up to that attempt must not be used:
	// the item was requeued so that its data are checked again.
	ResultRecheck = "recheck"
	// ResultSentBack counts how often workers sent the item back, a [SentBack].
	ResultSentBack = "sent_back"
	// ResultSuperseded is the number of the last attempt that was taken from its worker. The worker
	// may write for a while, so the item's staging is cleaned up again after it completes (R26).
	ResultSuperseded = "superseded"
	// ResultDuplicateOf is the id of the earlier batch that a batch repeats; such a batch has no
	// jobs.
	ResultDuplicateOf = "duplicate_of"
	// ResultCorrections lists the batches that correct a batch, the newest first, as []Correction.
	ResultCorrections = "corrections"
	// ResultExpanded is the last line of a batch's manifest that became a job. It is written with
	// the jobs, so that the next attempt continues behind it.
	ResultExpanded = "expanded"
	// ResultRepeats records that the batch's repeated rows are in its history.
	ResultRepeats = "repeats"
)

// ResultReplica returns the name of the durable result that a storage has the item's version, with
// every byte read back.
func ResultReplica(storage string) string { return "replica " + storage }

// VersionResults returns the names of the durable results by which an item with these storages goes on
// with an announced version.
func VersionResults(storages []string) []string {
	names := []string{ResultPlan, ResultVersion, ResultChanges, ResultChangesDigest}
	for _, storage := range storages {
		names = append(names, ResultReplica(storage))
	}
	return names
}

// SentBack counts how often an item went back to an earlier stage since the last requeue, because
// such a loop must end.
type SentBack struct {
	Requeues int `json:"requeues"` // the item's retry_count then
	Times    int `json:"times"`
}

// JobResult is the outcome of one job.
type JobResult struct {
	ItemID   string   `json:"item_id"`
	Row      int64    `json:"row"`  // as in [WorkItem]
	Line     int64    `json:"line"` // as in [WorkItem]
	Name     string   `json:"name"`
	Title    string   `json:"title,omitempty"` // the job's own, not the batch's
	State    State    `json:"state"`
	NextTry  *NextTry `json:"next_try,omitempty"` // of a job that waits for its next try
	Stage    Stage    `json:"stage,omitempty"`    // stage where it stands or failed; "" if completed
	ARK      string   `json:"ark"`
	ObjectID string   `json:"object_id"`
	Version  int      `json:"version"`
	// Preserved reports that the object is preserved although the job did not complete.
	Preserved bool `json:"preserved,omitempty"`

	// Repeats is the first row with the same content, as in [Spec].
	Repeats *RowPlace `json:"repeats,omitempty"`

	LocalIDs []string   `json:"local_ids,omitempty"`
	Error    string     `json:"error"`
	Class    ErrorClass `json:"error_class"`
	// CorrectedBy is as in [WorkItem]; not set in a report.
	CorrectedBy string `json:"corrected_by,omitempty"`
	// Set for jobs in a report. Code is the failure's code and Cause the fingerprint of its
	// [Cause], "" if unknown. Fix says how to fix it, see remedy.Of. Change is the change since the
	// previous report, "" in a first report.
	Code   string    `json:"error_code,omitempty"`
	Cause  string    `json:"cause,omitempty"`
	Fix    string    `json:"fix,omitempty"`
	Change JobChange `json:"change,omitempty"`
}

// Heading is as of [WorkItem].
func (j JobResult) Heading() string { return cmp.Or(j.Title, j.Name, j.ItemID) }

// RowPlace is a row's place in its batch: Row and Line as in [WorkItem].
type RowPlace struct {
	Row  int64 `json:"row"`
	Line int64 `json:"line"`
}

// String is as in [PlaceText].
func (p RowPlace) String() string { return PlaceText(p.Row, p.Line) }

// LineText is as in the function of that name.
func (p RowPlace) LineText() string { return LineText(p.Row, p.Line) }

// LineText returns the manifest line of a job for people. It returns "" if row and line are 1, as
// they are without a manifest.
func LineText(row, line int64) string {
	if line == 0 || row == 1 && line == 1 {
		return ""
	}
	return CountText(line)
}

// PlaceText returns a job's place in its batch for people, such as "row 3, line 5". It returns ""
// for an item that is not a job.
func PlaceText(row, line int64) string {
	if row == 0 {
		return ""
	}
	text := "row " + CountText(row)
	if l := LineText(row, line); l != "" {
		text += ", line " + l
	}
	return text
}

// JobResultOf returns the outcome of a job for lists, reports and summaries. The item needs its
// ids, spec, results, state, status and stage. It returns an error if spec or results cannot be
// decoded.
func JobResultOf(it WorkItem) (JobResult, error) {
	j := JobResult{ItemID: it.ID, Row: it.Row, Line: it.Line, Name: it.Name, State: it.State, NextTry: it.NextTry, Error: it.Note, Class: it.ErrorClass, CorrectedBy: it.CorrectedBy}
	if it.Status != Completed {
		j.Stage, j.Preserved = it.Stage, it.Commitment == Preserved
	}
	var id Identity
	var spec Spec
	for _, part := range []struct {
		raw  json.RawMessage
		into any
	}{{it.Results[ResultARK], &id}, {it.Results[ResultVersion], &j.Version}, {it.Spec, &spec}} {
		if len(part.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return j, fmt.Errorf("decode results of item %s: %w", it.ID, err)
		}
	}
	j.ARK, j.Title, j.LocalIDs, j.Repeats = id.ARK, spec.OwnTitle(), spec.LocalIDs, spec.Repeats
	if j.Version > 0 {
		j.ObjectID = id.ARK // before that, the ARK has no version by this job
	}
	return j, nil
}
