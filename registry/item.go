package registry

import (
	"encoding/json"
	"strings"
	"time"
)

// WorkItem is the one unit of durable work: a job, a batch, a task. The fields mirror the row of table work_item;
// State is derived by [StateOf].
type WorkItem struct {
	ID         string `json:"id"`
	Tenant     string `json:"tenant"`
	Collection string `json:"collection"`
	ParentID   string `json:"parent_id,omitempty"`
	Row        int64  `json:"row,omitempty"` // line of the parent's manifest; 0 where there is none

	Action Action `json:"action"`
	State  State  `json:"state"`
	Stage  Stage  `json:"stage"`
	Status Status `json:"status"`

	Priority int    `json:"priority"` // lower first
	Name     string `json:"name"`     // for people: the payload's file name

	// Storages are the storage volumes that a version of its object goes to, the first one first; none for an item that makes
	// none.
	Storages []string `json:"storages,omitempty"`
	// Optional is the optional steps of its route that it takes. They are decided when it is made, with its spec: a profile
	// or a route that changes never moves an item under way (R27).
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

	ErrorClass       ErrorClass `json:"error_class,omitempty"`
	Note             string     `json:"note,omitempty"`
	NeedsAdminReview bool       `json:"needs_admin_review"` // derived: failed
	Retry            bool       `json:"retry"`              // derived: not settled
	AllowedActs      []Act      `json:"allowed_acts,omitempty"`
	HeldBy           *Hold      `json:"held_by,omitempty"`  // the oldest hold that covers it; nil: none
	GraphID          string     `json:"graph_id,omitempty"` // of an item that was prepared with others

	CreatedBy  string     `json:"created_by,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	RunAt      time.Time  `json:"run_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// Position is what the item's state and the acts that may be asked of it are derived from.
func (it WorkItem) Position() Position {
	return Position{
		Action: it.Action, Stage: it.Stage, Status: it.Status, Attempt: it.Attempt, Open: it.BlockerCount,
		Closing: it.Closing, Held: it.HeldBy != nil || it.State == StateHeld,
	}
}

// Route is the route that the item takes: that of its action with its own optional steps. ok is false for an unknown action.
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

// The payload types (design section 8). Auto is resolved by content before a job is made.
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

// JobType returns what each row of a batch manifest of this type names; ok is false when t is no batch manifest.
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

// Spec is the immutable input of a batch and of each of its jobs: what was submitted, and the collection's profile as
// it was at that moment.
type Spec struct {
	RouteVersion int         `json:"route_version"`
	Type         PayloadType `json:"type"`
	Mode         Mode        `json:"mode"`
	URL          string      `json:"url"`      // http(s)://... or upload:ID
	Filename     string      `json:"filename"` // the payload's name
	SizeBytes    int64       `json:"size_bytes"`
	Digest       *Digest     `json:"digest,omitempty"` // of the payload, as the depositor gave it
	PrimaryID    string      `json:"primary_id,omitempty"`
	LocalIDs     []string    `json:"local_ids,omitempty"`
	Submitter    string      `json:"submitter,omitempty"`
	UserAgent    string      `json:"user_agent,omitempty"`
	Title        string      `json:"title,omitempty"`
	Creator      string      `json:"creator,omitempty"`
	Date         string      `json:"date,omitempty"`
	Notify       []string    `json:"notify,omitempty"`
	SubmittedAt  time.Time   `json:"submitted_at"`
	Priority     *int        `json:"priority,omitempty"` // asked for by the submission, else by the profile; nil: by the batch's size
	Force        bool        `json:"force,omitempty"`    // submitted although the same content may be here already
	Profile      Profile     `json:"profile"`
}

// Profile is what a collection asks for. It is frozen into each spec at submit.
type Profile struct {
	Name         string   `json:"name"`          // for people
	Owner        string   `json:"owner"`         // ARK under which local ids are unique
	Collections  []string `json:"collections"`   // ARKs an object becomes a member of
	NOIDTemplate string   `json:"noid_template"` // for minting; "" = the service's
	// Minting is where names that we choose are kept: MintLocally, the default, or MintEZID.
	Minting         string `json:"minting,omitempty"`
	DigestAlgorithm string `json:"digest_algorithm"` // of OCFL inventories: sha512 (default) or sha256
	Priority        *int   `json:"priority,omitempty"`
	// ReleaseOneByOne: releasing a hold on the collection lets nothing go by itself, as in Merritt; each batch and job is
	// released on its own.
	ReleaseOneByOne bool `json:"release_one_by_one,omitempty"`
	// StopOnBadRow: a batch manifest is taken whole or not at all. One row that cannot be right, by what the manifest says,
	// fails the batch before it has a job; otherwise a bad row fails alone.
	StopOnBadRow bool `json:"stop_on_bad_row,omitempty"`
	// Scan: every file is looked at for viruses before anything is preserved. ScanPartly: what the engine cannot see all of,
	// mostly for its size, is preserved all the same and recorded as not scanned; otherwise its job fails.
	Scan       bool `json:"scan,omitempty"`
	ScanPartly bool `json:"scan_partly,omitempty"`
	// DuplicateDays is for how many days after a submission another one of the same content is answered with it; nil =
	// [DefaultDuplicateDays], 0 = never.
	DuplicateDays *int `json:"duplicate_days,omitempty"`
	// Storages name the storage volumes that each version is kept in, the one first where it is written first and read from;
	// none = [DefaultStorage].
	Storages []string `json:"storages,omitempty"`
	// Callback is told how each job ended; nil: nobody is.
	Callback *Callback `json:"callback,omitempty"`
	// BagProfile is the BagIt profile, a JSON document, that bags must meet; empty = none.
	BagProfile json.RawMessage `json:"bag_profile,omitempty"`
}

// The values of [Profile.Minting]. In both cases names are drawn here, from the collection's template.
const (
	MintLocally = "noid" // they are known here only
	MintEZID    = "ezid" // EZID knows them, too, and makes them public when their object is recorded
)

// The default of [Profile.DuplicateDays], and the most that can be asked for.
const (
	DefaultDuplicateDays = 30
	MostDuplicateDays    = 36_500
)

// DuplicateWindow is how long after a submission another one of the same content is a duplicate; 0 is never.
func (p Profile) DuplicateWindow() time.Duration {
	days := DefaultDuplicateDays
	if p.DuplicateDays != nil {
		days = *p.DuplicateDays
	}
	return time.Duration(min(max(days, 0), MostDuplicateDays)) * 24 * time.Hour
}

// Optional returns the optional steps, in the order of the routes, that the items of a submission under this profile take:
// the batch notes them for its jobs.
func (p Profile) Optional() []Stage {
	var taken []Stage
	if p.Scan {
		taken = append(taken, Scan)
	}
	if len(p.Storages) > 1 {
		taken = append(taken, Replicate)
	}
	return taken
}

// Digests returns the algorithm of the collection's OCFL inventories, sha512 when none is set.
func (p Profile) Digests() string {
	if p.DigestAlgorithm == "" {
		return defaultDigestAlg
	}
	return p.DigestAlgorithm
}

// Collection is a set of objects with one profile.
type Collection struct {
	Mnemonic  string    `json:"mnemonic"`
	Tenant    string    `json:"tenant"`
	Profile   Profile   `json:"profile"`
	CreatedAt time.Time `json:"created_at"`
}

// UploadURL is the payload URL of a stored upload.
func UploadURL(id string) string { return uploadURLScheme + ":" + id }

// UploadID is the id of the stored upload that a payload URL names; ok is false for any other address.
func UploadID(url string) (id string, ok bool) { return strings.CutPrefix(url, UploadURL("")) }

// Upload is a payload that was sent to us and stored before it was acknowledged.
type Upload struct {
	ID        string    `json:"id"`
	Filename  string    `json:"filename"`
	SizeBytes int64     `json:"size_bytes"`
	Digest    Digest    `json:"digest"`
	CreatedBy string    `json:"created_by,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// Event is one thing that happened. Events are only ever added.
type Event struct {
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

// Attempt is one claim of one item by one worker; while it is open it is the lease.
type Attempt struct {
	ItemID     string     `json:"item_id"`
	N          int64      `json:"n"`
	Stage      Stage      `json:"stage"`
	Worker     string     `json:"worker"`
	StartedAt  time.Time  `json:"started_at"`
	LeaseUntil time.Time  `json:"lease_until"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Outcome    Outcome    `json:"outcome,omitempty"`
	Error      string     `json:"error,omitempty"`
	Progress   []Progress `json:"progress,omitempty"`
}

// Progress is one measure of a running step. A step may have several, told apart by title.
type Progress struct {
	Title    string `json:"title"`
	Unit     string `json:"unit"` // files, bytes, rows
	Position int64  `json:"position"`
	End      int64  `json:"end"`            // -1 unknown
	Kept     bool   `json:"kept,omitempty"` // a later attempt goes on where this one stood, see [ResumePoint]
}
