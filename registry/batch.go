package registry

import (
	"context"
	"encoding/json"
	"fmt"
)

// Batching makes the jobs of a batch when it begins, and its report when it ends.
type Batching interface {
	// AddJobs adds rows of a batch as jobs, at most 500 a call and in ascending order over all
	// calls; rows that are there already are left as they are (R22). results[ResultExpanded] tells
	// how far it has come, in the same transaction. It returns how many were added.
	AddJobs(ctx context.Context, l Lease, jobs []NewJob) (added int, err error)
	// FirstOf notes the validator that a batch's address has now, and returns the id of the batch
	// that it repeats: another one with the same address, validator and description in the same
	// collection that was submitted within the collection's window and completed or is under way;
	// "" when there is none, when the batch was submitted with Force, and when its payload is an
	// upload. Of several at the same time exactly one is the first. A repeat is answered alike,
	// whatever the validator is by then. ErrInvalid: the item is not a batch being expanded.
	FirstOf(ctx context.Context, l Lease, validator string) (batchID string, err error)
	// CloseReport stores the batch's report of its current closing from one snapshot of its jobs,
	// with what changed since the report before, once, and returns it: a repeat returns what is
	// stored. ErrJobsOpen when a job was sent back since the batch's turn came and there is no
	// report of this closing yet: the batch waits for it. ErrInvalid for an item that is no batch
	// at its report.
	CloseReport(ctx context.Context, l Lease) (BatchReport, error)
}

// NewJob is one row of a batch.
type NewJob struct {
	// Line is the manifest's line, 1 where there is no manifest: unique in the batch, above 0. On
	// the wire it keeps the name that it had before rows were counted, since workers and Registry
	// are not replaced at once.
	Line     int64      `json:"row"`
	Row      int64      `json:"ordinal,omitempty"` // counted from 1 in the order of the lines; 0: not known
	Name     string     `json:"name"`
	Priority int        `json:"priority"`
	Spec     Spec       `json:"spec"`
	Fault    string     `json:"fault,omitempty"` // not empty: the row is bad; the job is born failed with this note
	Class    ErrorClass `json:"class,omitempty"` // of Fault
	Code     string     `json:"code,omitempty"`  // of Fault: the rule that the row breaks
}

// BatchProgress is a batch's jobs, added up from their rows.
type BatchProgress struct {
	BatchID   string          `json:"batch_id"`
	State     State           `json:"state"`
	Settled   bool            `json:"settled"`  // the batch itself
	Expanded  bool            `json:"expanded"` // no more jobs will come
	Jobs      int64           `json:"jobs"`
	Open      int64           `json:"open"`
	Completed int64           `json:"completed"`
	Preserved int64           `json:"preserved"`      // settled, and not completed although the object is preserved
	Failed    int64           `json:"failed"`         // all others that settled
	Content   int64           `json:"failed_content"` // of Failed: error class content
	Held      bool            `json:"held"`           // everything that is open is held
	States    map[State]int64 `json:"states"`
	Files     int64           `json:"files"` // expected so far
	DoneFiles int64           `json:"done_files"`
	Bytes     int64           `json:"bytes"` // expected so far
	DoneBytes int64           `json:"done_bytes"`
	SizeKnown bool            `json:"size_known"` // Bytes and Files are final
	Error     string          `json:"error,omitempty"`
	Class     ErrorClass      `json:"error_class,omitempty"`
	Current   []string        `json:"current,omitempty"` // names of a few running jobs
	// DuplicateOf is the id of the earlier batch that this one repeats, which therefore has no
	// jobs; "" when it repeats none.
	DuplicateOf string `json:"duplicate_of,omitempty"`
}

// Names of durable results that more than one package goes by. ResultARK is an [Identity];
// ResultVersion the number of the version that the item stored.
const (
	ResultARK     = "ark"
	ResultVersion = "version"
	// ResultRecheck is the number of the attempt up to which interim data must not be used any
	// more: the item was sent back so that what failed is checked again.
	ResultRecheck = "recheck"
	// ResultSentBack is how often an item's own workers sent it back, a [SentBack].
	ResultSentBack = "sent_back"
	// ResultSuperseded is the number of the last attempt that was taken from its worker, which may
	// write on for a while: when the item completes, its staging is looked after once more (R26).
	ResultSuperseded = "superseded"
	// ResultDuplicateOf is the id of the earlier batch that a batch repeats, which therefore has no
	// jobs.
	ResultDuplicateOf = "duplicate_of"
	// ResultExpanded is the last line of a batch's manifest that is a job. It is written with the
	// jobs themselves, so that an attempt that takes over goes on behind it.
	ResultExpanded = "expanded"
	// ResultRepeats says that a batch's repeated rows were told of in its history.
	ResultRepeats = "repeats"
)

// SentBack counts how often an item went back to an earlier stage since an admin last requeued it:
// what is mended there and breaks again must come to an end.
type SentBack struct {
	Requeues int `json:"requeues"` // the item's retry_count then
	Times    int `json:"times"`
}

// JobResult is what became of one job.
type JobResult struct {
	ItemID   string   `json:"item_id"`
	Row      int64    `json:"row"`  // as in [WorkItem]
	Line     int64    `json:"line"` // as in [WorkItem]
	Name     string   `json:"name"`
	State    State    `json:"state"`
	NextTry  *NextTry `json:"next_try,omitempty"` // of a job that waits for one
	Stage    Stage    `json:"stage,omitempty"`    // where it stands, or failed; "" when it has completed
	ARK      string   `json:"ark"`
	ObjectID string   `json:"object_id"`
	Version  int      `json:"version"`
	// Preserved: the object is preserved although the job did not complete.
	Preserved bool `json:"preserved,omitempty"`

	// Repeats is the first row that says the same, as in [Spec].
	Repeats *RowPlace `json:"repeats,omitempty"`

	LocalIDs []string   `json:"local_ids,omitempty"`
	Error    string     `json:"error"`
	Class    ErrorClass `json:"error_class"`
	// Of a job in a report: Code is what happened in one word and Cause the fingerprint of the
	// failure's [Cause], "" where they are not known; Fix is what puts it right, see remedy.Of;
	// Change what changed since the report before, "" in a first one.
	Code   string    `json:"error_code,omitempty"`
	Cause  string    `json:"cause,omitempty"`
	Fix    string    `json:"fix,omitempty"`
	Change JobChange `json:"change,omitempty"`
}

// RowPlace is where a row is in its batch: Row and Line as in [WorkItem].
type RowPlace struct {
	Row  int64 `json:"row"`
	Line int64 `json:"line"`
}

// String is as in [PlaceText].
func (p RowPlace) String() string { return PlaceText(p.Row, p.Line) }

// LineText is the manifest's line of a job for people. It is "" where row and line are 1, as they
// are without a manifest.
func LineText(row, line int64) string {
	if line == 0 || row == 1 && line == 1 {
		return ""
	}
	return CountText(line)
}

// PlaceText says where in its batch a job is, such as "row 3, line 5"; "" for an item that is no
// job.
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

// JobResultOf says what has become of a job, in the one form that lists, reports and summaries
// share. Of the item it needs spec, results, state, status, stage and what identifies it. The error
// says that spec or results cannot be decoded.
func JobResultOf(it WorkItem) (JobResult, error) {
	j := JobResult{ItemID: it.ID, Row: it.Row, Line: it.Line, Name: it.Name, State: it.State, NextTry: it.NextTry, Error: it.Note, Class: it.ErrorClass}
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
	j.ARK, j.LocalIDs, j.Repeats = id.ARK, spec.LocalIDs, spec.Repeats
	if j.Version > 0 {
		j.ObjectID = id.ARK // before that it is a name without a version of this job's
	}
	return j, nil
}
