package registry

import (
	"encoding/json"
	"time"
)

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
	// Mail says who is told of batches by mail, beside those whom a submission names; nil: nobody.
	Mail *MailRules `json:"mail,omitempty"`
	// RetentionDays is for how many days the rows of a batch are kept after it completed; nil: until an admin purges it. Objects and
	// events are kept in any case.
	RetentionDays *int `json:"retention_days,omitempty"`
	// Description and Embargo are notes for people. Nothing follows from them here.
	Description string `json:"description,omitempty"`
	Embargo     string `json:"embargo,omitempty"`
}

// MailRules say of what a collection's people are told by mail. What failed they are told of in any case.
type MailRules struct {
	To []string `json:"to,omitempty" doc:"Addresses that get the mails, beside those that a submission names"`
	// Queued: of each batch that is taken in.
	Queued bool `json:"queued,omitempty" doc:"A mail for each batch that is taken in"`
	// Safe: when every object of a batch was read back and found right in every storage, so that the depositor's own copy is
	// not the only one any more.
	Safe bool `json:"safe,omitempty" doc:"A mail when every replica of a batch was verified, so that the depositor's copy may go"`
	// FailuresOnly: batches that went well are not reported.
	FailuresOnly bool `json:"failures_only,omitempty" doc:"No report of a batch of which nothing failed"`
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

// MostRetentionDays is the longest [Profile.RetentionDays].
const MostRetentionDays = 36_500

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
