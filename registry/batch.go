package registry

import "context"

// Batching makes the jobs of a batch when it begins, and its report when it ends.
type Batching interface {
	// AddJobs adds rows of a batch as jobs, at most 500 a call and in ascending order over all calls; rows that are there
	// already are left as they are (R22). results[ResultExpanded] tells how far it has come, in the same transaction. It
	// returns how many were added.
	AddJobs(ctx context.Context, l Lease, jobs []NewJob) (added int, err error)
	// FirstOf notes the validator that a batch's address has now, and returns the id of the batch that it repeats: another one
	// with the same address, validator and description in the same collection that was submitted within the collection's
	// window and completed or is under way; "" when there is none, when the batch was submitted with Force, and when its
	// payload is an upload. Of several at the same time exactly one is the first. A repeat is answered alike, whatever the
	// validator is by then. ErrInvalid: the item is not a batch being expanded.
	FirstOf(ctx context.Context, l Lease, validator string) (batchID string, err error)
	// CloseReport stores the batch's report of its current closing from one snapshot of its jobs, with what changed since the
	// report before, once, and returns it: a repeat returns what is stored. ErrJobsOpen when a job was sent back since the
	// batch's turn came and there is no report of this closing yet: the batch waits for it. ErrInvalid for an item that is no
	// batch at its report.
	CloseReport(ctx context.Context, l Lease) (BatchReport, error)
}

// NewJob is one row of a batch.
type NewJob struct {
	// Line is the manifest's line, 1 where there is no manifest: unique in the batch, above 0. On the wire it keeps the name that
	// it had before rows were counted, since workers and Registry are not replaced at once.
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
	// DuplicateOf is the id of the earlier batch that this one repeats, which therefore has no jobs; "" when it repeats none.
	DuplicateOf string `json:"duplicate_of,omitempty"`
}
