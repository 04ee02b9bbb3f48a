package registry

import (
	"fmt"
	"strings"
	"time"
)

// OrphanKind says where an orphan was found.
type OrphanKind string

// The kinds of orphans.
const (
	OrphanStaged  OrphanKind = "staged"  // what attempts of an item have staged
	OrphanUpload  OrphanKind = "upload"  // the bytes of an upload
	OrphanInterim OrphanKind = "interim" // interim data of an item
	OrphanForeign OrphanKind = "foreign" // what has a name, or an owner, that the Registry never heard of: never removed
	OrphanObject  OrphanKind = "object"  // an object in a preservation storage that no record leads to: never removed
)

// OrphanKinds returns all kinds.
func OrphanKinds() []OrphanKind {
	return []OrphanKind{OrphanStaged, OrphanUpload, OrphanInterim, OrphanForeign, OrphanObject}
}

// Removable says whether what is found there may be removed. What lies in a preservation storage
// without a record is more likely a loss of the Registry's than rubbish, and what has a name of
// somebody else's is somebody else's.
func (k OrphanKind) Removable() bool { return k != OrphanForeign && k != OrphanObject }

// Bounds of a search for orphans.
const (
	// LeastOrphanAge is the least age of what is called an orphan: longer than anything is written
	// before it has an owner, or after.
	LeastOrphanAge = time.Hour
	// DefaultOrphanAge is the age when none is asked for.
	DefaultOrphanAge = 7 * 24 * time.Hour
	// MostOrphansTold is how many are told one by one; all are counted.
	MostOrphansTold = 1000
)

// OrphanSearch says what to look for, and what to do with it.
type OrphanSearch struct {
	// Older is for how long nobody must have written to it, nor had a right to it.
	Older time.Duration `json:"older"`
	// Storages: preservation storages are looked through, too.
	Storages bool `json:"storages,omitempty"`
	// Strays: only files of the preservation storages are looked for that belong to no object. The
	// search goes on where it was after a kill, takes a rest now and then, and fails when it finds
	// any, so that people are told. The Registry makes one as often as stored files are read again.
	Strays bool `json:"strays,omitempty"`
	// Remove what is found and [OrphanKind.Removable].
	Remove bool   `json:"remove,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Check returns ErrInvalid when nothing is to be looked for like this.
func (s OrphanSearch) Check() error {
	if s.Older < LeastOrphanAge {
		return fmt.Errorf("%w: what is younger than %v may be somebody's yet", ErrInvalid, LeastOrphanAge)
	}
	return nil
}

// Title says for people what the search is about.
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

// Orphan is something that belongs to nobody.
type Orphan struct {
	Kind      OrphanKind `json:"kind"`
	Name      string     `json:"name"`              // a folder or key of the volume, an item's id, an object's id
	Storage   string     `json:"storage,omitempty"` // of an object, or of a file in a preservation storage
	Files     int64      `json:"files"`
	SizeBytes int64      `json:"size_bytes"`
	ChangedAt time.Time  `json:"changed_at,omitzero"` // last, as the volume says
	Why       string     `json:"why"`                 // nobody has a right to it, for people
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

// OrphanReport is what a search came to.
type OrphanReport struct {
	Search OrphanSearch               `json:"search"`
	Counts map[OrphanKind]OrphanCount `json:"counts"`
	Found  []Orphan                   `json:"found"` // the first MostOrphansTold
}

// Add counts an orphan, and tells it when there is room.
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

// Total is how many there are of all kinds.
func (r *OrphanReport) Total() (n int64) {
	for _, c := range r.Counts {
		n += c.Found
	}
	return n
}

// Text says for people how many there are of each of these kinds, and how large they are; "" when
// there are none.
func (r *OrphanReport) Text(of func(OrphanKind) bool) string {
	var parts []string
	for _, k := range OrphanKinds() {
		if c := r.Counts[k]; c.Found > 0 && of(k) {
			parts = append(parts, fmt.Sprintf("%s %s (%s bytes)", CountText(c.Found), k, CountText(c.SizeBytes)))
		}
	}
	return strings.Join(parts, ", ")
}

// ResultOrphans names the durable result of a search, an [OrphanReport].
const ResultOrphans = "orphans"

// OrphanRequest asks for a search.
type OrphanRequest struct {
	Search         OrphanSearch `json:"search"`
	Actor          string       `json:"actor,omitempty"`
	IdempotencyKey string       `json:"idempotency_key,omitempty"` // "" for none
}
