package registrytest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func deletionTests() []test {
	return []test{
		{"that_waits_for_somebody_is_listed", deletionsListed},
		{"of_an_object_needs_two_people", deletionTwoPeople},
		{"cannot_be_approved_with_a_token_made_for_it", deletionMadeToken},
		{"expires_and_can_be_withdrawn", deletionEnds},
		{"is_carried_out_by_its_item_alone", deletionCarriedOut},
		{"is_only_carried_on_once_it_has_begun", deletionActs},
		{"waits_for_a_version_that_is_written", deletionIntent},
		{"lets_nobody_use_the_identifiers_again", deletionIdentifiers},
	}
}

// The people who decide on deletions in these tests.
const (
	asker    = "asker"
	approver = "approver"
	maker    = "second token" // of the asker's making
)

// Deciders are all of them.
func Deciders() []string { return []string{asker, approver, maker} }

// Acting is what a store has whose actor is the token that it is asked with: a store for somebody else's.
type Acting interface {
	Acting(actor string) Person
}

// Person is what one of several people asks who decide together.
type Person interface {
	registry.Deciding
	Command(ctx context.Context, c registry.Command) (registry.WorkItem, error)
}

// by is the store as a person has it.
func (f *fixture) by(actor string) Person {
	if a, ok := f.Store.(Acting); ok {
		return a.Acting(actor)
	}
	return f.Store
}

// approved makes the item that deletes an object.
func (f *fixture) approved(ark string) registry.WorkItem {
	f.Helper()
	_, err := f.by(asker).AskDeletion(f.Context(), ark, "because", asker)
	f.must(err)
	d, err := f.by(approver).ApproveDeletion(f.Context(), ark, approver)
	f.must(err)
	it, err := f.Item(f.Context(), d.ItemID)
	f.must(err)
	return it
}

// deletionsListed: those are listed that somebody can still decide on, in the order of asking, a page at a time, where they are looked for.
func deletionsListed(f *fixture) {
	var asked []string
	listed := func(q registry.DeletionQuery) (ids []string) {
		for q.Limit = 2; ; {
			page, err := f.Deletions(f.Context(), q)
			f.must(err)
			if len(page.Rows) > q.Limit {
				f.Fatalf("a page of %d", len(page.Rows))
			}
			for _, d := range page.Rows {
				if d.Status == registry.DeletionAsked && d.AskedBy == asker && d.Reason == "because" {
					ids = append(ids, d.ObjectID)
				}
			}
			if q.After = page.Next; q.After == "" {
				return ids
			}
		}
	}
	want := func(what string, ids []string) {
		f.Helper()
		if diff := cmp.Diff(ids, listed(registry.DeletionQuery{})); diff != "" {
			f.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	want("at first", nil)
	for range 5 {
		ark := f.object()
		_, err := f.by(asker).AskDeletion(f.Context(), ark, "because", asker)
		f.must(err)
		asked = append(asked, ark)
		f.clock.pass(time.Hour)
	}
	want("asked for", asked)
	if got := listed(registry.DeletionQuery{Within: []string{mnemonic}}); len(got) != len(asked) {
		f.Errorf("in their collection: %v", got)
	}
	for _, within := range [][]string{{}, {"another"}} {
		if got := listed(registry.DeletionQuery{Within: within}); len(got) != 0 {
			f.Errorf("within %v: %v", within, got)
		}
	}
	_, err := f.by(approver).ApproveDeletion(f.Context(), asked[1], approver)
	f.must(err)
	_, err = f.by(asker).WithdrawDeletion(f.Context(), asked[3], asker)
	f.must(err)
	want("one approved, one withdrawn", []string{asked[0], asked[2], asked[4]})
	f.clock.pass(registry.AskingLasts - 3*time.Hour)
	want("two expired", []string{asked[4]})
	_, err = f.by(asker).AskDeletion(f.Context(), asked[0], "because", asker)
	f.must(err)
	want("asked for again", []string{asked[4], asked[0]})
	if _, err := f.Deletions(f.Context(), registry.DeletionQuery{After: "nonsense"}); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("a cursor that was never given out: %v", err)
	}
}

func deletionTwoPeople(f *fixture) {
	ark := f.object()
	_, err := f.by(approver).ApproveDeletion(f.Context(), ark, approver)
	f.is(err, registry.ErrNotAsked)
	asked, err := f.by(asker).AskDeletion(f.Context(), ark, "because", asker)
	f.must(err)
	again, err := f.by(asker).AskDeletion(f.Context(), ark, "because", asker)
	f.must(err)
	if diff := cmp.Diff(asked, again); diff != "" || asked.Status != registry.DeletionAsked || asked.AskedBy != asker || asked.Reason != "because" {
		f.Errorf("asked %+v, the repeat differs (-want +got):\n%s", asked, diff)
	}
	_, err = f.by(asker).AskDeletion(f.Context(), ark, "another reason", asker)
	f.is(err, registry.ErrAsked)
	_, err = f.by(approver).AskDeletion(f.Context(), ark, "because", approver)
	f.is(err, registry.ErrAsked)
	_, err = f.by(asker).ApproveDeletion(f.Context(), ark, asker)
	f.is(err, registry.ErrSamePerson)
	if page, err := f.Items(f.Context(), registry.ItemQuery{Action: registry.DeleteObject}); err != nil || len(page.Rows) != 0 {
		f.Fatalf("one person alone made %+v %v", page.Rows, err)
	}
	d, err := f.by(approver).ApproveDeletion(f.Context(), ark, approver)
	f.must(err)
	repeat, err := f.by(approver).ApproveDeletion(f.Context(), ark, approver)
	f.must(err)
	if d.Status != registry.DeletionApproved || d.ApprovedBy != approver || d.ItemID == "" || repeat.ItemID != d.ItemID {
		f.Errorf("approved %+v, again %+v", d, repeat)
	}
	it, err := f.Item(f.Context(), d.ItemID)
	f.must(err)
	if spec, ok := registry.ObjectSpecIn(it.Spec); !ok || it.Action != registry.DeleteObject || it.CreatedBy != approver || it.Collection != mnemonic || spec.Reason != "because" {
		f.Errorf("item %+v", it)
	}
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	if diff := cmp.Diff(&repeat, o.Deletion); diff != "" || o.Gone != "" {
		f.Errorf("the object has (-want +got):\n%s", diff)
	}
	_, err = f.by(asker).WithdrawDeletion(f.Context(), ark, asker)
	f.is(err, registry.ErrNotAsked) // too late
	_, err = f.RequestObject(f.Context(), registry.ObjectRequest{Action: registry.DeleteObject, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: approver})
	f.is(err, registry.ErrInvalid)
	_, err = f.by(asker).AskDeletion(f.Context(), "ark:/99999/none", "because", asker)
	f.is(err, registry.ErrNotFound)
	audit, err := f.Audit(f.Context(), registry.AuditQuery{Limit: 100})
	f.must(err)
	for actor, kind := range map[string]string{asker: "deletion-asked", approver: "deletion-approved"} {
		if !slices.ContainsFunc(audit.Rows, func(e registry.Event) bool { return e.Actor == actor && e.Type == kind && e.Collection == mnemonic }) {
			f.Errorf("the audit has no %s by %s", kind, actor)
		}
	}
}

func deletionMadeToken(f *fixture) {
	f.must(f.AddToken(f.Context(), registry.Token{ID: "second", Hash: "second", Name: maker, Role: registry.RoleAdmin, CreatedBy: asker}))
	f.must(f.AddToken(f.Context(), registry.Token{ID: "third", Hash: "third", Name: "nobody's", Role: registry.RoleAdmin, CreatedBy: maker}))
	for _, two := range [][2]string{{asker, maker}, {maker, asker}} {
		ark := f.object()
		_, err := f.by(two[0]).AskDeletion(f.Context(), ark, "because", two[0])
		f.must(err)
		_, err = f.by(two[1]).ApproveDeletion(f.Context(), ark, two[1])
		f.is(err, registry.ErrSamePerson)
		_, err = f.by(approver).ApproveDeletion(f.Context(), ark, approver)
		f.must(err)
	}
}

func deletionEnds(f *fixture) {
	ark := f.object()
	asked, err := f.by(asker).AskDeletion(f.Context(), ark, "because", asker)
	f.must(err)
	for range 2 {
		d, err := f.by(approver).WithdrawDeletion(f.Context(), ark, approver)
		f.must(err)
		if d.Status != registry.DeletionWithdrawn || d.WithdrawnBy != approver {
			f.Errorf("withdrawn: %+v", d)
		}
	}
	_, err = f.by(approver).ApproveDeletion(f.Context(), ark, approver)
	f.is(err, registry.ErrNotAsked)
	_, err = f.by(asker).AskDeletion(f.Context(), ark, "because", asker)
	f.must(err)
	f.clock.pass(asked.ExpiresAt.Sub(asked.AskedAt))
	_, err = f.by(approver).ApproveDeletion(f.Context(), ark, approver)
	f.is(err, registry.ErrNotAsked)
	_, err = f.by(approver).WithdrawDeletion(f.Context(), ark, approver)
	f.is(err, registry.ErrNotAsked)
	if o, err := f.Object(f.Context(), ark); err != nil || o.Deletion.Status != registry.DeletionExpired {
		f.Errorf("%+v %v, want it expired", o.Deletion, err)
	}
	f.approved(ark)
}

func deletionCarriedOut(f *fixture) {
	ark := f.object()
	it := f.approved(ark)
	other := f.object()
	last := registry.Remains{Version: 1, Inventory: "sha256:ab", Files: "sha256:cd"}
	c := f.take(registry.Delete, it.ID)
	_, err := f.MarkDeleting(f.Context(), c.Lease, ark, last) // without its lock
	f.is(err, registry.ErrNotFound)
	_, err = f.MarkDeleting(f.Context(), c.Lease, other, last)
	f.is(err, registry.ErrNotFound)
	f.is(f.RecordDeletion(f.Context(), c.Lease, ark, nil), registry.ErrInvalid)
	_, err = f.LockObject(f.Context(), c.Lease, ark)
	f.must(err)
	for range 2 {
		d, err := f.MarkDeleting(f.Context(), c.Lease, ark, last)
		f.must(err)
		if !d.Gone() || d.Last != last || d.ItemID != it.ID {
			f.Errorf("marked %+v", d)
		}
		last.Inventory = "sha256:ab" // what is noted stays
	}
	if o, err := f.Object(f.Context(), ark); err != nil || o.Gone != registry.DeletionDeleting {
		f.Errorf("%+v %v, want it to be deleting", o, err)
	}
	stale := registry.Lease{ItemID: it.ID, N: c.Lease.N - 1}
	_, err = f.MarkDeleting(f.Context(), stale, ark, last)
	f.is(err, registry.ErrClaimLost)
	f.is(f.RecordDeletion(f.Context(), stale, ark, nil), registry.ErrClaimLost)
	_, err = f.LockObject(f.Context(), c.Lease, ark) // a later attempt does so
	f.must(err)
	event := registry.Premis{ID: f.unique("premis"), ObjectID: ark, ItemID: it.ID, Type: "deletion", At: f.clock.now(), Agent: agent, Outcome: "success"}
	for range 2 {
		f.must(f.RecordDeletion(f.Context(), c.Lease, ark, []registry.Premis{event}))
	}
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	if o.Gone != registry.DeletionDeleted || o.Head != 1 || len(o.Versions) != 1 || o.Deletion.DeletedAt == nil || o.Deletion.Last != last {
		f.Errorf("the tombstone is %+v %+v", o, o.Deletion)
	}
	if files, err := f.Files(f.Context(), ark, 0, "", 10); err != nil || len(files) != 1 {
		f.Errorf("files %v %v: the inventory stays", files, err)
	}
	events, err := f.PremisEvents(f.Context(), ark, "", 0)
	f.must(err)
	if n := len(events.Rows); n == 0 || events.Rows[n-1].Type != "deletion" {
		f.Errorf("preservation events %+v", events.Rows)
	}
	f.done(c.Lease)
	f.finish(it.ID)
	var gone *registry.GoneError
	if _, err := f.by(asker).AskDeletion(f.Context(), ark, "because", asker); !errors.As(err, &gone) || gone.Approved != approver || gone.AskedBy != asker || gone.Reason != "because" {
		f.Errorf("asked again: %v", err)
	}
}

func deletionActs(f *fixture) {
	ark := f.object()
	it := f.approved(ark)
	f.command(it.ID, registry.ActCancel, "")
	f.sure(it.ID, registry.ActAbort)
	it = f.approved(ark) // the first was given up before it began
	c := f.take(registry.Delete, it.ID)
	_, err := f.LockObject(f.Context(), c.Lease, ark)
	f.must(err)
	_, err = f.MarkDeleting(f.Context(), c.Lease, ark, registry.Remains{Version: 1})
	f.must(err)
	for _, act := range []registry.Act{registry.ActCancel, registry.ActAbort} {
		_, err := f.Command(f.Context(), registry.Command{ItemID: it.ID, Act: act, Actor: "admin", Confirmed: true})
		var late *registry.PastNoReturn
		if !errors.As(err, &late) || late.ObjectID != ark {
			f.Errorf("%s of a deletion that has begun: %v", act, err)
		}
	}
	f.must(f.RecordDeletion(f.Context(), c.Lease, ark, nil))
	f.done(c.Lease)
}

func deletionIntent(f *fixture) {
	ark := f.object()
	it := f.approved(ark)
	c := f.processing(1)[0]
	_, err := f.Identify(f.Context(), c.Lease, registry.IdentifyRequest{Owner: owner, Supplied: ark, Proposed: f.unique("no")})
	f.must(err)
	_, err = f.Intend(f.Context(), c.Lease, registry.Intent{ObjectID: ark, Version: 2, Plan: []byte(`{}`)})
	f.must(err)
	d := f.take(registry.Delete, it.ID)
	var locked *registry.LockedError
	if _, err := f.LockObject(f.Context(), d.Lease, ark); !errors.As(err, &locked) {
		f.Fatalf("locked beside an open intent: %v", err)
	}
	_, err = f.MarkDeleting(f.Context(), d.Lease, ark, registry.Remains{})
	f.is(err, registry.ErrNotFound)
}

func deletionIdentifiers(f *fixture) {
	first := f.processing(1)[0]
	id := f.locks(first.Lease, "local")
	f.store(first.Lease, id.ARK, 1, file("producer/a"))
	f.done(first.Lease)
	f.finish(first.Item.ID)
	// Identified before, and not through with the object when it is deleted.
	waiting := f.processing(1)[0]
	f.locks(waiting.Lease, "local")
	f.settle(registry.Settlement{Lease: waiting.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage is down"})
	it := f.approved(id.ARK)
	c := f.take(registry.Delete, it.ID)
	_, err := f.LockObject(f.Context(), c.Lease, id.ARK)
	f.must(err)
	_, err = f.MarkDeleting(f.Context(), c.Lease, id.ARK, registry.Remains{Version: 1})
	f.must(err)
	f.must(f.RecordDeletion(f.Context(), c.Lease, id.ARK, nil))
	f.done(c.Lease)
	for _, r := range []registry.IdentifyRequest{
		{Owner: owner, Supplied: id.ARK, Proposed: f.unique("no")},
		{Owner: owner, LocalIDs: []string{"local"}, Proposed: f.unique("no")},
	} {
		again := f.processing(1)[0]
		_, err := f.Identify(f.Context(), again.Lease, r)
		var gone *registry.GoneError
		if !errors.As(err, &gone) || gone.ObjectID != id.ARK || gone.Approved != approver || !gone.ContentFault() {
			f.Errorf("identified %+v: %v", r, err)
		}
	}
	// Its next attempt, with the name that it had.
	f.command(waiting.Item.ID, registry.ActRequeue, "")
	again := f.take(registry.Process, waiting.Item.ID)
	var gone *registry.GoneError
	if _, err := f.Identify(f.Context(), again.Lease, registry.IdentifyRequest{Owner: owner, LocalIDs: []string{"local"}}); !errors.As(err, &gone) {
		f.Errorf("identified again: %v", err)
	}
}
