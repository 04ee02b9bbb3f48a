package mail

import (
	"cmp"
	"time"
)

// Kind names a mail, and its two templates: KIND.txt and KIND.html.
type Kind string

// The kinds. Each template gets a value of the type in brackets.
const (
	KindQueued Kind = "queued" // [Queued]: a batch was accepted
	KindReport Kind = "report" // [Report]: the outcomes of a batch's jobs, or the changes since the previous report
	KindFailed Kind = "failed" // [Failed]: a batch could not be read completely
	// KindStopped is [Stopped]: an admin ended a batch for good.
	KindStopped Kind = "stopped"
	KindSafe    Kind = "safe"   // [Safe]: all copies of a batch's objects were verified
	KindDigest  Kind = "digest" // [Digest]: tasks that wait for the operators
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{KindQueued, KindReport, KindFailed, KindStopped, KindSafe, KindDigest}
}

// Batch has the fields of all mails about a batch.
type Batch struct {
	ID         string
	Name       string // the payload's, for people
	Title      string
	Collection string // its mnemonic
	Submitter  string // the submitter that the submission names; "": none
	By         string // the token that submitted it
	Submitted  time.Time
	Link       string // to its page; "" if the service has no public address
}

// Heading is what mails call the batch: its title, else its name.
func (b Batch) Heading() string { return cmp.Or(b.Title, b.Name) }

// Queued is the data of the mail about an accepted batch.
type Queued struct {
	Batch
	Payload string // what was submitted: a file's name, or an address
}

// Report is the data of the mail about a batch's report.
type Report struct {
	Batch
	// Outcome is OK, FAILED or UPDATED.
	Outcome   string
	Number    int64 // of the report; 1 is the first of the batch
	Made      time.Time
	Jobs      int64
	Completed int64
	Preserved int64 // not completed although their objects are preserved, for instance because notifying the receiver failed
	Failed    int64 // all others
	// Changes are the differences from the previous report; nil for the first one.
	Changes *Changes
	// Failures are the first failed jobs; More is the number of others.
	Failures []Job
	More     int64
	// Mended are the first jobs that completed since the previous report; MoreMended is the number
	// of others.
	Mended     []Job
	MoreMended int64
	// Repeated are the first jobs whose rows repeat an earlier row of the manifest; MoreRepeated is
	// the number of others.
	Repeated     []Job
	MoreRepeated int64
	// Repeats is the id of the earlier batch with the same content. A batch that repeats one has no
	// jobs.
	Repeats string
	// Attached are the names of the attached files; LeftOut those of files that were too large to
	// attach.
	Attached []string
	LeftOut  []string
}

// Changes counts the differences from an earlier report.
type Changes struct {
	Since        int64 // its number
	NowCompleted int64
	StillFailed  int64
	NewlyFailed  int64
	NowStopped   int64 // cancelled, aborted or deleted by an admin
}

// Job is one job of a batch.
type Job struct {
	Name     string // its title, else its file's
	Place    string // in its batch, such as "row 3, line 5"
	Repeats  string // the place of the earlier row that this one repeats, or ""
	LocalIDs string // several with "; " between them
	ARK      string
	Version  int
	State    string
	Error    string
	Fault    string // "the deposit" or "the system"; "" if an admin stopped the job
	Fix      string // what to do
	Link     string // to its page, or ""
}

// Failed is the data of the mail about a batch that could not be read completely.
type Failed struct {
	Batch
	At    time.Time
	Error string
	Fault string // as in [Job]
	Fix   string
}

// Stopped is the data of the mail about a batch that an admin ended for good: no further report
// comes.
type Stopped struct {
	Batch
	At    time.Time
	State string // aborted or deleted
	Why   string // the reason; "" for none
	Jobs  int64  // of the batch
	// Preserved counts jobs whose objects are preserved and stay. Carried counts jobs past the
	// point of no return, whose objects will be preserved. Left counts jobs that had failed or were
	// cancelled before; operators may still requeue them. Ended counts all others: nothing of them
	// is kept.
	Preserved int64
	Carried   int64
	Left      int64
	Ended     int64
}

// Safe is the data of the mail that the depositor's own copy is no longer the only one.
type Safe struct {
	Batch
	Objects  int64
	Storages []string  // that hold each object
	Verified time.Time // the oldest verification of a copy
}

// Digest is the data of the operators' periodic mail.
type Digest struct {
	At       time.Time
	Link     string     // to the pages, or ""
	Needs    bool       // any of the following is set
	Failed   int64      // items that need review
	Failures []Cause    // by cause, the largest group first
	More     int64      // number of other causes
	Held     int64      // batches
	Holds    []Hold     // the first of them
	Deletes  []Deletion // the first ones that wait for approval
	Damaged  int64      // stored files that are damaged in a storage
	Damages  []Damage   // if any are: the first checks that failed
	Waiting  *Waiting   // the item that waits longest; nil if none waits
	Untold   int64      // undelivered messages
	Messages []Untold   // the first of them
	Accept   *NoAccept  // nil while submissions are accepted
}

// Cause is a group of failures.
type Cause struct {
	Items int64
	Stage string
	Fault string // as in [Job]
	Error string
	Fix   string
}

// Damage is a check of a stored file that failed.
type Damage struct {
	Check string // says which object and file
	Error string
	Link  string // to its page, or ""
}

// Hold is a hold on items.
type Hold struct {
	On     string
	Reason string
	Actor  string
	Since  time.Time
}

// Deletion is a deletion that waits for approval.
type Deletion struct {
	Object string
	Reason string
	Actor  string
	Since  time.Time
}

// Waiting is an item that waits.
type Waiting struct {
	ID    string
	Name  string
	State string
	Since time.Time
	Why   string
	Link  string
}

// Untold is an undelivered message.
type Untold struct {
	To    string
	About string // the item's id
	Tries int
	Error string
	Over  bool // it is not tried again
}

// NoAccept says since when and why submissions are not accepted.
type NoAccept struct {
	Reason string
	Actor  string
	Since  time.Time
}
