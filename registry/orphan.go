package registry

import (
	"fmt"
	"strings"
	"time"
)

// OrphanKind says where orphaned data was found.
type OrphanKind string

// The kinds of orphans.
const (
	OrphanStaged  OrphanKind = "staged"  // staged by attempts of an item
	OrphanUpload  OrphanKind = "upload"  // bytes of an upload
	OrphanInterim OrphanKind = "interim" // interim data of an item
	OrphanForeign OrphanKind = "foreign" // has a name or owner unknown to the Registry: never removed
	OrphanObject  OrphanKind = "object"  // an object in a storage without a record: never removed
)

// OrphanKinds returns all kinds.
func OrphanKinds() []OrphanKind {
	return []OrphanKind{OrphanStaged, OrphanUpload, OrphanInterim, OrphanForeign, OrphanObject}
}

// Removable reports whether such data may be removed. An unrecorded object in a storage more likely
// means a loss in the Registry, and foreign data belongs to others.
func (k OrphanKind) Removable() bool { return k != OrphanForeign && k != OrphanObject }

// Bounds of a search for orphans.
const (
	// LeastOrphanAge is the least age of orphaned data: longer than anything is written before it
	// has an owner, or after.
	LeastOrphanAge = time.Hour
	// DefaultOrphanAge is the default age.
	DefaultOrphanAge = 7 * 24 * time.Hour
	// MostOrphansTold is how many are listed one by one. All are counted.
	MostOrphansTold = 1000
)

// OrphanSearch says what to search for, and whether to remove it.
type OrphanSearch struct {
	// Older is for how long the data must have been unchanged and without an owner.
	Older time.Duration `json:"older"`
	// Storages includes the preservation storages.
	Storages bool `json:"storages,omitempty"`
	// Strays searches only for files in preservation storages that belong to no object. The search
	// continues after a kill, pauses now and then, and fails if it finds any, so that people
	// notice. The Registry creates one as often as stored files are checked.
	Strays bool `json:"strays,omitempty"`
	// Remove removes what is found and [OrphanKind.Removable].
	Remove bool   `json:"remove,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Check returns ErrInvalid for an age that is too small.
func (s OrphanSearch) Check() error {
	if s.Older < LeastOrphanAge {
		return fmt.Errorf("%w: data younger than %v may still be in use", ErrInvalid, LeastOrphanAge)
	}
	return nil
}

// Title describes the search for people.
func (s OrphanSearch) Title() string {
	if s.Strays {
		return "look for files in storages that belong to no object"
	}
	title := "look for what belongs to nobody"
	if s.Remove {
		title = "remove what belongs to nobody"
	}
	if s.Storages {
		title += ", in storages too"
	}
	return title
}

// Orphan is one piece of orphaned data.
type Orphan struct {
	Kind      OrphanKind `json:"kind"`
	Name      string     `json:"name"`              // folder or key on the volume, item id, or object id
	Storage   string     `json:"storage,omitempty"` // storage of an object, or of a file in one
	Files     int64      `json:"files"`
	SizeBytes int64      `json:"size_bytes"`
	ChangedAt time.Time  `json:"changed_at,omitzero"` // last change, by the volume
	Why       string     `json:"why"`                 // why it has no owner, for people
	Removed   bool       `json:"removed,omitempty"`
	Error     string     `json:"error,omitempty"` // why it could not be removed
}

// OrphanCount counts orphans of a kind.
type OrphanCount struct {
	Found     int64 `json:"found"`
	Files     int64 `json:"files"`
	SizeBytes int64 `json:"size_bytes"`
	Removed   int64 `json:"removed"`
}

// OrphanReport is the result of a search.
type OrphanReport struct {
	Search OrphanSearch               `json:"search"`
	Counts map[OrphanKind]OrphanCount `json:"counts"`
	Found  []Orphan                   `json:"found"` // the first MostOrphansTold
}

// Add counts an orphan, and lists it if there is room.
func (r *OrphanReport) Add(o Orphan) {
	if r.Counts == nil {
		r.Counts = map[OrphanKind]OrphanCount{}
	}
	c := r.Counts[o.Kind]
	c.Found, c.Files, c.SizeBytes = c.Found+1, c.Files+o.Files, c.SizeBytes+o.SizeBytes
	if o.Removed {
		c.Removed++
	}
	r.Counts[o.Kind] = c
	if len(r.Found) < MostOrphansTold {
		r.Found = append(r.Found, o)
	}
}

// Total returns the number of all kinds together.
func (r *OrphanReport) Total() (n int64) {
	for _, c := range r.Counts {
		n += c.Found
	}
	return n
}

// Text describes the number and size of some kinds for people; "" if there are none.
func (r *OrphanReport) Text(of func(OrphanKind) bool) string {
	var parts []string
	for _, k := range OrphanKinds() {
		if c := r.Counts[k]; c.Found > 0 && of(k) {
			parts = append(parts, fmt.Sprintf("%s %s (%s bytes)", CountText(c.Found), k, CountText(c.SizeBytes)))
		}
	}
	return strings.Join(parts, ", ")
}

// ResultOrphans is the durable result of a search, an [OrphanReport].
const ResultOrphans = "orphans"

// OrphanRequest requests a search.
type OrphanRequest struct {
	Search         OrphanSearch `json:"search"`
	Actor          string       `json:"actor,omitempty"`
	IdempotencyKey string       `json:"idempotency_key,omitempty"` // "" for none
}
