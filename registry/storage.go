package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Storing manages the preservation storages. An object belongs into the storages of its collection's
// profile; these acts change profiles, and have objects copied to where they belong.
type Storing interface {
	// Storages lists the storages by name: those of names, and all others that a profile, a copy or an act
	// names. Counts of objects may be some minutes old in a large archive.
	Storages(ctx context.Context, names []string) (StorageReport, error)
	// StorageNames returns the names of these storages.
	StorageNames(ctx context.Context, names []string) ([]string, error)
	// StorageObjects lists objects that lack copies, by id. A page may have fewer rows than asked for and
	// still a next one. What lacks copies since the last count (see Storages) may be absent.
	StorageObjects(ctx context.Context, q StorageObjectsQuery) (Page[StorageObject], error)
	// CopiesOf says which copies an object has and should have.
	CopiesOf(ctx context.Context, o Object) (ObjectCopies, error)
	// ChangeStorage carries out an act on a storage, or says what it would do ([StorageChange.DryRun]).
	// ErrInvalid says why it is not possible. A repeat changes nothing that is so already.
	ChangeStorage(ctx context.Context, c StorageChange) (StorageChanged, error)
}

// Aligning brings objects to where they belong while storages are filled or retired.
type Aligning interface {
	// Align does a bounded part of the work: it makes items of action copy for objects that lack a copy
	// in a storage of their profile, purges completed ones, and ends filling and retiring when the
	// counts say so. It may be called by several processes. When it has looked at all objects and queued
	// nothing, it rests for ten minutes at most, and less if something happens in the Registry.
	Align(ctx context.Context, r AlignRequest) (Aligned, error)
}

// Copying records copies of objects.
type Copying interface {
	// RecordCopy records that storages of the item have an object's version with all versions before
	// it, every byte read back. The item holds the object's lock. A repeat changes nothing. ErrInvalid:
	// a storage is not the item's, or retired. *GoneError: the object is deleted.
	RecordCopy(ctx context.Context, l Lease, c CopyRecord) error
}

// StorageState says what a storage is used for.
type StorageState string

// The states of a storage.
const (
	StorageInUse    StorageState = "in-use"
	StorageFilling  StorageState = "filling"  // objects are copied to it that belong there
	StorageRetiring StorageState = "retiring" // no profile names it any more; its objects get their copies elsewhere
	StorageRetired  StorageState = "retired"  // every object has its copies elsewhere; what lies there counts no more
)

// Storage is a preservation storage as the Registry knows it.
type Storage struct {
	Name    string       `json:"name"`
	State   StorageState `json:"state" enum:"in-use,filling,retiring,retired"`
	Offsite bool         `json:"offsite" doc:"It counts as off-site for profiles that ask for off-site copies"`
	// Reason, Actor and Since are those of the last act on it.
	Reason string     `json:"reason,omitempty"`
	Actor  string     `json:"actor,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// Collections are those whose profile names it.
	Collections []string `json:"collections"`
	Objects     int64    `json:"objects" doc:"Objects whose newest version it has, verified"`
	Missing     Amount   `json:"missing" doc:"Objects that belong there and whose newest version it does not have"`
	// Failed counts copies that a person must look at.
	Failed int64 `json:"failed" doc:"Copies to it that failed and wait for a person"`
	// Begun is what was missing when it began to be filled or retired.
	Begun Amount `json:"begun" doc:"What was to be copied when the last act began"`
	// RestSeconds is an estimate from what was copied since the act; 0: none yet.
	RestSeconds int64 `json:"rest_seconds,omitempty" doc:"Estimate of when it is filled"`
	// Retiring says what a retiring storage still waits for.
	Waits *StorageWaits `json:"waits,omitempty" doc:"What a retiring storage still waits for"`
}

// Changing says that the storage is filled or retired.
func (s Storage) Changing() bool { return s.State == StorageFilling || s.State == StorageRetiring }

// Left is what is still to be copied because of that.
func (s Storage) Left() Amount {
	switch {
	case s.Waits != nil:
		return s.Waits.Lacking
	case s.State == StorageFilling:
		return s.Missing
	}
	return Amount{}
}

// Copied is the share of objects that were to be copied when it began and that are copied, 0 to 1.
func (s Storage) Copied() float64 {
	left := s.Left().Objects
	switch {
	case !s.Changing() || left == 0:
		return 1
	case left >= s.Begun.Objects:
		return 0
	}
	return float64(s.Begun.Objects-left) / float64(s.Begun.Objects)
}

// Amount is a number of objects and what their newest versions take, in bytes.
type Amount struct {
	Objects   int64 `json:"objects"`
	SizeBytes int64 `json:"size_bytes"`
}

// StorageWaits is what a retiring storage waits for.
type StorageWaits struct {
	Lacking Amount `json:"lacking" doc:"Objects that lack copies elsewhere"`
	Items   int64  `json:"items" doc:"Batches, jobs and copies that are not over and write to it"`
	Damaged int64  `json:"damaged" doc:"Objects with a file that is damaged or missing in some storage"`
}

// None says that nothing is left to wait for.
func (w StorageWaits) None() bool { return w.Lacking.Objects == 0 && w.Items == 0 && w.Damaged == 0 }

// StorageReport is the state of all storages, and where collections do not have the copies that their
// profiles ask for.
type StorageReport struct {
	Storages    []Storage          `json:"storages"`
	Collections []CollectionCopies `json:"collections"`
	At          time.Time          `json:"at" doc:"When objects were counted"`
}

// Short counts the objects that have too few copies.
func (r StorageReport) Short() (n int64) {
	for _, c := range r.Collections {
		n += c.Short.Objects
	}
	return n
}

// CollectionCopies counts a collection's objects by whether they have the copies that its profile asks for.
type CollectionCopies struct {
	Collection string `json:"collection"`
	CopyPolicy
	Objects int64  `json:"objects"`
	Short   Amount `json:"short" doc:"Objects with fewer verified copies of their newest version than the profile asks for"`
}

// CopyPolicy is how many copies each object of a collection shall have.
type CopyPolicy struct {
	Copies  int `json:"copies"`
	Offsite int `json:"offsite_copies"`
}

// ObjectCopies is how many copies of its newest version an object has, and should have.
type ObjectCopies struct {
	Has     int  `json:"has" doc:"Verified copies of the newest version in storages that are not retired"`
	Offsite int  `json:"has_offsite" doc:"Of these, how many are off-site"`
	Met     bool `json:"met" doc:"It has as many as the profile of its collection asks for"`

	Policy CopyPolicy `json:"policy"`
}

// StorageObjectsQuery asks for objects that lack copies.
type StorageObjectsQuery struct {
	// Storage is one that is retired: its objects that keep it from that. Of another one: objects that
	// belong there and whose newest version it does not have. "": objects with fewer copies than the
	// profile of their collection asks for.
	Storage    string
	Collection string // "": all
	After      string // the last id of the page before
	Limit      int
}

// StorageObject is an object that lacks copies.
type StorageObject struct {
	ID         string `json:"id"`
	Title      string `json:"title,omitempty"`
	Collection string `json:"collection"`
	SizeBytes  int64  `json:"size_bytes" doc:"Of its newest version"`
	ObjectCopies

	Storages []string `json:"storages" doc:"Storages that have its newest version, verified"`
	Damaged  bool     `json:"damaged" doc:"A file of it is damaged or missing in some storage"`
	// Item is its copy that waits, runs or has failed.
	Item   string `json:"item,omitempty" doc:"Its copy that waits, runs or has failed"`
	Status Status `json:"status,omitempty" doc:"Of this item"`
}

// StorageAct is an act on a storage.
type StorageAct string

// The acts on storages.
const (
	ActFill   StorageAct = "add"    // it gets objects: of some collections, or of all
	ActRetire StorageAct = "retire" // it gets none any more, and ends when all have their copies elsewhere
	ActKeep   StorageAct = "keep"   // it is not retired after all
	ActPlace  StorageAct = "place"  // only whether it is off-site changes
)

// StorageActs returns all acts.
func StorageActs() []StorageAct { return []StorageAct{ActFill, ActRetire, ActKeep, ActPlace} }

// StorageChange is an act on a storage.
type StorageChange struct {
	Name string
	Act  StorageAct
	// Collections are those that get it, with ActFill; nil: all.
	Collections []string
	// To takes its place, with ActRetire: in each profile, and in time with all its objects. "": the
	// profile's other storages are enough.
	To      string
	Offsite *bool // nil: unchanged; of To, if there is one
	DryRun  bool
	Reason  string
	Actor   string
}

// StorageChanged is what an act on a storage did, or would do.
type StorageChanged struct {
	Storage  string            `json:"storage"`
	State    StorageState      `json:"state"`
	Profiles []StorageProfiles `json:"profiles" doc:"Collections whose profile changes"`
	Copies   Amount            `json:"copies" doc:"Objects that lack a copy in a storage of their profile afterwards, and their size; each is copied"`
}

// StorageProfiles is how an act changes the storages of a collection.
type StorageProfiles struct {
	Collection string   `json:"collection"`
	Before     []string `json:"before"`
	After      []string `json:"after"`
}

// AlignRequest bounds [Aligning.Align].
type AlignRequest struct {
	Outstanding int           // copies that may wait or run at a time
	Keep        time.Duration // how long a completed copy is kept as an item
}

// Aligned is what Align did.
type Aligned struct {
	Seen   int // objects that were looked at
	Queued int
	Ended  []Storage // storages that are filled or retired now
}

// CopyRecord is what copying an object brought about.
type CopyRecord struct {
	ObjectID string    `json:"object_id"`
	Version  int       `json:"version"` // the newest that was copied
	Replicas []Replica `json:"replicas"`
	Damaged  bool      `json:"damaged"` // a storage that it was read from has it wrong: its files are checked soon
	Events   []Premis  `json:"events"`
}

// EventStorage is the type of events about storages.
const EventStorage = "storage-changed"

// DefaultStorage and DefaultStaging name the volumes that every Holdfast has: the storage of
// collections that name none, and the volume for work in progress.
const (
	DefaultStorage = "storage"
	DefaultStaging = "staging"
)

// mostStorages is the largest number of storages of a collection.
const mostStorages = 16

// CheckStorageName returns ErrInvalid unless a storage can have this name: 1 to 63 lower-case
// letters, digits, - and _, beginning with a letter or digit, and not the staging volume's.
func CheckStorageName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
	switch {
	case name == "" || len(name) > 63 || strings.ContainsFunc(name, bad) || strings.ContainsAny(name[:1], "-_"):
		return fmt.Errorf("%w: storage %q: a storage's name has 1 to 63 lower-case letters, digits, - and _, and begins with a letter or digit", ErrInvalid, name)
	case name == DefaultStaging:
		return fmt.Errorf("%w: storage %q: the name is the staging volume's", ErrInvalid, name)
	}
	return nil
}

// CheckStorages returns ErrInvalid unless a collection can have these storages. None means
// [DefaultStorage].
func CheckStorages(names []string) error {
	if len(names) > mostStorages {
		return fmt.Errorf("%w: %d storages, a collection has %d at most", ErrInvalid, len(names), mostStorages)
	}
	for i, name := range names {
		if err := CheckStorageName(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%w: storage %q is named twice; name it once", ErrInvalid, name)
		}
	}
	return nil
}

// StorageNames returns the storages of each version's replicas, at least one. A version is written
// to the first and copied to the others.
func (p Profile) StorageNames() []string {
	if len(p.Storages) == 0 {
		return []string{DefaultStorage}
	}
	return slices.Clone(p.Storages)
}

// Policy returns how many copies an object of the collection shall have: as many as the profile says,
// and otherwise one in each of its storages.
func (p Profile) Policy() CopyPolicy {
	policy := CopyPolicy{Copies: len(p.StorageNames())}
	if p.Copies != nil {
		policy.Copies = *p.Copies
	}
	if p.OffsiteCopies != nil {
		policy.Offsite = *p.OffsiteCopies
	}
	return policy
}

// Met reports whether copies in these storages satisfy the policy. offsite says which are off-site.
func (c CopyPolicy) Met(storages []string, offsite func(string) bool) bool {
	return c.Of(storages, offsite).Met
}

// Of counts the copies in these storages. offsite says which are off-site.
func (c CopyPolicy) Of(storages []string, offsite func(string) bool) ObjectCopies {
	out := ObjectCopies{Has: len(storages), Policy: c}
	for _, s := range storages {
		if offsite(s) {
			out.Offsite++
		}
	}
	out.Met = out.Has >= c.Copies && out.Offsite >= c.Offsite
	return out
}

// CheckCopies returns ErrInvalid for a number of copies that the profile's storages cannot hold.
func (p Profile) CheckCopies() error {
	have, policy := len(p.StorageNames()), p.Policy()
	switch {
	case policy.Copies < 1 || policy.Copies > have:
		return fmt.Errorf("%w: %d copies; it is a number from 1 to that of the storages, %d, each of which has one", ErrInvalid, policy.Copies, have)
	case policy.Offsite < 0 || policy.Offsite > policy.Copies:
		return fmt.Errorf("%w: %d off-site copies; it is a number from 0 to that of all copies, %d", ErrInvalid, policy.Offsite, policy.Copies)
	}
	return nil
}
