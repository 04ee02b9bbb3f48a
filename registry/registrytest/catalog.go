package registrytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Abandon makes a person request that a version is abandoned, or approve an open request.
func (f *Fixture) Abandon(person, id string) (registry.WorkItem, error) {
	f.Helper()
	return f.ConfirmAbandon(person, id, f.AbandonmentAsked(id))
}

// ConfirmAbandon makes a person approve the request agreesTo, or make the request if agreesTo is
// "".
func (f *Fixture) ConfirmAbandon(person, id, agreesTo string) (registry.WorkItem, error) {
	f.Helper()
	return f.By(person).Command(f.Context(), registry.Command{
		ItemID: id, Act: registry.ActAbandon, Reason: "staging is lost", Actor: person, Confirmed: true, AgreesTo: agreesTo,
	})
}

// AbandonmentAsked returns the open request to abandon an item's version, or "".
func (f *Fixture) AbandonmentAsked(id string) string {
	f.Helper()
	a, ok := f.Item(id).Abandonment()
	if !ok || !a.Waits(f.Clock.Now()) {
		return ""
	}
	return a.Request()
}

// People who decide on deletions in these tests.
const (
	Asker    = "asker"
	Approver = "approver"
	Maker    = "second token" // of the asker's making
)

// Deciders returns these people.
func Deciders() []string { return []string{Asker, Approver, Maker} }

// Acting is implemented by a store that takes the actor from the token of the caller, not from an
// argument.
type Acting interface {
	Acting(actor string) Person
}

// Person is what people who decide together use.
type Person interface {
	registry.Deciding
	Command(ctx context.Context, c registry.Command) (registry.WorkItem, error)
}

// By returns the store as a person uses it.
func (f *Fixture) By(actor string) Person {
	if a, ok := f.Store.(Acting); ok {
		return a.Acting(actor)
	}
	return f.Store
}

// ApprovedDeletion requests and approves the deletion of an object, and returns its item.
func (f *Fixture) ApprovedDeletion(ark string) registry.WorkItem {
	f.Helper()
	_, err := f.By(Asker).AskDeletion(f.Context(), ark, "because", Asker)
	f.Must(err)
	d, err := f.By(Approver).ApproveDeletion(f.Context(), ark, Approver)
	f.Must(err)
	it, err := f.Store.Item(f.Context(), d.ItemID)
	f.Must(err)
	return it
}

// CheckEvery is the longest time between two checks of a file.
const CheckEvery = 90 * Day

// Recheck queues the checks that are due.
func (f *Fixture) Recheck(most int) registry.Rechecked {
	f.Helper()
	done, err := f.Store.Recheck(f.Context(), registry.RecheckRequest{Every: CheckEvery, Outstanding: most, Keep: Day})
	f.Must(err)
	return done
}

// TakeCheck claims the next check and returns its spec.
func (f *Fixture) TakeCheck() (registry.Lease, registry.ObjectSpec) {
	f.Helper()
	c := f.Take(registry.Fixity, "")
	spec, ok := registry.ObjectSpecIn(c.Item.Spec)
	if !ok {
		f.Fatalf("spec %s", c.Item.Spec)
	}
	return c.Lease, spec
}

// RecordCheck records the outcome of a check in [Storage].
func (f *Fixture) RecordCheck(l registry.Lease, outcome registry.CheckOutcome) {
	f.Helper()
	f.Must(f.Store.RecordCheck(f.Context(), l, registry.CheckRecord{
		Replicas: []registry.ReplicaCheck{{Storage: Storage, Outcome: outcome}},
	}))
}

// Identify settles which object an item is about.
func (f *Fixture) Identify(l registry.Lease, r registry.IdentifyRequest) registry.Identity {
	f.Helper()
	id, err := f.Store.Identify(f.Context(), l, r)
	f.Must(err)
	return id
}

// Intend announces a version of an object.
func (f *Fixture) Intend(l registry.Lease, object string, version int, plan string) registry.Intent {
	f.Helper()
	in, err := f.Store.Intend(f.Context(), l, registry.Intent{ObjectID: object, Version: version, Plan: json.RawMessage(plan)})
	f.Must(err)
	return in
}

// Record makes an announced version visible.
func (f *Fixture) Record(l registry.Lease, object string, version int, files ...registry.File) {
	f.Helper()
	f.Must(f.Store.RecordFiles(f.Context(), l, object, version, files))
	f.Must(f.Store.RecordVersion(f.Context(), l, VersionRecord(f, l, object, version, files)))
}

// Preserve announces and records a version.
func (f *Fixture) Preserve(l registry.Lease, object string, version int, files ...registry.File) {
	f.Helper()
	f.Intend(l, object, version, `{}`)
	f.Record(l, object, version, files...)
}

// Processing makes n jobs and claims each at process, in submit order.
func (f *Fixture) Processing(n int) []registry.Claim {
	f.Helper()
	_, jobs := f.Batch(n)
	claims := make([]registry.Claim, n)
	for _, job := range jobs {
		f.Bring(job, registry.Process)
	}
	for i, job := range jobs {
		claims[i] = f.TakeItem(job)
	}
	return claims
}

// named identifies an object by local ids and proposes a name that no other call proposes.
func (f *Fixture) named(l registry.Lease, local ...string) (registry.Identity, error) {
	return f.Store.Identify(f.Context(), l, registry.IdentifyRequest{
		Owner: Owner, LocalIDs: local, Proposed: f.Unique("ark:/99999/fk"),
	})
}

// Named identifies an object by local ids, which must succeed.
func (f *Fixture) Named(l registry.Lease, local ...string) registry.Identity {
	f.Helper()
	id, err := f.named(l, local...)
	f.Must(err)
	return id
}

// Waits identifies an object, which must be refused because holder has the lock.
func (f *Fixture) Waits(l, holder registry.Lease, local ...string) {
	f.Helper()
	_, err := f.named(l, local...)
	var locked *registry.LockedError
	if !errors.As(err, &locked) {
		f.Fatalf("identify: %v, want that it is locked", err)
	}
	if locked.ItemID != holder.ItemID {
		f.Errorf("locked by %s, want %s", locked.ItemID, holder.ItemID)
	}
}

// Snooze settles an attempt as a worker does that waits for a lock.
func (f *Fixture) Snooze(l registry.Lease) {
	f.Helper()
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonLocked, Delay: time.Minute, Error: "locked"})
}

// FilePath is the path of the file in the objects of Fixture.Object. It is not valid UTF-8.
const FilePath = "producer/\xff"

// Storage is the storage of the versions that tests record.
const Storage = registry.DefaultStorage

// Object records an object of one file.
func (f *Fixture) Object() (ark string) {
	f.Helper()
	c := f.Processing(1)[0]
	ark = f.Named(c.Lease, f.Unique("object")).ARK
	f.Preserve(c.Lease, ark, 1, File(FilePath))
	f.Done(c.Lease)
	f.Finish(c.Item.ID)
	return ark
}

// ItemAbout adds an item about an object.
func (f *Fixture) ItemAbout(a registry.Action, ark string) registry.WorkItem {
	f.Helper()
	if a == registry.DeleteObject {
		return f.ApprovedDeletion(ark)
	}
	if a == registry.CopyObject {
		return f.copyItem(ark)
	}
	it, err := f.Store.RequestObject(f.Context(), ObjectRequest(a, ark))
	f.Must(err)
	return it
}

// copyItem adds the item that copies an object to a storage that its profile names for a moment.
func (f *Fixture) copyItem(ark string) registry.WorkItem {
	f.Helper()
	before, err := f.Store.Collection(f.Context(), Mnemonic)
	f.Must(err)
	_, err = f.Store.ChangeStorage(f.Context(), registry.StorageChange{Name: "copies", Act: registry.ActFill, Collections: []string{Mnemonic}, Actor: "admin"})
	f.Must(err)
	_, err = f.Store.Align(f.Context(), registry.AlignRequest{Outstanding: 1000, Keep: time.Hour})
	f.Must(err)
	before.Version = registry.AnyVersion
	f.Must(f.Store.PutCollection(f.Context(), before, "admin"))
	page, err := f.Store.Items(f.Context(), registry.ItemQuery{Action: registry.CopyObject, Limit: 500})
	f.Must(err)
	for _, it := range page.Rows {
		if spec, _ := registry.ObjectSpecIn(f.Item(it.ID).Spec); spec.ObjectID == ark && !it.Status.Settled() {
			return it
		}
	}
	f.Fatalf("%s is not copied", ark)
	return registry.WorkItem{}
}

// ObjectRequest returns a request for an item about an object, or about its file if the action
// needs one.
func ObjectRequest(a registry.Action, ark string) registry.ObjectRequest {
	r := registry.ObjectRequest{Action: a, Spec: registry.ObjectSpec{ObjectID: ark, Reason: "because"}, Actor: "admin"}
	if a == registry.FixityCheck {
		r.Spec.File = []byte("v1/content/" + FilePath)
	}
	return r
}

// LockObject locks an object, which must be at its first version.
func (f *Fixture) LockObject(l registry.Lease, ark string) {
	f.Helper()
	head, err := f.Store.LockObject(f.Context(), l, ark)
	f.Must(err)
	if head != 1 {
		f.Errorf("head %d, want 1", head)
	}
}

// File returns a file of the inventory.
func File(path string) registry.File {
	return registry.File{
		Path: path, ContentPath: "v1/content/" + path, SizeBytes: 5, Digests: map[string]string{"sha512": "aa"}, MIMEType: "text/plain",
		Modified: time.Date(1944, 6, 6, 6, 30, 0, 123_456_000, time.UTC),
		Format:   &registry.Format{PUID: "x-fmt/111", Name: "Plain Text \"File\"", Version: "1", Registry: "V120", Warning: "match on extension only"},
	}
}

// VersionRecord returns the record of a version with these files.
func VersionRecord(f *Fixture, l registry.Lease, object string, version int, files []registry.File) registry.VersionRecord {
	at := f.Clock.Now()
	return registry.VersionRecord{
		ObjectID: object, Version: version, Collection: Mnemonic, Owner: Owner, Title: fmt.Sprintf("title %d", version), Creator: "creator",
		Date: "2026", Files: int64(len(files)), SizeBytes: 5 * int64(len(files)), CreatedAt: at, Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: at}},
		Events: []registry.Premis{{
			ID: fmt.Sprintf("%s-%d", object, version), ObjectID: object, Version: version, ItemID: l.ItemID, Type: "ingestion", At: at,
			Agent: Agent, Outcome: "success", Detail: "stored",
		}},
	}
}

// KeepRestored is how long restored tars are kept in these tests.
const KeepRestored = 7 * Day

// Restore requests a restore of the newest version.
func (f *Fixture) Restore(ark string) registry.Restoration {
	f.Helper()
	it, err := f.Store.RequestObject(f.Context(), registry.ObjectRequest{
		Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: ark, Reason: "a fire"}, Actor: "depositor",
	})
	f.Must(err)
	return f.Restoration(it.ID)
}

// Restoration returns the restore that an item carries out.
func (f *Fixture) Restoration(item string) registry.Restoration {
	f.Helper()
	r, err := f.Store.RestorationOf(f.Context(), item)
	f.Must(err)
	return r
}

// RestorationRecord returns what an attempt records after a restore.
func RestorationRecord(l registry.Lease, ark string) registry.RestorationRecord {
	return registry.RestorationRecord{
		RestoredParcel: registry.RestoredParcel{
			Name: "object-v1.tar", Place: registry.RestoredKey(l, "object-v1.tar"), SizeBytes: 12_345, SHA256: strings.Repeat("0f", 32), Files: 7,
		},
		Keep:   KeepRestored,
		Events: []registry.Premis{{ID: "restored by " + l.ItemID, ObjectID: ark, Version: 1, ItemID: l.ItemID, Type: "dissemination", Agent: Agent, Outcome: "success"}},
	}
}

// RecordRestoration records a restore.
func (f *Fixture) RecordRestoration(l registry.Lease, ark string) registry.Restoration {
	f.Helper()
	r, err := f.Store.RecordRestoration(f.Context(), l, RestorationRecord(l, ark))
	f.Must(err)
	return r
}
