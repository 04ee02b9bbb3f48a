package sqlstore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// This file is one rule: what an attempt writes may name only what its own item is about. Whoever has the secret of one worker can so spoil
// the items that it is given, and nobody else's. The store judges it, in the transaction that writes, so that it holds for workers in the
// same process, too.

// specOf is what a batch or a job was submitted with.
func specOf(it registry.WorkItem) (spec registry.Spec, err error) {
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return spec, fmt.Errorf("decode spec of item %s: %w", it.ID, err)
	}
	return spec, nil
}

// uploadNamed says that an address is of an upload. Sources take the scheme in any case (RFC 3986, 3.1).
func uploadNamed(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	own, _, _ := strings.Cut(registry.UploadURL(""), ":")
	return ok && strings.EqualFold(scheme, own)
}

// ownJob is a row as a job of its batch: whatever the worker says, what was settled when the batch was submitted is the batch's. The only
// upload that it can name is the one that the batch was submitted from. A bad row, which only quotes its manifest, loses another one's id.
func ownJob(batch registry.WorkItem, submitted registry.Spec, j registry.NewJob) (registry.NewJob, error) {
	if uploadNamed(j.Spec.URL) && j.Spec.URL != submitted.URL {
		if j.Fault == "" {
			return j, fmt.Errorf("%w: line %d names an upload that batch %s was not submitted from", registry.ErrInvalid, j.Line, batch.ID)
		}
		j.Spec.URL = ""
	}
	if j.Priority < min(0, batch.Priority) {
		return j, fmt.Errorf("%w: line %d has priority %d; only an operator puts a job in front of everything", registry.ErrInvalid, j.Line, j.Priority)
	}
	s := &j.Spec
	s.Mode, s.Force, s.Priority = submitted.Mode, submitted.Force, submitted.Priority
	s.Submitter, s.UserAgent, s.SubmittedAt, s.Notify = submitted.Submitter, submitted.UserAgent, submitted.SubmittedAt, submitted.Notify
	s.Profile, s.ProfileVersion = submitted.Profile, submitted.ProfileVersion
	return j, nil
}

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
	spec, err := specOf(it)
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

// ownMessage is a message as an item may tell it: an item of action deliver the one that it was made for, a job that it completed, to the
// callback that it was submitted under or that its collection has now. The Registry alone makes mails.
func (t *tx) ownMessage(it registry.WorkItem, m registry.DeliverySpec) (registry.DeliverySpec, error) {
	if it.Action == registry.DeliverMessage {
		if own, ok := registry.DeliverySpecIn(it.Spec); ok && own.ID() == m.ID() {
			return own, nil
		}
		return m, fmt.Errorf("%w: item %s does not tell of item %s", registry.ErrInvalid, it.ID, m.Subject)
	}
	if it.ID != m.Subject || it.Action != registry.Ingest {
		return m, fmt.Errorf("%w: item %s does not tell of item %s", registry.ErrInvalid, it.ID, m.Subject)
	}
	if m.Mail != "" || m.State != registry.StateCompleted {
		return m, fmt.Errorf("%w: a job tells its callback that it completed, and nothing else; this is a message of kind %s that it is %q",
			registry.ErrInvalid, m.Kind(), m.State)
	}
	old, err := callbackOf(it)
	if err != nil {
		return m, err
	}
	now, err := t.profileNow(it.Collection)
	if err != nil {
		return m, err
	}
	for _, to := range []*registry.Callback{now.Callback, old} {
		if to != nil && to.URL == m.Callback.URL {
			return registry.DeliverySpec{Subject: it.ID, State: registry.StateCompleted, Callback: *to}, nil
		}
	}
	return m, fmt.Errorf("%w: collection %s has no callback at %s", registry.ErrInvalid, it.Collection, cmp.Or(m.Callback.URL, "no address"))
}

// ownResults is ownResult for all results of an attempt.
func ownResults(results map[string]json.RawMessage) error {
	for name := range results {
		if err := ownResult(name); err != nil {
			return err
		}
	}
	return nil
}

// ownResult returns ErrInvalid for a result that the Registry itself sets, and acts on: the name that was settled, what two people decided.
func ownResult(name string) error {
	switch name {
	case registry.ResultAbandon, registry.ResultARK, registry.ResultBulk, registry.ResultCallback, registry.ResultDuplicateOf, registry.ResultExpanded,
		registry.ResultRecheck, registry.ResultSentBack, registry.ResultSuperseded, registry.ResultUntold:
		return fmt.Errorf("%w: the Registry itself sets the result %s", registry.ErrInvalid, name)
	}
	return nil
}
