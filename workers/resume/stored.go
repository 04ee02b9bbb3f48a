package resume

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/base"
)

// storedFiles are those content files of a version that are stored and verified, by their place in
// its inventory. Storage creates a file once and never changes it, so none has to be read a second
// time.
type storedFiles struct {
	Inventory string `json:"inventory"` // its digest
	Places    Places `json:"places"`
}

// Stored keeps track of the files that are stored and verified while a version is written. Its
// methods are called one at a time.
type Stored struct {
	item *base.Item
	name string // of the note
	now  storedFiles
	due  Due
	none bool // the version is so small that no note is ever due, nor worth asking for
}

// Before returns which files earlier attempts have stored.
func (s *Stored) Before() func(place int) bool { return slices.Clone(s.now.Places).Has }

// NewStored begins with what an earlier attempt noted under a name of the same version, whose
// inventory has the digest. files and bytes are how many the version has.
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

// Add counts one more file, and notes now and then which there are.
func (s *Stored) Add(ctx context.Context, place int, bytes int64) error {
	s.now.Places = s.now.Places.Add(place)
	if !s.due.Add(bytes) {
		return nil
	}
	return s.Note(ctx)
}

// Note keeps for a successor which files are stored.
func (s *Stored) Note(ctx context.Context) error {
	if s.none {
		return nil
	}
	return base.Put(ctx, s.item, s.name, s.now)
}
