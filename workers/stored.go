package workers

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/base"
)

// noteStored is the name under which an attempt notes which files of a version are stored and verified.
const noteStored = "stored"

// storedFiles are those content files of a version that are stored and verified, by their place in its inventory. Storage
// creates a file once and never changes it, so none has to be read a second time.
type storedFiles struct {
	Inventory string `json:"inventory"` // its digest
	Places    places `json:"places"`
}

// storing keeps track of them while a version is written. Its methods are called one at a time.
type storing struct {
	item *base.Item
	name string // of the note
	now  storedFiles
	pace pace
	none bool // the version is so small that no note is ever due, nor worth asking for
}

// newReplicating is newStoring for a version that is copied to another storage, by the digest of its inventory.
func newReplicating(ctx context.Context, item *base.Item, p plan, storage, digest string) (*storing, error) {
	p.Digest = digest
	return notedAs(ctx, item, p, noteStored+" in "+storage)
}

// before tells which files earlier attempts have stored.
func (s *storing) before() func(place int) bool { return slices.Clone(s.now.Places).has }

// newStoring begins with what an earlier attempt noted of the same version.
func newStoring(ctx context.Context, item *base.Item, p plan) (*storing, error) {
	return notedAs(ctx, item, p, noteStored)
}

// notedAs keeps the notes under a name.
func notedAs(ctx context.Context, item *base.Item, p plan, name string) (*storing, error) {
	s := &storing{item: item, name: name, now: storedFiles{Inventory: p.Digest}, none: p.Files < unnotedFiles && p.Bytes < unnotedBytes}
	if s.none {
		return s, nil
	}
	before, ok, err := base.Get[storedFiles](ctx, item, name)
	if ok && before.Inventory == p.Digest {
		s.now = before
	}
	return s, err
}

// add notes one more file, now and then.
func (s *storing) add(ctx context.Context, place int, bytes int64) error {
	s.now.Places = s.now.Places.add(place)
	if !s.pace.add(bytes) {
		return nil
	}
	return s.note(ctx)
}

// note keeps them for a successor.
func (s *storing) note(ctx context.Context) error {
	if s.none {
		return nil
	}
	return base.Put(ctx, s.item, s.name, s.now)
}
