package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

// This file is this subject's part of one rule: what an attempt writes may name only what its own item is about. Whoever has the secret of
// one worker can so spoil the items that it is given, and nobody else's. It is judged in the transaction that writes, so that it holds for
// workers in the same process, too.

// ownVersion returns ErrInvalid unless a version is recorded as one of the item's collection and of the owner that it was submitted under,
// in the item's storages.
func ownVersion(it registry.WorkItem, v registry.VersionRecord) error {
	if v.Collection != it.Collection {
		return fmt.Errorf("%w: item %s is of collection %q, not %q", registry.ErrInvalid, it.ID, it.Collection, v.Collection)
	}
	if err := ownOwner(it, v.Owner); err != nil {
		return err
	}
	for _, r := range v.Replicas {
		if !slices.Contains(it.Storages, r.Storage) {
			return fmt.Errorf("%w: no version of item %s goes to storage %q", registry.ErrInvalid, it.ID, r.Storage)
		}
	}
	return nil
}

// ownOwner returns ErrInvalid unless objects of an owner are the item's to name: its collection's, when it was submitted.
func ownOwner(it registry.WorkItem, owner string) error {
	spec, err := work.SpecOf(it)
	if err == nil && owner != spec.Profile.Owner {
		err = fmt.Errorf("%w: the objects of item %s have the owner %q, not %q", registry.ErrInvalid, it.ID, spec.Profile.Owner, owner)
	}
	return err
}

// subject is what the preservation events of an attempt are about: a version of an object, 0 for all of it, and of which kinds they may be.
type subject struct {
	it      registry.WorkItem
	object  string
	version int
	kinds   []string
}

// software begins the agents of events: the name of this software, followed by its version.
const software = "Holdfast"

// The kinds of events whose agent is another program: whichever engine looked at the files.
const (
	virusCheck           = "virus check"
	formatIdentification = "format identification"
)

// The kinds of events that each step makes, by the labels of id.loc.gov, as package premis has them.
var (
	recordEvents = []string{
		"identifier assignment", "message digest calculation", "fixity check", "validation", "metadata extraction", virusCheck,
		formatIdentification, "ingestion", "replication", "filename change",
	}
	fixityEvents  = []string{"fixity check", "replication"}
	restoreEvents = []string{"dissemination"}
	deleteEvents  = []string{"deletion"}
)

// tells returns ErrInvalid unless events are of the item, its object and version, of a kind that its step makes, and by this software.
func (s subject) tells(events []registry.Premis) error {
	for _, e := range events {
		switch {
		case e.ItemID != s.it.ID:
			return fmt.Errorf("%w: an event of item %s names item %q", registry.ErrInvalid, s.it.ID, e.ItemID)
		case e.ObjectID != s.object || e.Version != s.version:
			return fmt.Errorf("%w: an event of item %s is about version %d of %q, not version %d of %s",
				registry.ErrInvalid, s.it.ID, e.Version, e.ObjectID, s.version, s.object)
		case !slices.Contains(s.kinds, e.Type):
			return fmt.Errorf("%w: item %s cannot record a %q here, only %q", registry.ErrInvalid, s.it.ID, e.Type, s.kinds)
		case e.Agent != software && !strings.HasPrefix(e.Agent, software+" ") && e.Type != virusCheck && e.Type != formatIdentification:
			return fmt.Errorf("%w: the agent of a %s is %s, not %q", registry.ErrInvalid, e.Type, software, e.Agent)
		}
	}
	return nil
}
