package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Profiles manages collections and the versions of their profiles.
type Profiles interface {
	// PutCollection creates a collection, or makes c.Profile the next version of its profile for
	// later submissions. c.Version is the version that the profile was made from, AnyVersion or
	// NoVersion; *VersionError if the collection is at another one. An unchanged profile makes no
	// version. *PriorityError: a profile cannot set this priority.
	PutCollection(ctx context.Context, c Collection, actor string) error
	// Collection returns one collection, or ErrNotFound.
	Collection(ctx context.Context, mnemonic string) (Collection, error)
	// Collections lists all collections by mnemonic.
	Collections(ctx context.Context) ([]Collection, error)
	// ProfileVersions lists the versions of a collection's profile with a number below before (0:
	// all), newest first. ErrNotFound: the collection is unknown.
	ProfileVersions(ctx context.Context, mnemonic string, before, limit int) ([]ProfileVersion, error)
}

// Profile is the rules of a collection. Admins write it, over HTTP or in files, and each spec keeps
// a copy from its submission. Only Owner and Collections are required, by the API.
//
// Fields that are written although empty must stay so: submissions are compared by a digest that
// includes the empty Profile.
type Profile struct {
	Name string `json:"name" required:"false" doc:"Name for people; default: the mnemonic"`
	// Owner: local ids are unique under it.
	Owner        string   `json:"owner" doc:"ARK under which local ids are unique"`
	Collections  []string `json:"collections" required:"false" doc:"ARKs that objects become members of"`
	NOIDTemplate string   `json:"noid_template" required:"false" doc:"Template for new ARKs; default: the service's"`
	// Minting says where names that we draw are registered: MintLocally, the default, or MintEZID.
	Minting string `json:"minting,omitempty" doc:"Where new ARKs are registered: noid (default): only here; ezid: also with EZID, which publishes them when their object is recorded"`
	// DigestAlgorithm: use [Profile.Digests]. A submission keeps it with the profile.
	DigestAlgorithm string `json:"digest_algorithm" required:"false" doc:"Digest algorithm of OCFL inventories, sha256 or sha512; default: the one that the collection has, and sha256 for a new collection"`
	Priority        *int   `json:"priority,omitempty" doc:"Priority of batches that set none; lower comes first"`
	// ReleaseOneByOne: releasing a hold on the collection releases nothing at once, as in Merritt.
	ReleaseOneByOne bool `json:"release_one_by_one,omitempty" doc:"After a hold on the collection is released, each batch and job stays held until it is released on its own"`
	// StopOnBadRow: a manifest with a bad row fails the batch before it has jobs.
	StopOnBadRow bool `json:"stop_on_bad_row,omitempty" doc:"One bad row of a batch manifest refuses the whole batch before anything is ingested. Otherwise only the row's job fails"`
	Scan         bool `json:"scan,omitempty" doc:"clamd scans every file for viruses before anything is preserved"`
	ScanPartly   bool `json:"scan_partly,omitempty" doc:"Files that clamd cannot scan completely, mostly because of their size, are preserved and recorded as not scanned. Otherwise their job fails"`
	// SuppressDCLocalIDs is Merritt's SuppressDublinCoreLocalID.
	SuppressDCLocalIDs bool `json:"suppress_dc_local_ids,omitempty" doc:"A dc:identifier in a deposit's mrt-dc.xml does not become a local id of its object"`
	// NameEncoding is as names.ParseEncoding takes it.
	NameEncoding string `json:"name_encoding,omitempty" doc:"Encoding of names in containers that are not UTF-8, such as cp437, iso-8859-1 or windows-1252; an event keeps the bytes of each. Default: such names are refused"`
	// DuplicateDays: nil is [DefaultDuplicateDays], 0 is never.
	DuplicateDays *int `json:"duplicate_days,omitempty" doc:"For how many days a submission with the same content is a duplicate; default 30, 0: never"`
	// Storages: none means [DefaultStorage]. Versions are read from the first.
	Storages []string `json:"storages,omitempty" doc:"Storages of each version: it is written to the first, copied to the others, and preserved when all have it. Default: the storage named storage"`
	// Copies and OffsiteCopies: use [Profile.Policy].
	Copies        *int `json:"copies,omitempty" doc:"Copies that each object shall have, each in another storage; holdfast storage list says where there are fewer. Default: one in each of the profile's storages"`
	OffsiteCopies *int `json:"offsite_copies,omitempty" doc:"How many of the copies shall be in off-site storages; default: none"`
	// Callback: nil notifies nobody.
	Callback *Callback `json:"callback,omitempty" doc:"Receiver of each job's outcome, as a POST of JSON; default: none"`
	// BagProfile is a document of its own, defined by its specification.
	BagProfile json.RawMessage `json:"bag_profile,omitempty" doc:"A BagIt profile (BagIt Profiles 1.1 to 1.4) of at most 64 KiB that bags must satisfy; it does not apply to other payloads"`
	// Mail: addresses named in a submission get mails, too.
	Mail        *MailRules `json:"mail,omitempty" doc:"Mails about batches"`
	UploadBytes *int64     `json:"upload_bytes,omitempty" doc:"Quota for all uploads of this collection together, in bytes; default: the service's setting"`
	UploadsOpen *int       `json:"uploads_open,omitempty" doc:"Quota for unfinished uploads of this collection; default: the service's setting"`
	// RetentionDays: nil keeps the rows of a batch until an admin purges it.
	RetentionDays *int `json:"retention_days,omitempty" doc:"Retention of a completed batch in days; default: until an admin purges it. Objects and events stay"`
	// Steps: their tasks are added in their order.
	Steps       []OutsideStep `json:"steps,omitempty" doc:"Functions that run after a stage of each job, as tasks"`
	Description string        `json:"description,omitempty" doc:"For people"`
	Terms       Terms         `json:"terms,omitzero" doc:"Rights, preservation level and embargo of objects whose submission gives none"`
	Embargo     string        `json:"embargo,omitempty" doc:"A note for people; Holdfast enforces terms.embargo_until, not this"`
}

// MailRules say which mails a collection's people get. Failures are always mailed.
type MailRules struct {
	To []string `json:"to,omitempty" doc:"Addresses that get the mails, in addition to those in a submission"`
	// Allow: addresses that depositors may name in submissions, beside To.
	Allow []string `json:"allow,omitempty" doc:"Other addresses that depositors may name in submissions: addresses, domains such as example.org, and *.example.org for all below it"`
	// Queued: a mail for each accepted batch.
	Queued bool `json:"queued,omitempty" doc:"A mail for each accepted batch"`
	// Safe: a mail when every object of a batch was read back correctly from every storage, so that
	// the depositor's copy is not the only one.
	Safe bool `json:"safe,omitempty" doc:"A mail when every replica of a batch is verified, so that the depositor's copy is no longer needed"`
	// FailuresOnly: no report for batches without failures.
	FailuresOnly bool `json:"failures_only,omitempty" doc:"No report for batches without failures"`
}

// Masked returns the profile as it may be kept and shown for ever: with masked mail addresses, and
// only the host of the callback. It does not change the original.
func (p Profile) Masked() Profile {
	if p.Callback != nil {
		callback := *p.Callback
		callback.URL = callback.Target()
		p.Callback = &callback
	}
	if p.Mail != nil {
		rules := *p.Mail
		rules.To = make([]string, len(p.Mail.To))
		for i, text := range p.Mail.To {
			address, err := MailAddress(text)
			if err != nil { // invalid ones are refused; do not show them either
				address = "?"
			}
			rules.To[i] = MaskAddress(address)
		}
		rules.Allow = make([]string, len(p.Mail.Allow))
		for i, rule := range p.Mail.Allow {
			rules.Allow[i] = MaskAddress(rule) // domains stay unchanged
		}
		p.Mail = &rules
	}
	return p
}

// The values of [Profile.Minting]. In both cases names are drawn here, from the collection's
// template.
const (
	MintLocally = "noid" // names are known here only
	MintEZID    = "ezid" // EZID knows the names, too, and publishes them when their object is recorded
)

// The default of [Profile.DuplicateDays], and its maximum.
const (
	DefaultDuplicateDays = 30
	MostDuplicateDays    = 36_500
)

// MostRetentionDays is the maximum of [Profile.RetentionDays].
const MostRetentionDays = 36_500

// DuplicateWindow returns how long after a submission another one with the same content is a
// duplicate; 0: never.
func (p Profile) DuplicateWindow() time.Duration {
	days := DefaultDuplicateDays
	if p.DuplicateDays != nil {
		days = *p.DuplicateDays
	}
	return time.Duration(min(max(days, 0), MostDuplicateDays)) * 24 * time.Hour
}

// Optional returns the optional steps of submissions under this profile, in the order of routes.
// The batch stores them for its jobs.
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

// DefaultDigest is the digest algorithm of new collections whose profile names none.
const DefaultDigest = "sha256"

// Digests returns the algorithm of the collection's OCFL inventories. A saved profile that names
// none is older than [DefaultDigest], and means sha512.
func (p Profile) Digests() string { return cmp.Or(p.DigestAlgorithm, "sha512") }

// Collection is a set of objects with one profile.
type Collection struct {
	Mnemonic  string    `json:"mnemonic"`
	Tenant    string    `json:"tenant"`
	Profile   Profile   `json:"profile"`
	Version   int       `json:"version"` // of the profile
	CreatedAt time.Time `json:"created_at"`
}

// ProfileVersion is one version of a collection's profile. It never changes, and outlives the
// submissions under it.
type ProfileVersion struct {
	Collection string    `json:"collection"`
	Version    int       `json:"version"` // from 1 on
	Profile    Profile   `json:"profile"`
	Actor      string    `json:"actor"` // "": from before there were versions
	CreatedAt  time.Time `json:"created_at"`
}

// What a profile may replace, beside the number of a version.
const (
	AnyVersion = 0  // any version, or none
	NoVersion  = -1 // none: the collection must not exist
)

// VersionError says that the collection's profile is at another version than expected.
type VersionError struct {
	Mnemonic string `json:"mnemonic"`
	Want     int    `json:"want"` // NoVersion: none
	Have     int    `json:"have"` // 0: there is no such collection
}

// Error says what to do.
func (e *VersionError) Error() string {
	switch {
	case e.Want == NoVersion:
		return fmt.Sprintf("there is a collection %s already, with version %d of its profile; change that one, or give another name", e.Mnemonic, e.Have)
	case e.Have == 0:
		return fmt.Sprintf("there is no collection %s whose profile could be changed; create it", e.Mnemonic)
	}
	return fmt.Sprintf("the profile of collection %s is at version %d, not %d: look at what it is now, and change that", e.Mnemonic, e.Have, e.Want)
}

// Next returns the collection as it is after asked is saved over it. c is the zero Collection if
// there is none. asked.Version is the version to replace, [AnyVersion] or [NoVersion]. A profile
// without a digest algorithm takes c's, and [DefaultDigest] in a new collection. An unchanged profile
// returns c, also when an earlier answer was lost. *VersionError: c is at another version.
func (c Collection) Next(asked Collection) (Collection, error) {
	over, p := asked.Version, asked.Profile
	switch {
	case p.DigestAlgorithm != "":
	case c.Version == 0:
		p.DigestAlgorithm = DefaultDigest
	default:
		p.DigestAlgorithm = c.Profile.DigestAlgorithm
	}
	switch {
	case c.Version > 0 && over != NoVersion && c.Profile.same(p):
		return c, nil
	case over == AnyVersion, over == NoVersion && c.Version == 0, over > 0 && over == c.Version:
		c.Mnemonic, c.Profile, c.Version = asked.Mnemonic, p, c.Version+1
		return c, nil
	}
	return c, &VersionError{Mnemonic: asked.Mnemonic, Want: over, Have: c.Version}
}

// same reports whether two profiles mean the same.
func (p Profile) same(q Profile) bool {
	if len(p.Collections) == 0 && len(q.Collections) == 0 {
		p.Collections, q.Collections = nil, nil
	}
	p.DigestAlgorithm, q.DigestAlgorithm = p.Digests(), q.Digests()
	one, errOne := json.Marshal(p)
	two, errTwo := json.Marshal(q)
	return errOne == nil && errTwo == nil && bytes.Equal(one, two)
}

// OutsideStep is a function that runs after a stage of each job of a collection. When the job leaves
// the stage, the same transaction adds a task of the function. A job that comes through the stage
// again gets a new task.
type OutsideStep struct {
	After    Stage  `json:"after" doc:"Stage of jobs after which the function runs: estimate, provision, download, scan, process, replicate, record or notify"`
	Function string `json:"function" doc:"Name of the function; a program must have announced it"`
	// On: "" means OnSuccess.
	On StepOn `json:"on,omitempty" doc:"success (default): when the job goes on from the stage; always: also when it fails there"`
	// Blocking: see [WaitOver].
	Blocking bool `json:"blocking,omitempty" doc:"The job starts its next stage when the task has completed, or was aborted"`
	// Args are more arguments, a JSON object. The member [StepArgument] is the Registry's.
	Args json.RawMessage `json:"args,omitempty" doc:"Arguments of the function beside job, an object; at most 16 KiB. Never put secrets here: anyone who can see the collection can read them"`
}

// StepOn says how a job must leave a stage for an outside step to run.
type StepOn string

// The values of [OutsideStep.On].
const (
	OnSuccess StepOn = "success"
	OnAlways  StepOn = "always"
)

// Bounds of outside steps: each job keeps a copy of its profile.
const (
	MostSteps    = 20       // of a profile
	MostStepArgs = 16 << 10 // bytes of the arguments of one
)

// StepArgument is the name of the argument by which a function that runs as an outside step learns
// of the job: a [StepJob].
const StepArgument = "job"

// StepJob describes the job after whose stage a function runs.
type StepJob struct {
	ID         string `json:"id"`
	Batch      string `json:"batch"`
	Collection string `json:"collection"`
	Name       string `json:"name"`
	After      Stage  `json:"after"`  // the stage that the job left
	Failed     bool   `json:"failed"` // the job failed in the stage
	Error      string `json:"error"`  // of a failed job
	// ARK and Version name the version of the object that the job makes; "" and 0 before the job
	// has done stage process. The API can deliver it after stage record.
	ARK     string `json:"ark"`
	Version int    `json:"version"`
	Files   int64  `json:"files"` // of the payload; -1: not known yet
	Bytes   int64  `json:"bytes"`
}

// StepReader lists the outside steps of jobs.
type StepReader interface {
	// Steps lists the tasks that a job's profile made for it, oldest first; none for any other
	// item. ErrNotFound: the item is unknown.
	Steps(ctx context.Context, jobID string) ([]StepRun, error)
}

// StepRun is a task that runs an outside step of a job.
type StepRun struct {
	TaskID     string     `json:"task_id" id:"items"`
	Function   string     `json:"function"`
	After      Stage      `json:"after"`
	Blocking   bool       `json:"blocking,omitempty"`
	State      State      `json:"state"`
	NextTry    *NextTry   `json:"next_try,omitempty"`
	Status     Status     `json:"status"`
	Attempts   int64      `json:"attempts"`
	Error      string     `json:"error,omitempty"`    // why it failed, or waits for its next try
	Progress   []Progress `json:"progress,omitempty"` // of the last attempt
	CreatedAt  time.Time  `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// StepsIn returns the outside steps in the spec of a job; none if the spec cannot be read. It is
// called whenever a job moves, so it decodes only specs that can have steps.
func StepsIn(spec json.RawMessage) []OutsideStep {
	if !bytes.Contains(spec, []byte(`"steps":[`)) {
		return nil
	}
	var s struct {
		Profile struct {
			Steps []OutsideStep `json:"steps"`
		} `json:"profile"`
	}
	if json.Unmarshal(spec, &s) != nil {
		return nil
	}
	return s.Profile.Steps
}

// FollowingSteps returns the outside steps of an item that run when it leaves its present stage;
// failed says that it fails there. Only jobs have steps.
func (it WorkItem) FollowingSteps(failed bool) []OutsideStep {
	if it.Action != Ingest {
		return nil
	}
	return slices.DeleteFunc(StepsIn(it.Spec), func(s OutsideStep) bool {
		return s.After != it.Stage || failed && s.On != OnAlways
	})
}
