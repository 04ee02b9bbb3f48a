package registry

import "context"

// ForWorkers is all that workers ask of the Registry: of the store itself in one process with it, over HTTP from another one
// (web/protocol). Whatever else the Registry can do is not for workers.
type ForWorkers interface {
	Working
	Preserving
	Delivering
	Releasing
	Unlocking
	Consulting
	Telling
	Mailing
}

// Releasing is what becomes of uploads that batches were submitted from.
type Releasing interface {
	// UploadByID returns an upload that has ended and is stored, or ErrNotFound.
	UploadByID(ctx context.Context, id string) (Upload, error)
	// IncomingByID returns an upload on its way, or ErrNotFound: it has ended, was given up, or never was.
	IncomingByID(ctx context.Context, id string) (Incoming, error)
	// RetireUpload decides that the bytes of an upload go, unless a batch may need them, which is any that was submitted from it,
	// itself apart, and is not completed, aborted or deleted: then retired is false. From then on Submit and Prepare answer as if
	// there was no such upload. A repeat changes nothing.
	RetireUpload(ctx context.Context, uploadID, itself string) (retired bool, err error)
	// BatchesOf returns the batches that an upload was submitted as, the newest first, at most 100; none of an unknown one.
	BatchesOf(ctx context.Context, uploadID string) ([]WorkItem, error)
}

// Unlocking is how a step comes by what sources and receivers ask it for.
type Unlocking interface {
	// Credentials lists a collection's credentials by their origins, with their secrets sealed; none of an unknown one.
	Credentials(ctx context.Context, collection string) ([]Credential, error)
}

// Consulting is what a step looks up about its item and object.
type Consulting interface {
	// Item returns one item, or ErrNotFound.
	Item(ctx context.Context, id string) (WorkItem, error)
	// CountItems counts the items that a query selects by the state that people see; paging is ignored.
	CountItems(ctx context.Context, q ItemQuery) (map[State]int64, error)
	// Events lists an item's events (all items' when itemID is ""), oldest first, after a feed cursor.
	Events(ctx context.Context, itemID string, after int64, limit int) ([]Event, error)
	// Object returns an object by ARK, or ErrNotFound.
	Object(ctx context.Context, id string) (Object, error)
	// Files lists the state of an object's version by path, after a path; version 0 is the head.
	Files(ctx context.Context, objectID string, version int, after string, limit int) ([]File, error)
	// RestorationOf returns the restore that an item carries out, or ErrNotFound. It outlives the item.
	RestorationOf(ctx context.Context, itemID string) (Restoration, error)
	// Ping tells whether the store answers.
	Ping(ctx context.Context) error
}

// Telling is what messages to people are made of.
type Telling interface {
	// Items lists items, newest first; children of one batch, named by ParentID or by a term, in row order.
	// *QueryError for a Match that ParseQuery did not make.
	Items(ctx context.Context, q ItemQuery) (Page[WorkItem], error)
	// Failures groups the failed items that a query selects by their cause, the largest group first. Its fields, Limit and After
	// are those of Items; a status other than failed selects nothing. *QueryError as for Items.
	Failures(ctx context.Context, q ItemQuery) (Page[FailureGroup], error)
	// Why says what an unsettled item waits for.
	Why(ctx context.Context, id string) (Why, error)
	// BatchProgress adds up a batch's jobs from their rows.
	BatchProgress(ctx context.Context, id string) (BatchProgress, error)
	// ReportOf returns a batch's report of the given closing, 0 for the last; ErrNotFound before the first.
	ReportOf(ctx context.Context, batchID string, closing int64) (BatchReport, error)
	// ReportJobs lists the jobs of a report that a query selects, in row order. ErrNotFound when there is no such report,
	// ErrInvalid when [ReportQuery.Check] refuses it.
	ReportJobs(ctx context.Context, q ReportQuery) ([]JobResult, error)
	// Deliveries lists what receivers were told of an item, oldest first.
	Deliveries(ctx context.Context, itemID string) ([]Delivery, error)
	// Holds lists all holds.
	Holds(ctx context.Context) ([]Hold, error)
	// Deletions lists the deletions that are asked for, and wait for another person to approve them: those that were asked for
	// first come first.
	Deletions(ctx context.Context, q DeletionQuery) (Page[Deletion], error)
	// QueueStatus adds up, per stage, what waits and runs.
	QueueStatus(ctx context.Context) (QueueStatus, error)
}
