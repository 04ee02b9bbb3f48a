package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

// This file has the catalog's part of one rule: an attempt's write may name only what its own item
// is about. So whoever steals the secret of one worker can spoil only the items that this worker is
// given. The check runs in the transaction that writes, so it also holds for workers in the same
// process.

// ownRequest returns ErrInvalid unless an item may ask for what a request names: the owner that it
// was submitted under, and its own folders. The owner may be missing once the item's name is settled.
func ownRequest(it registry.WorkItem, r registry.IdentifyRequest) error {
	if err := ownFolders(it, r.Folders); err != nil {
		return err
	}
	if r.Owner == "" && len(r.LocalIDs) == 0 && len(it.Results[registry.ResultARK]) > 0 {
		return nil
	}
	return ownOwner(it, r.Owner)
}

// ownFolders returns ErrInvalid unless the keys are those of folders in an item's storages, at most one
// each. A deletion has none of its own: it goes through all storages. The key of a folder's lock must not be
// one of an object or a local id.
func ownFolders(it registry.WorkItem, keys []string) error {
	deletes := it.Action == registry.DeleteObject
	if len(keys) > len(it.Storages) && !deletes {
		return fmt.Errorf("%w: item %s has %d folders, not %d", registry.ErrInvalid, it.ID, len(it.Storages), len(keys))
	}
	for _, key := range keys {
		place, isFolder := strings.CutPrefix(key, "folder:")
		storage, folder, _ := strings.Cut(place, ":")
		if !isFolder || folder == "" || !deletes && !slices.Contains(it.Storages, storage) {
			return fmt.Errorf("%w: %q is no folder of item %s", registry.ErrInvalid, key, it.ID)
		}
	}
	return nil
}

// ownObject returns ErrNotFound unless an object is the one that Identify settled for a job.
func ownObject(it registry.WorkItem, objectID string) error {
	var id registry.Identity
	if raw, ok := it.Results[registry.ResultARK]; ok {
		if err := json.Unmarshal(raw, &id); err != nil {
			return fmt.Errorf("decode identity: %w", err)
		}
	}
	if objectID == "" || id.ARK != objectID {
		return fmt.Errorf("object %s was not identified by item %s: %w", objectID, it.ID, registry.ErrNotFound)
	}
	return nil
}

// ownVersion returns ErrInvalid unless a version has the item's collection, the owner that the item
// was submitted under, and replicas only in the item's storages.
func ownVersion(it registry.WorkItem, v registry.VersionRecord) error {
	if v.Collection != it.Collection {
		return fmt.Errorf("%w: item %s is of collection %q, not %q", registry.ErrInvalid, it.ID, it.Collection, v.Collection)
	}
	if err := ownOwner(it, v.Owner); err != nil {
		return err
	}
	if err := ownObject(it, v.ObjectID); err != nil {
		return err
	}
	for _, r := range v.Replicas {
		if !slices.Contains(it.Storages, r.Storage) {
			return fmt.Errorf("%w: no version of item %s goes to storage %q", registry.ErrInvalid, it.ID, r.Storage)
		}
	}
	return nil
}

// ownOwner returns ErrInvalid unless an owner is the one of the item's collection at its
// submission.
func ownOwner(it registry.WorkItem, owner string) error {
	spec, err := work.SpecOf(it)
	if err == nil && owner != spec.Profile.Owner {
		err = fmt.Errorf("%w: the objects of item %s have the owner %q, not %q", registry.ErrInvalid, it.ID, spec.Profile.Owner, owner)
	}
	return err
}

// subject is what an attempt's PREMIS events may be about: a version of an object, 0 for the whole
// object, and the allowed kinds of events.
type subject struct {
	it      registry.WorkItem
	object  string
	version int
	kinds   []string
}

// software is how the agent of an event begins: this software, followed by its version.
const software = "Holdfast"

// fixityCheck is the kind of events about files that were read again.
const fixityCheck = "fixity check"

// Kinds of events whose agent is another program, the one that examined the files.
const (
	virusCheck           = "virus check"
	formatIdentification = "format identification"
)

// Kinds of events that each step may record: labels of id.loc.gov, as in package premis.
var (
	recordEvents = []string{
		"identifier assignment", "message digest calculation", fixityCheck, "validation", "metadata extraction", virusCheck,
		formatIdentification, "ingestion", "replication", "filename change", registry.PolicyAssignment,
	}
	fixityEvents  = []string{fixityCheck, "replication"}
	copyEvents    = []string{"replication"}
	restoreEvents = []string{"dissemination"}
	deleteEvents  = []string{"deletion"}
)

// check returns ErrInvalid unless all events name the item, its object and version, have an allowed
// kind, and were made by this software.
func (s subject) check(events []registry.Premis) error {
	for _, e := range events {
		switch {
		case e.ItemID != s.it.ID:
			return fmt.Errorf("%w: an event of item %s names item %q", registry.ErrInvalid, s.it.ID, e.ItemID)
		case e.ObjectID != s.object || e.Version != s.version:
			return fmt.Errorf("%w: an event of item %s is about version %d of %q, not version %d of %s",
				registry.ErrInvalid, s.it.ID, e.Version, e.ObjectID, s.version, s.object)
		case !slices.Contains(s.kinds, e.Type):
			return fmt.Errorf("%w: item %s cannot record a %q here, only %v", registry.ErrInvalid, s.it.ID, e.Type, registry.OneOf(s.kinds))
		case e.Agent != software && !strings.HasPrefix(e.Agent, software+" ") && e.Type != virusCheck && e.Type != formatIdentification:
			return fmt.Errorf("%w: the agent of a %s is %s, not %q", registry.ErrInvalid, e.Type, software, e.Agent)
		}
	}
	return nil
}
