package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WorkItem is the unit of durable work: a job, a batch, a task. Its fields mirror the row of table
// work_item; [StateOf] derives State.
type WorkItem struct {
	ID         string `json:"id"`
	Tenant     string `json:"tenant"`
	Collection string `json:"collection"`
	ParentID   string `json:"parent_id,omitempty"`
	// Row and Line are set for jobs. Row is the job's place in the batch, counted from 1. Line is
	// its line in the batch's manifest, or 1 without a manifest. Batches expanded by programs that
	// did not count rows have the line in both.
	Row  int64 `json:"row,omitempty"`
	Line int64 `json:"line,omitempty"`

	Action Action `json:"action"`
	State  State  `json:"state"`
	Stage  Stage  `json:"stage"`
	Status Status `json:"status"`

	Priority int    `json:"priority"` // lower first
	Name     string `json:"name"`     // for people: the payload's file name

	// Storages are the storages for the version of the item's object, the primary one first; none
	// for items that make no version.
	Storages []string `json:"storages,omitempty"`
	// Optional lists the optional steps that the item takes. They are fixed when the item is
	// inserted, so that later changes of profile or route never affect it (R27).
	Optional []Stage `json:"optional,omitempty"`

	Spec    json.RawMessage            `json:"spec,omitempty"`    // immutable input; a [Spec] for jobs and batches
	Results map[string]json.RawMessage `json:"results,omitempty"` // durable results, of work that must not be repeated

	SizeBytes int64 `json:"size_bytes"` // -1 unknown
	Files     int64 `json:"files"`      // -1 unknown
	DoneBytes int64 `json:"done_bytes"` // transferred so far
	DoneFiles int64 `json:"done_files"`

	BlockerCount int64 `json:"blocker_count"` // open requirements
	Closing      int64 `json:"closing,omitempty"`
	Attempt      int64 `json:"attempt"`     // fencing token; only grows
	Tries        int   `json:"tries"`       // counted failures in this stage
	RetryCount   int   `json:"retry_count"` // how often an admin requeued it
	// NextTry is derived: the next try after a system fault; nil if the item does not wait for one.
	NextTry *NextTry `json:"next_try,omitempty"`

	ErrorClass       ErrorClass `json:"error_class,omitempty"`
	Note             string     `json:"note,omitempty"`
	NeedsAdminReview bool       `json:"needs_admin_review"` // derived: failed
	// CorrectedBy is the batch that corrects this job, see [CorrectionReader]; "" also in lists that
	// are not those of one batch's jobs.
	CorrectedBy string `json:"corrected_by,omitempty"`
	Retry       bool   `json:"retry"` // derived: not settled
	AllowedActs []Act  `json:"allowed_acts,omitempty"`
	HeldBy      *Hold  `json:"held_by,omitempty"`  // oldest hold that covers it, or nil
	GraphID     string `json:"graph_id,omitempty"` // graph in which it was prepared
	// Commitment says how far the item has changed storage. For a job with a preserved object it is
	// Preserved, whatever happened to the job.
	Commitment Commitment `json:"commitment,omitempty"`
	// The allowed acts depend on these, too. API users get the acts.
	OwnHold  bool `json:"-"`
	Unsealed bool `json:"-"`
	JobsLeft bool `json:"-"`

	CreatedBy  string     `json:"created_by,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	RunAt      time.Time  `json:"run_at"`
	Delayed    bool       `json:"delayed,omitempty"` // it waits for RunAt: for its next try, or its next check after a snooze
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// Position returns the facts from which state and allowed acts are derived.
func (it WorkItem) Position() Position {
	return Position{
		Action: it.Action, Stage: it.Stage, Status: it.Status, Attempt: it.Attempt, Open: it.BlockerCount,
		Closing: it.Closing, Held: it.HeldBy != nil || it.State == StateHeld, Delayed: it.Delayed,
		OwnHold: it.OwnHold, Commitment: it.Commitment, Notifies: it.notifies(), Unsealed: it.Unsealed, JobsLeft: it.JobsLeft,
		JobsFailed: it.Status == Failed && it.ErrorClass == JobsFault,
	}
}

// FailedItself reports that the item failed on its own account and not because of its jobs: a batch
// whose manifest could not be read, or whose report could not be made.
func (it WorkItem) FailedItself() bool { return it.Status == Failed && it.ErrorClass != JobsFault }

// Route returns the item's route: that of its action with the item's optional steps. ok is false
// for an unknown action.
func (it WorkItem) Route() (r Route, ok bool) {
	r, ok = RouteOf(it.Action)
	return r.With(it.Optional), ok
}

// ErrorClass says who must act after a failure.
type ErrorClass string

// The error classes.
const (
	ContentFault ErrorClass = "content" // the deposit is wrong: the producer must fix it
	SystemFault  ErrorClass = "system"  // the system failed: the item can be retried unchanged
	JobsFault    ErrorClass = "jobs"    // jobs of the batch failed
)

// PayloadType says what a payload is.
type PayloadType string

// The payload types (docs/depositing.md). Auto is replaced by what the content shows before a job
// is inserted.
const (
	AutoType        PayloadType = "auto"
	FileType        PayloadType = "file"
	ContainerType   PayloadType = "container"
	BagType         PayloadType = "bag"
	ObjectManifest  PayloadType = "object-manifest"
	BatchManifest   PayloadType = "batch-manifest"
	ContainerBatch  PayloadType = "container-batch-manifest"
	SingleFileBatch PayloadType = "single-file-batch-manifest"
	uploadURLScheme             = "upload"
)

// PayloadTypes returns every type, auto first.
func PayloadTypes() []PayloadType {
	return []PayloadType{AutoType, FileType, ContainerType, BagType, ObjectManifest, BatchManifest, ContainerBatch, SingleFileBatch}
}

// JobType returns the payload type of each row of a batch manifest; ok is false if t is not a batch
// manifest.
func (t PayloadType) JobType() (job PayloadType, ok bool) {
	switch t {
	case BatchManifest:
		return ObjectManifest, true
	case ContainerBatch:
		return ContainerType, true
	case SingleFileBatch:
		return FileType, true
	case AutoType, FileType, ContainerType, BagType, ObjectManifest:
		return "", false
	}
	return "", false
}

// Mode says what a job does to an existing object.
type Mode string

// The modes.
const (
	Add    Mode = "add"    // the new version contains exactly the submitted files
	Update Mode = "update" // the new version is the previous one with files added, replaced and (mrt-delete.txt) removed
)

// Digest is a fixity value, given by a depositor or computed.
type Digest struct {
	Algorithm string `json:"algorithm"` // lower case, as checkm and stdlib name them: md5, sha1, sha256, sha512
	Value     string `json:"value"`     // lower-case hex
}

// Spec is the immutable input of a batch and of its jobs: what was submitted, and the collection's
// profile at that time.
type Spec struct {
	RouteVersion int         `json:"route_version"`
	Type         PayloadType `json:"type"`
	Mode         Mode        `json:"mode"`
	URL          string      `json:"url"`      // http(s)://... or upload:ID
	Filename     string      `json:"filename"` // the payload's name
	SizeBytes    int64       `json:"size_bytes"`
	Digest       *Digest     `json:"digest,omitempty"` // of the payload, as given by the depositor
	// Received is the digest that an upload had when it arrived; nil: the payload is no upload.
	Received *Digest `json:"received,omitempty"`
	// Modified is when the payload, a single file, was last changed, as given by the depositor.
	// Zero: not given; the source's time counts.
	Modified    time.Time `json:"modified,omitzero"`
	PrimaryID   string    `json:"primary_id,omitempty"`
	LocalIDs    []string  `json:"local_ids,omitempty"`
	Submitter   string    `json:"submitter,omitempty"`
	UserAgent   string    `json:"user_agent,omitempty"`
	Title       string    `json:"title,omitempty"`
	TitleShared bool      `json:"title_shared,omitempty"` // Title is the batch's: the job's row has none
	Creator     string    `json:"creator,omitempty"`
	Date        string    `json:"date,omitempty"`
	Notify      []string  `json:"notify,omitempty"`
	SubmittedAt time.Time `json:"submitted_at"`
	Priority    *int      `json:"priority,omitempty"` // requested by the submission, else by the profile; nil: by the batch's size
	Force       bool      `json:"force,omitempty"`    // submitted even if it is a duplicate
	Profile     Profile   `json:"profile"`
	// Terms are those that the submission gives; see [Spec.TermsInForce].
	Terms Terms `json:"terms,omitzero"`
	// Repeats is the first row of the same batch with the same content; nil: there is none.
	Repeats *RowPlace `json:"repeats,omitempty"`
	// Corrects is the failed batch that this submission corrects; nil: none.
	Corrects *Corrects `json:"corrects,omitempty"`
	// Trace is the context of the trace that the item belongs to; nil: none.
	Trace *Trace `json:"trace,omitempty"`
	// ProfileVersion is the version number of Profile; 0: submitted before profiles had versions.
	ProfileVersion int `json:"profile_version,omitempty"`
}

// TermsInForce are the terms of the submission over those of the profile.
func (s Spec) TermsInForce() Terms { return s.Terms.Over(s.Profile.Terms) }

// Trace is the trace that an item belongs to, as values of the header traceparent (W3C Trace Context).
type Trace struct {
	Parent string `json:"parent" doc:"Trace, and the span that is the parent of those of the item's attempts"`
	Batch  string `json:"batch,omitempty" doc:"The batch's, for a row that has a trace of its own"`
}

// ID returns the id of the trace; "" if it has none, or if its spans are not kept.
func (t Trace) ID() string {
	if part := strings.Split(t.Parent, "-"); len(part) == 4 && len(part[1]) == 32 && part[3] == "01" {
		return part[1]
	}
	return ""
}

// TraceOf returns the trace in an item's spec; the zero value if there is none.
func TraceOf(spec json.RawMessage) (t Trace) {
	var in struct {
		Trace *Trace `json:"trace"`
	}
	if json.Unmarshal(spec, &in) == nil && in.Trace != nil {
		t = *in.Trace
	}
	return t
}

// OfRow returns the trace of a row of a batch manifest. It is a trace of its own, because a batch may
// have a million rows.
func (t *Trace) OfRow(id string) *Trace {
	if t == nil {
		return nil
	}
	sum := sha256.Sum256([]byte("trace of " + id))
	sampled := t.Parent[strings.LastIndexByte(t.Parent, '-')+1:]
	return &Trace{Parent: fmt.Sprintf("00-%x-%x-%s", sum[:16], sum[16:24], sampled), Batch: t.Parent}
}

// Corrects names a batch that failed, or has failed rows, which a submission corrects.
type Corrects struct {
	BatchID string      `json:"batch_id" id:"batches" doc:"A batch of the same collection that failed, or of which rows failed"`
	Lines   []LineRange `json:"lines,omitempty" maxItems:"500" doc:"Lines of its manifest: the submission has all rows of these that failed because of their content. Refused if another batch corrects one of them. When absent, it stands for all that failed and that no other batch corrects: refused until the batch has ended, and if there is nothing"`
	Rows    int64       `json:"rows,omitempty" minimum:"0" doc:"How many rows that failed because of their content lines has; refused if they are more or fewer. 0: not compared"`
}

// LineRange are lines of a manifest, from First to Last.
type LineRange struct {
	First int64 `json:"first" minimum:"1"`
	Last  int64 `json:"last" minimum:"1"`
}

// String is "7" or "7-9".
func (l LineRange) String() string {
	if l.First == l.Last {
		return strconv.FormatInt(l.First, 10)
	}
	return fmt.Sprintf("%d-%d", l.First, l.Last)
}

// MostLineRanges is how many ranges of lines a submission corrects.
const MostLineRanges = 500

// Check reports the first fault of the ranges, as an ErrInvalid in the field corrects.lines: they must
// be in ascending order and apart.
func (c Corrects) Check() error {
	wrong := func(field, format string, args ...any) error {
		return InField("corrects."+field, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	switch {
	case c.Rows < 0:
		return wrong("rows", "%d rows", c.Rows)
	case c.Rows > 0 && len(c.Lines) == 0:
		return wrong("lines", "missing: say on which lines of batch %s the %d rows are", c.BatchID, c.Rows)
	case len(c.Lines) > MostLineRanges:
		return wrong("lines", "%d ranges; at most %d are allowed", len(c.Lines), MostLineRanges)
	}
	before := int64(0)
	for i, l := range c.Lines {
		if l.First <= before || l.Last < l.First {
			return wrong(fmt.Sprintf("lines[%d]", i), "lines %s after line %d; give ranges in ascending order, apart, from line 1", l, before)
		}
		before = l.Last
	}
	return nil
}

// UpdatesNothing reports that the submission updates an object but cannot name it: it gives no
// identifier, and a single file, unlike a folder, container or bag, contains none.
func (s Spec) UpdatesNothing() bool { return s.Type == FileType && s.UpdatesUnnamed() }

// UpdatesUnnamed reports that the submission updates an object but gives no identifier. Only its
// payload can contain one.
func (s Spec) UpdatesUnnamed() bool {
	return s.Mode == Update && s.PrimaryID == "" && len(s.LocalIDs) == 0
}

// ErrUpdatesNothing refuses a submission for which [Spec.UpdatesNothing] holds, or for which
// [Spec.UpdatesUnnamed] holds and whose payload names no object.
var ErrUpdatesNothing = errors.New("an update must say what it updates: give the object's ARK or a local id")

// UploadURL returns the payload URL of a stored upload.
func UploadURL(id string) string { return uploadURLScheme + ":" + id }

// UploadID returns the id of the stored upload that a payload URL names; ok is false for other
// URLs.
func UploadID(url string) (id string, ok bool) { return strings.CutPrefix(url, UploadURL("")) }

// Event is one thing that happened. Events are append-only.
type Event struct {
	// ID identifies the event for ever. A Registry restored from a backup reuses the numbers of
	// lost events, but not their ids.
	ID     string `json:"id"`
	Seq    int64  `json:"seq"`     // the feed's cursor (R17)
	ItemID string `json:"item_id"` // or the id of the hold, token or collection concerned
	// Collection is the item's at that time; "" without a collection.
	Collection string          `json:"collection,omitempty"`
	Attempt    int64           `json:"attempt,omitempty"`
	Type       string          `json:"type"` // an [Act], or another type: minted, fixity-mismatch, ...
	Actor      string          `json:"actor"`
	AuditID    string          `json:"audit_id,omitempty"` // bulk act that it is part of
	At         time.Time       `json:"at"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Heading returns an item's name for people: the title, else the name, else the id. A job that has its
// title only from its batch is called by its name, which tells it from the others.
func (it WorkItem) Heading() string {
	return cmp.Or(it.OwnTitle(), it.Name, it.ID)
}

// OwnTitle returns the title that the spec of a batch or job gives; "" if that is only its batch's.
func (it WorkItem) OwnTitle() string {
	var spec Spec
	if !it.Action.Titled() || json.Unmarshal(it.Spec, &spec) != nil {
		return ""
	}
	return spec.OwnTitle()
}

// Titled reports whether items with an action can have a title, because their spec is a [Spec].
func (a Action) Titled() bool { return a == Batch || a == Ingest }

// OwnTitle returns the title unless it is only that of the batch.
func (s Spec) OwnTitle() string {
	if s.TitleShared {
		return ""
	}
	return s.Title
}

// NameBelow returns an item's name if its heading is another text, such as the file name of a job
// with a title; else "".
func (it WorkItem) NameBelow() string {
	if it.Name == it.Heading() {
		return ""
	}
	return it.Name
}

// Own reports whether all data that the item's spec names were uploaded to us. The files in an
// uploaded object manifest were not; a batch itself reads only its manifest. Names inside a
// payload, such as in a bag's fetch.txt, are not known yet.
func (s Spec) Own(a Action) bool {
	_, uploaded := UploadID(s.URL)
	return uploaded && (a != Ingest || s.Type != ObjectManifest)
}

// IDStart reports whether a text has the form of an item's id, or of at least its first 8
// characters.
func IDStart(text string) bool {
	const least, whole = 8, 36
	if len(text) < least || len(text) > whole {
		return false
	}
	for i, c := range []byte(text) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return false
		}
	}
	return true
}
