package registry

import "time"

// Why is the answer to "why is it waiting?": statements with their facts, which pages word in the
// reader's language and time zone, and the same in English with times in UTC.
type Why struct {
	ItemID   string    `json:"item_id"`
	Reason   Reason    `json:"reason"`
	Sentence string    `json:"sentence"` // Because in English
	Actor    string    `json:"actor,omitempty"`
	Since    time.Time `json:"since"`
	Act      string    `json:"act,omitempty"` // Helps in English: what would let it continue
	// Because says why it waits, Helps what would let it continue.
	Because []Statement `json:"because,omitempty"`
	Helps   []Statement `json:"helps,omitempty"`
	At      time.Time   `json:"at"` // when this was so
	// Until is the time that it waits for, if it waits for one. Only Explaining.WhyEach sets it.
	Until *time.Time `json:"until,omitempty"`
}

// Statement is one statement of an explanation, of what an act entails, or of a fault. Which facts it has depends on what it says.
type Statement struct {
	Says       Says       `json:"says"`
	Stage      Stage      `json:"stage,omitempty"`
	State      State      `json:"state,omitempty"`
	Collection string     `json:"collection,omitempty"`
	GraphID    string     `json:"graph_id,omitempty"`
	ItemID     string     `json:"item_id,omitempty"`
	Name       string     `json:"name,omitempty"` // of a worker, a person, or what is locked
	Text       string     `json:"text,omitempty"` // words of a worker or a person
	N          int64      `json:"n,omitempty"`
	Of         int64      `json:"of,omitempty"`
	Others     int64      `json:"others,omitempty"`
	Uploads    bool       `json:"uploads,omitempty"`
	Bytes      int64      `json:"bytes,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	Items      []Obstacle `json:"items,omitempty"`
	Hold       *Hold      `json:"hold,omitempty"`
	Progress   []Progress `json:"progress,omitempty"`
	Remedy     *Remedy    `json:"remedy,omitempty"`
}

// Obstacle is an item that another one waits for.
type Obstacle struct {
	ID      string   `json:"id,omitempty"` // "": the reader may not see the item; it is of another collection
	Name    string   `json:"name,omitempty"`
	State   State    `json:"state"`
	NextTry *NextTry `json:"next_try,omitempty"`
	Note    string   `json:"note,omitempty"`
	Step    bool     `json:"step,omitempty"` // it is an outside step of the item that waits
}

// Says is what a [Statement] says. A meaning never changes.
type Says string

// What a statement says of why an item waits, with the facts that it has beside.
const (
	SaysSettled         Says = "settled"          // nothing keeps it; State
	SaysFailed          Says = "failed"           // Stage, Text: the error
	SaysAbandonAsked    Says = "abandon-asked"    // to abandon its version; Name by whom, Since, Text: the reason
	SaysHeld            Says = "held"             // Hold
	SaysHeldNext        Says = "held-next"        // its next step is; Hold
	SaysNotSealed       Says = "not-sealed"       // GraphID
	SaysRequires        Says = "requires"         // to start: the first Items of N
	SaysJobsOpen        Says = "jobs-open"        // to end: the first Items of N
	SaysLocked          Says = "locked"           // by the only one of Items, if it is known; Name: the object
	SaysNoted           Says = "noted"            // Text: what its worker noted
	SaysNextCheck       Says = "next-check"       // Until
	SaysRetry           Says = "retry"            // Until; N: number of the try, 0: unknown; Of: the last one's, 0: unknown; Text: the error
	SaysNotDue          Says = "not-due"          // it waits for its time
	SaysPlace           Says = "place"            // N of Of in the line of Stage, where Others collections take turns; both at most [MostInLine]+1
	SaysTurn            Says = "turn"             // in the line of Stage
	SaysShareUsed       Says = "share-used"       // Collection has Of slots of N at Stage, its share; Others are kept for other collections, and for Uploads
	SaysSlotsTaken      Says = "slots-taken"      // of N slots at Stage all but Others, which are for uploads; Collection has Of
	SaysStageLimit      Says = "stage-limit"      // N run at Stage, which is the limit
	SaysCollectionLimit Says = "collection-limit" // N of Collection run, which is the limit
	SaysAlone           Says = "alone"            // its workers were lost N times, so it runs alone, on worker Name if that is known
	SaysNoWorker        Says = "no-worker"        // that serves Stage; Hold: of the workers
	SaysStopping        Says = "stopping"         // the last worker that serves Stage is
	SaysRunning         Says = "running"          // on worker Name; Stage, Since and Until (its lease), if they are known
	SaysLeaseOver       Says = "lease-over"       // of worker Name, which ran Stage; Until
	SaysProgress        Says = "progress"         // Progress
)

// What a statement says of what helps. The first ones say that nothing needs to be done.
const (
	SaysStartsInTurn   Says = "starts-in-turn"
	SaysStartsFreed    Says = "starts-when-freed"  // when one at Stage ends
	SaysLimitFreed     Says = "limit-freed"        // when one ends
	SaysJobsSettle     Says = "jobs-settle"        // when they have
	SaysLockFreed      Says = "lock-freed"         // when the other item has settled
	SaysThaws          Says = "thaws"              // when the archive has restored the files
	SaysRetried        Says = "retried"            // by itself; or now, by a retry of ItemID
	SaysChecked        Says = "checked"            // by itself; or now, by a retry of ItemID
	SaysAdvice         Says = "advice"             // Text: of the worker, or that of Remedy in English
	SaysRelease        Says = "release"            // Hold, of which only the scope and the key are given
	SaysRequeue        Says = "requeue"            // the only one of Items
	SaysSeal           Says = "seal"               // GraphID
	SaysStart          Says = "start"              // what serves Stage
	SaysFreeRoom       Says = "free-room"          // on its volume
	SaysMoreMemory     Says = "more-memory"        // for workers that unpack
	SaysConfirmAbandon Says = "confirm-abandoning" // by another admin
)

// What a statement says of what an act entails, of which nothing can be undone.
const (
	SaysBatchEnds       Says = "batch-ends"       // for good, as its jobs do
	SaysJobEnds         Says = "job-ends"         // for good
	SaysItemEnds        Says = "item-ends"        // for good
	SaysReportedFailed  Says = "reported-failed"  // by batch ItemID
	SaysNotListed       Says = "not-listed"       // in the report of batch ItemID
	SaysStagingGoes     Says = "staging-goes"     // Bytes, of N jobs; N 0: of the item itself
	SaysWaitingAborted  Says = "waiting-aborted"  // N that wait for its success
	SaysVersionStays    Says = "version-stays"    // N of object Name
	SaysReceiverUntold  Says = "receiver-untold"  // Name
	SaysStepsSkipped    Says = "steps-skipped"    // those that a preserved object had left
	SaysMailAborted     Says = "mail-aborted"     // to Name that it was
	SaysMailDeleted     Says = "mail-deleted"     // to Name that it was
	SaysLastReport      Says = "last-report"      // the depositor hears nothing after it
	SaysDepositorUntold Says = "depositor-untold" // of this
	SaysJobsAborted     Says = "jobs-aborted"     // N
	SaysJobsDeleted     Says = "jobs-deleted"     // N, Of of them running or waiting
	SaysCompletedStay   Says = "completed-stay"   // what N jobs stored
	SaysFailedStay      Says = "failed-stay"      // N jobs
	SaysUndelivered     Says = "undelivered-stay" // N jobs without their callbacks
	SaysObjectsStay     Says = "objects-stay"     // of N jobs that did not complete
	SaysCompleteUntold  Says = "complete-untold"  // N jobs, whose receivers are not notified
	SaysCompleteYet     Says = "complete-yet"     // N jobs
	SaysNotAborted      Says = "not-aborted"      // N jobs past the point of no return
	SaysNotDeleted      Says = "not-deleted"      // N jobs past the point of no return
	SaysAsked           Says = "asked"            // Name by whom, Since, Text: the reason
	SaysAbandoned       Says = "abandoned"        // version N of object Name
	SaysCompleteKept    Says = "complete-kept"    // a version that is complete in a storage
	SaysThenRequeue     Says = "then-requeue"     // or delete it
	SaysMustAgree       Says = "must-agree"       // another admin within Of days to abandoning version N of object Name
	SaysWithdraws       Says = "withdraws"        // a requeue before that
)

// What a statement says of a value that a request cannot have.
const (
	SaysTooLong      Says = "too-long"       // N bytes, of at most Of
	SaysControl      Says = "control"        // byte N is the control character Name
	SaysNotOneOf     Says = "not-one-of"     // Name is none of those in Text
	SaysNoDigest     Says = "no-digest"      // one of algorithm Name has N hex digits
	SaysTooManyMails Says = "too-many-mails" // N addresses, of at most Of
	SaysTooManyIDs   Says = "too-many-ids"   // N local ids, of at most Of
	SaysTwice        Says = "twice"          // Name is listed twice
	SaysNoScheme     Says = "no-scheme"      // Name, of an address, is not supported
	SaysPart         Says = "part"           // of object Name, in place of the object
	SaysNoARK        Says = "no-ark"         // Name; Text: why
	SaysNoMailTo     Says = "no-mail-to"     // Name is allowed
)

// MostInLine is how many items of a line are counted.
const MostInLine = 10_000

// Foreign stands in a text for an item that its reader may not see.
const Foreign = "(of another collection)"
