package mail

import "time"

// Kind names a mail, and its two templates: KIND.txt and KIND.html.
type Kind string

// The kinds. The type behind each is what its templates are given.
const (
	KindQueued Kind = "queued" // [Queued]: a batch was taken in
	KindReport Kind = "report" // [Report]: what became of a batch's jobs, or what changed since that was told
	KindFailed Kind = "failed" // [Failed]: a batch could not be read, or not to its end
	// KindStopped is [Stopped]: an admin ended a batch for good.
	KindStopped Kind = "stopped"
	KindSafe    Kind = "safe"   // [Safe]: every copy of all that was in a batch was read back
	KindDigest  Kind = "digest" // [Digest]: what waits for the operators
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{KindQueued, KindReport, KindFailed, KindStopped, KindSafe, KindDigest}
}

// Batch is what all mails about a batch know of it.
type Batch struct {
	ID         string
	Name       string // the payload's, for people
	Title      string
	Collection string // its mnemonic
	Submitter  string // whom the submission names; "": nobody
	By         string // the token that submitted it
	Submitted  time.Time
	Link       string // to its page; "" when there is no public address
}

// Queued is what the mail about a batch that was taken in says.
type Queued struct {
	Batch
	Payload string // what was submitted: a file's name, or an address
}

// Report is what the mail about a batch's report says.
type Report struct {
	Batch
	// Outcome is OK, FAILED or UPDATED.
	Outcome   string
	Number    int64 // of the report; 1 is the first of the batch
	Made      time.Time
	Jobs      int64
	Completed int64
	Preserved int64 // did not complete, although their objects are preserved: their receivers were not told, for instance
	Failed    int64 // all others
	// Changes is what is different from the report before; nil for the first one.
	Changes *Changes
	// Failures are the first of the jobs that failed; More is how many others there are.
	Failures []Job
	More     int64
	// Mended are the first of those that have completed since the report before; MoreMended is how
	// many others there are.
	Mended     []Job
	MoreMended int64
	// Repeated are the first of the jobs whose rows repeat an earlier row of the manifest;
	// MoreRepeated is how many others there are.
	Repeated     []Job
	MoreRepeated int64
	// Repeats is the id of the earlier batch with the same content, which is why this one has no
	// jobs.
	Repeats string
	// Attached are the names of the files that go with the mail, and LeftOut those that are too
	// large for that.
	Attached []string
	LeftOut  []string
}

// Changes counts what is different from an earlier report.
type Changes struct {
	Since        int64 // its number
	NowCompleted int64
	StillFailed  int64
	NewlyFailed  int64
	NowStopped   int64 // cancelled, aborted or deleted by an admin
}

// Job is one job of a batch.
type Job struct {
	Name     string
	Place    string // in its batch, such as "row 3, line 5"
	Repeats  string // the place of the first row that says the same; ""
	LocalIDs string // several with "; " between them
	ARK      string
	Version  int
	State    string
	Error    string
	Fault    string // whose: "the deposit" or "the system"; "" when it was stopped by an admin
	Fix      string // what puts it right
	Link     string // to its page, or ""
}

// Failed is what the mail about a batch that could not be read, or not to its end, says.
type Failed struct {
	Batch
	At    time.Time
	Error string
	Fault string // as in [Job]
	Fix   string
}

// Stopped is what the mail says about a batch that an admin ended for good: no report, or no
// further one, will come.
type Stopped struct {
	Batch
	At    time.Time
	State string // aborted or deleted
	Why   string // the reason that was given; "" for none
	Jobs  int64  // that there were
	// Preserved are those whose objects are preserved and stay, Carried those that are past the
	// point of no return and will be, and Left those that failed or were cancelled before, which
	// operators may still requeue, and Ended all others: of these nothing is kept.
	Preserved int64
	Carried   int64
	Left      int64
	Ended     int64
}

// Safe is what the mail says when the depositor's own copy is not the only one any more.
type Safe struct {
	Batch
	Objects  int64
	Storages []string  // that each of them is kept in
	Verified time.Time // when the copy that was read longest ago was read
}

// Digest is what operators are told once a period.
type Digest struct {
	At       time.Time
	Link     string     // to the pages, or ""
	Needs    bool       // there is anything below
	Failed   int64      // items that need a person
	Failures []Cause    // by their causes, the largest first
	More     int64      // how many other causes there are
	Held     int64      // batches
	Holds    []Hold     // the first of them
	Deletes  []Deletion // that wait for another person, the first of them
	Damaged  int64      // stored files that are known not to be right somewhere
	Waiting  *Waiting   // the item that waits longest; nil when none does
	Untold   int64      // messages to receivers and addresses that could not be delivered yet, or at all
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

// Hold keeps items from starting.
type Hold struct {
	On     string
	Reason string
	Actor  string
	Since  time.Time
}

// Deletion waits for a person to approve it.
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

// Untold is a message that was not delivered.
type Untold struct {
	To    string
	About string // the item's id
	Tries int
	Error string
	Over  bool // nobody tries it any more
}

// NoAccept says since when and why no submissions are accepted.
type NoAccept struct {
	Reason string
	Actor  string
	Since  time.Time
}
