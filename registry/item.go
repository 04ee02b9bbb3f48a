package registry

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// WorkItem is the one unit of durable work: a job, a batch, a task. The fields mirror the row of
// table work_item; State is derived by [StateOf].
type WorkItem struct {
	ID         string `json:"id"`
	Tenant     string `json:"tenant"`
	Collection string `json:"collection"`
	ParentID   string `json:"parent_id,omitempty"`
	// Of a job: Row is its place in the batch, counted from 1, and Line the line of the batch's
	// manifest, which is 1 where there is no manifest. Batches that were expanded by a program that
	// did not count rows have the line in both.
	Row  int64 `json:"row,omitempty"`
	Line int64 `json:"line,omitempty"`

	Action Action `json:"action"`
	State  State  `json:"state"`
	Stage  Stage  `json:"stage"`
	Status Status `json:"status"`

	Priority int    `json:"priority"` // lower first
	Name     string `json:"name"`     // for people: the payload's file name

	// Storages are the storage volumes that a version of its object goes to, the first one first;
	// none for an item that makes none.
	Storages []string `json:"storages,omitempty"`
	// Optional is the optional steps of its route that it takes. They are decided when it is made,
	// with its spec: a profile or a route that changes never moves an item under way (R27).
	Optional []Stage `json:"optional,omitempty"`

	Spec    json.RawMessage            `json:"spec,omitempty"`    // immutable input, a [Spec] for jobs and batches
	Results map[string]json.RawMessage `json:"results,omitempty"` // durable results that must not be redone (column state)

	SizeBytes int64 `json:"size_bytes"` // -1 unknown
	Files     int64 `json:"files"`      // -1 unknown
	DoneBytes int64 `json:"done_bytes"` // of the transfer, for progress
	DoneFiles int64 `json:"done_files"`

	BlockerCount int64 `json:"blocker_count"` // open prerequisites
	Closing      int64 `json:"closing,omitempty"`
	Attempt      int64 `json:"attempt"`     // the fencing token; only grows
	Tries        int   `json:"tries"`       // counted failures in this stage
	RetryCount   int   `json:"retry_count"` // times an admin sent it back
	// NextTry is derived: what an item waits for whose step failed on a system fault; nil for any
	// other.
	NextTry *NextTry `json:"next_try,omitempty"`

	ErrorClass       ErrorClass `json:"error_class,omitempty"`
	Note             string     `json:"note,omitempty"`
	NeedsAdminReview bool       `json:"needs_admin_review"` // derived: failed
	Retry            bool       `json:"retry"`              // derived: not settled
	AllowedActs      []Act      `json:"allowed_acts,omitempty"`
	HeldBy           *Hold      `json:"held_by,omitempty"`  // the oldest hold that covers it; nil: none
	GraphID          string     `json:"graph_id,omitempty"` // of an item that was prepared with others
	// Commitment is how far the item is with what it changes in storage: a job whose object is
	// preserved says so here, whatever became of the job.
	Commitment Commitment `json:"commitment,omitempty"`
	// The acts that are allowed follow from these, too; whoever asks the API is told the acts.
	OwnHold  bool `json:"-"`
	Unsealed bool `json:"-"`
	JobsLeft bool `json:"-"`

	CreatedBy  string     `json:"created_by,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	RunAt      time.Time  `json:"run_at"`
	Delayed    bool       `json:"delayed,omitempty"` // it waits for RunAt: for its next try, or for the next look at what it lacked
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// Position is what the item's state and the acts that may be asked of it are derived from.
func (it WorkItem) Position() Position {
	return Position{
		Action: it.Action, Stage: it.Stage, Status: it.Status, Attempt: it.Attempt, Open: it.BlockerCount,
		Closing: it.Closing, Held: it.HeldBy != nil || it.State == StateHeld, Delayed: it.Delayed,
		OwnHold: it.OwnHold, Commitment: it.Commitment, Tells: it.tells(), Unsealed: it.Unsealed, JobsLeft: it.JobsLeft,
		JobsFailed: it.Status == Failed && it.ErrorClass == JobsFault,
	}
}

// FailedItself says that the item has failed for what is its own, and not for what its jobs did: a
// batch whose manifest could not be read, or whose report could not be made.
func (it WorkItem) FailedItself() bool { return it.Status == Failed && it.ErrorClass != JobsFault }

// Route is the route that the item takes: that of its action with its own optional steps. ok is
// false for an unknown action.
func (it WorkItem) Route() (r Route, ok bool) {
	r, ok = RouteOf(it.Action)
	return r.With(it.Optional), ok
}

// ErrorClass tells whose fault a failure is.
type ErrorClass string

// The error classes.
const (
	ContentFault ErrorClass = "content" // the deposit is wrong: the producer must fix it
	SystemFault  ErrorClass = "system"  // the system could not: it may be sent again as it is
	JobsFault    ErrorClass = "jobs"    // a batch some of whose jobs failed
)

// PayloadType says what a payload is.
type PayloadType string

// The payload types (docs/depositing.md). Auto is resolved by content before a job is made.
const (
	AutoType         PayloadType = "auto"
	FileType         PayloadType = "file"
	ContainerType    PayloadType = "container"
	BagType          PayloadType = "bag"
	ObjectManifest   PayloadType = "object-manifest"
	BatchManifest    PayloadType = "batch-manifest"
	ContainerBatch   PayloadType = "container-batch-manifest"
	SingleFileBatch  PayloadType = "single-file-batch-manifest"
	uploadURLScheme              = "upload"
	defaultDigestAlg             = "sha512"
)

// PayloadTypes returns every type, auto first.
func PayloadTypes() []PayloadType {
	return []PayloadType{AutoType, FileType, ContainerType, BagType, ObjectManifest, BatchManifest, ContainerBatch, SingleFileBatch}
}

// JobType returns what each row of a batch manifest of this type names; ok is false when t is no
// batch manifest.
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

// Mode says what a job does to an object that exists already.
type Mode string

// The modes.
const (
	Add    Mode = "add"    // the new version holds exactly what was submitted
	Update Mode = "update" // the new version is the old one with files added, replaced and (mrt-delete.txt) removed
)

// Digest is a fixity value as a depositor supplied it or we computed it.
type Digest struct {
	Algorithm string `json:"algorithm"` // lower case, as checkm and stdlib name them: md5, sha1, sha256, sha512
	Value     string `json:"value"`     // lower-case hex
}

// Spec is the immutable input of a batch and of each of its jobs: what was submitted, and the
// collection's profile as it was at that moment.
type Spec struct {
	RouteVersion int         `json:"route_version"`
	Type         PayloadType `json:"type"`
	Mode         Mode        `json:"mode"`
	URL          string      `json:"url"`      // http(s)://... or upload:ID
	Filename     string      `json:"filename"` // the payload's name
	SizeBytes    int64       `json:"size_bytes"`
	Digest       *Digest     `json:"digest,omitempty"` // of the payload, as the depositor gave it
	// Modified is when the payload, a single file, was last changed, as the depositor gave it;
	// zero: not said, and its source is believed.
	Modified    time.Time `json:"modified,omitzero"`
	PrimaryID   string    `json:"primary_id,omitempty"`
	LocalIDs    []string  `json:"local_ids,omitempty"`
	Submitter   string    `json:"submitter,omitempty"`
	UserAgent   string    `json:"user_agent,omitempty"`
	Title       string    `json:"title,omitempty"`
	Creator     string    `json:"creator,omitempty"`
	Date        string    `json:"date,omitempty"`
	Notify      []string  `json:"notify,omitempty"`
	SubmittedAt time.Time `json:"submitted_at"`
	Priority    *int      `json:"priority,omitempty"` // asked for by the submission, else by the profile; nil: by the batch's size
	Force       bool      `json:"force,omitempty"`    // submitted although the same content may be here already
	Profile     Profile   `json:"profile"`
	// Repeats is the first row of the same batch that says the same as this job's; nil: no earlier
	// one does.
	Repeats *RowPlace `json:"repeats,omitempty"`
	// ProfileVersion is the version of the collection's profile that Profile is; 0: it was
	// submitted before there were versions.
	ProfileVersion int `json:"profile_version,omitempty"`
}

// UpdatesNothing says that the submission is to update an object and cannot say which: it gives no
// identifier, and a single file, unlike a folder, container or bag, brings none along.
func (s Spec) UpdatesNothing() bool { return s.Type == FileType && s.UpdatesUnnamed() }

// UpdatesUnnamed says that the submission is to update an object and does not say which: only what
// is in its payload can.
func (s Spec) UpdatesUnnamed() bool {
	return s.Mode == Update && s.PrimaryID == "" && len(s.LocalIDs) == 0
}

// ErrUpdatesNothing refuses a submission of which [Spec.UpdatesNothing] is true, and one that is
// [Spec.UpdatesUnnamed] whose payload names no object either.
var ErrUpdatesNothing = errors.New("an update must say what it updates: give the object's ARK or a local id")

// UploadURL is the payload URL of a stored upload.
func UploadURL(id string) string { return uploadURLScheme + ":" + id }

// UploadID is the id of the stored upload that a payload URL names; ok is false for any other
// address.
func UploadID(url string) (id string, ok bool) { return strings.CutPrefix(url, UploadURL("")) }

// Event is one thing that happened. Events are only ever added.
type Event struct {
	// ID names the event and no other, for ever. A Registry that was brought back from a backup
	// gives the numbers of what it lost to other events; their ids are new.
	ID     string `json:"id"`
	Seq    int64  `json:"seq"`     // the feed's cursor (R17)
	ItemID string `json:"item_id"` // or the id of the hold, token or collection that it is about
	// Collection is the item's at that moment; "" for what is in no collection.
	Collection string          `json:"collection,omitempty"`
	Attempt    int64           `json:"attempt,omitempty"`
	Type       string          `json:"type"` // an [Act], or what else happened: minted, fixity-mismatch, ...
	Actor      string          `json:"actor"`
	AuditID    string          `json:"audit_id,omitempty"` // the act on many items that this is a part of
	At         time.Time       `json:"at"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Heading is what people know an item by: the title that a batch was given, else its name, else its
// id. A job goes by the name of its payload, since its title may be that of its batch.
func (it WorkItem) Heading() string {
	var spec Spec
	if it.Action == Batch && json.Unmarshal(it.Spec, &spec) == nil && spec.Title != "" {
		return spec.Title
	}
	if it.Name != "" {
		return it.Name
	}
	return it.ID
}

// Own says that all that an item of an action takes in by what its spec names lies here already, as
// an upload. The files that an uploaded object manifest lists do not; the manifest of a batch is
// all that the batch itself takes in. What is found in a payload, as a bag's fetch.txt is, is not
// known before it is read.
func (s Spec) Own(a Action) bool {
	_, uploaded := UploadID(s.URL)
	return uploaded && (a != Ingest || s.Type != ObjectManifest)
}

// IDStart says that text has the form of an item's id, or of the beginning of one that is long
// enough to look for.
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
