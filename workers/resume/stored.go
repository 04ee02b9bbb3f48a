package resume

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/base"
)

// storedFiles records which content files of a version are stored and verified, by their place
// among them in the order of their paths. A storage never changes a file, so none must be verified twice.
type storedFiles struct {
	Inventory string `json:"inventory"` // its digest
	Places    Places `json:"places"`
}

// Stored tracks the stored and verified files while a version is written. It must not be used
// concurrently.
type Stored struct {
	item *base.Item
	name string // of the interim entry
	now  storedFiles
	due  Due
	none bool // the version is too small for an entry
}

// Before returns a function that reports whether an earlier attempt has stored a file.
func (s *Stored) Before() func(place int) bool { return slices.Clone(s.now.Places).Has }

// NewStored starts with the record of an earlier attempt, under a name, for the same version, whose
// inventory has the digest. files and bytes are the version's numbers.
func NewStored(ctx context.Context, item *base.Item, name, inventory string, files, bytes int64) (*Stored, error) {
	s := &Stored{item: item, name: name, now: storedFiles{Inventory: inventory}, none: files < unnotedFiles && bytes < unnotedBytes}
	if s.none {
		return s, nil
	}
	before, ok, err := base.Get[storedFiles](ctx, item, name)
	if ok && before.Inventory == inventory {
		s.now = before
	}
	return s, err
}

// Add adds one file, and writes the record from time to time.
func (s *Stored) Add(ctx context.Context, place int, bytes int64) error {
	s.now.Places = s.now.Places.Add(place)
	if !s.due.Add(bytes) {
		return nil
	}
	return s.Note(ctx)
}

// Note writes the record for a successor.
func (s *Stored) Note(ctx context.Context) error {
	if s.none {
		return nil
	}
	return base.Put(ctx, s.item, s.name, s.now)
}
