package catalogtest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func deletionTests() tests {
	return tests{
		"that_waits_for_somebody_is_listed":           deletionsListed,
		"of_an_object_needs_two_people":               deletionTwoPeople,
		"cannot_be_approved_with_a_token_made_for_it": deletionMadeToken,
		"expires_and_can_be_withdrawn":                deletionEnds,
		"is_carried_out_by_its_item_alone":            deletionCarriedOut,
		"is_only_carried_on_once_it_has_begun":        deletionActs,
		"waits_for_a_version_that_is_written":         deletionIntent,
		"lets_nobody_use_the_identifiers_again":       deletionIdentifiers,
	}
}

// deletionsListed: the list has the requests that are still open, the oldest first, in pages,
// within the asked collections.
func deletionsListed(f *fixture) {
	var asked []string
	listed := func(q registry.DeletionQuery) (ids []string) {
		for q.Limit = 2; ; {
			page, err := f.Store.Deletions(f.Context(), q)
			f.Must(err)
			if len(page.Rows) > q.Limit {
				f.Fatalf("a page of %d", len(page.Rows))
			}
			for _, d := range page.Rows {
				if d.Status == registry.DeletionAsked && d.AskedBy == registrytest.Asker && d.Reason == "because" {
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
		ark := f.Object()
		_, err := f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker)
		f.Must(err)
		asked = append(asked, ark)
		f.Clock.Pass(time.Hour)
	}
	want("asked for", asked)
	if got := listed(registry.DeletionQuery{Within: []string{registrytest.Mnemonic}}); len(got) != len(asked) {
		f.Errorf("in their collection: %v", got)
	}
	for _, within := range [][]string{{}, {"another"}} {
		if got := listed(registry.DeletionQuery{Within: within}); len(got) != 0 {
			f.Errorf("within %v: %v", within, got)
		}
	}
	_, err := f.By(registrytest.Approver).ApproveDeletion(f.Context(), asked[1], registrytest.Approver)
	f.Must(err)
	_, err = f.By(registrytest.Asker).WithdrawDeletion(f.Context(), asked[3], registrytest.Asker)
	f.Must(err)
	want("one approved, one withdrawn", []string{asked[0], asked[2], asked[4]})
	f.Clock.Pass(registry.AskingLasts - 3*time.Hour)
	want("two expired", []string{asked[4]})
	_, err = f.By(registrytest.Asker).AskDeletion(f.Context(), asked[0], "because", registrytest.Asker)
	f.Must(err)
	want("asked for again", []string{asked[4], asked[0]})
	if _, err := f.Store.Deletions(f.Context(), registry.DeletionQuery{After: "nonsense"}); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("a cursor that was never given out: %v", err)
	}
}

func deletionTwoPeople(f *fixture) {
	ark := f.Object()
	_, err := f.By(registrytest.Approver).ApproveDeletion(f.Context(), ark, registrytest.Approver)
	f.Is(err, registry.ErrNotAsked)
	asked, err := f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker)
	f.Must(err)
	again, err := f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker)
	f.Must(err)
	if diff := cmp.Diff(asked, again); diff != "" || asked.Status != registry.DeletionAsked || asked.AskedBy != registrytest.Asker || asked.Reason != "because" {
		f.Errorf("asked %+v, the repeat differs (-want +got):\n%s", asked, diff)
	}
	_, err = f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "another reason", registrytest.Asker)
	f.Is(err, registry.ErrAsked)
	_, err = f.By(registrytest.Approver).AskDeletion(f.Context(), ark, "because", registrytest.Approver)
	f.Is(err, registry.ErrAsked)
	_, err = f.By(registrytest.Asker).ApproveDeletion(f.Context(), ark, registrytest.Asker)
	f.Is(err, registry.ErrSamePerson)
	if page, err := f.Store.Items(f.Context(), registry.ItemQuery{Action: registry.DeleteObject}); err != nil || len(page.Rows) != 0 {
		f.Fatalf("one person alone made %+v %v", page.Rows, err)
	}
	d, err := f.By(registrytest.Approver).ApproveDeletion(f.Context(), ark, registrytest.Approver)
	f.Must(err)
	repeat, err := f.By(registrytest.Approver).ApproveDeletion(f.Context(), ark, registrytest.Approver)
	f.Must(err)
	if d.Status != registry.DeletionApproved || d.ApprovedBy != registrytest.Approver || d.ItemID == "" || repeat.ItemID != d.ItemID {
		f.Errorf("approved %+v, again %+v", d, repeat)
	}
	it, err := f.Store.Item(f.Context(), d.ItemID)
	f.Must(err)
	if spec, ok := registry.ObjectSpecIn(it.Spec); !ok || it.Action != registry.DeleteObject || it.CreatedBy != registrytest.Approver || it.Collection != registrytest.Mnemonic || spec.Reason != "because" {
		f.Errorf("item %+v", it)
	}
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if diff := cmp.Diff(&repeat, o.Deletion); diff != "" || o.Gone != "" {
		f.Errorf("the object has (-want +got):\n%s", diff)
	}
	_, err = f.By(registrytest.Asker).WithdrawDeletion(f.Context(), ark, registrytest.Asker)
	f.Is(err, registry.ErrNotAsked) // too late
	_, err = f.Store.RequestObject(f.Context(), registry.ObjectRequest{Action: registry.DeleteObject, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: registrytest.Approver})
	f.Is(err, registry.ErrInvalid)
	_, err = f.By(registrytest.Asker).AskDeletion(f.Context(), "ark:/99999/none", "because", registrytest.Asker)
	f.Is(err, registry.ErrNotFound)
	audit, err := f.Store.Audit(f.Context(), registry.AuditQuery{Limit: 100})
	f.Must(err)
	for actor, kind := range map[string]string{registrytest.Asker: "deletion-asked", registrytest.Approver: "deletion-approved"} {
		if !slices.ContainsFunc(audit.Rows, func(e registry.Event) bool {
			return e.Actor == actor && e.Type == kind && e.Collection == registrytest.Mnemonic
		}) {
			f.Errorf("the audit has no %s by %s", kind, actor)
		}
	}
}

func deletionMadeToken(f *fixture) {
	f.Must(f.Store.AddToken(f.Context(), registry.Token{ID: "second", Hash: "second", Name: registrytest.Maker, Role: registry.RoleAdmin, CreatedBy: registrytest.Asker}))
	f.Must(f.Store.AddToken(f.Context(), registry.Token{ID: "third", Hash: "third", Name: "nobody's", Role: registry.RoleAdmin, CreatedBy: registrytest.Maker}))
	for _, two := range [][2]string{{registrytest.Asker, registrytest.Maker}, {registrytest.Maker, registrytest.Asker}} {
		ark := f.Object()
		_, err := f.By(two[0]).AskDeletion(f.Context(), ark, "because", two[0])
		f.Must(err)
		_, err = f.By(two[1]).ApproveDeletion(f.Context(), ark, two[1])
		f.Is(err, registry.ErrSamePerson)
		_, err = f.By(registrytest.Approver).ApproveDeletion(f.Context(), ark, registrytest.Approver)
		f.Must(err)
	}
}

func deletionEnds(f *fixture) {
	ark := f.Object()
	asked, err := f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker)
	f.Must(err)
	for range 2 {
		d, err := f.By(registrytest.Approver).WithdrawDeletion(f.Context(), ark, registrytest.Approver)
		f.Must(err)
		if d.Status != registry.DeletionWithdrawn || d.WithdrawnBy != registrytest.Approver {
			f.Errorf("withdrawn: %+v", d)
		}
	}
	_, err = f.By(registrytest.Approver).ApproveDeletion(f.Context(), ark, registrytest.Approver)
	f.Is(err, registry.ErrNotAsked)
	_, err = f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker)
	f.Must(err)
	f.Clock.Pass(asked.ExpiresAt.Sub(asked.AskedAt))
	_, err = f.By(registrytest.Approver).ApproveDeletion(f.Context(), ark, registrytest.Approver)
	f.Is(err, registry.ErrNotAsked)
	_, err = f.By(registrytest.Approver).WithdrawDeletion(f.Context(), ark, registrytest.Approver)
	f.Is(err, registry.ErrNotAsked)
	if o, err := f.Store.Object(f.Context(), ark); err != nil || o.Deletion.Status != registry.DeletionExpired {
		f.Errorf("%+v %v, want it expired", o.Deletion, err)
	}
	f.ApprovedDeletion(ark)
}

func deletionCarriedOut(f *fixture) {
	ark := f.Object()
	it := f.ApprovedDeletion(ark)
	other := f.Object()
	last := registry.Remains{Version: 1, Inventory: "sha256:ab", Files: "sha256:cd"}
	c := f.Take(registry.Delete, it.ID)
	_, err := f.Store.MarkDeleting(f.Context(), c.Lease, ark, last) // without its lock
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.MarkDeleting(f.Context(), c.Lease, other, last)
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.RecordDeletion(f.Context(), c.Lease, ark, nil), registry.ErrInvalid)
	_, err = f.Store.LockObject(f.Context(), c.Lease, ark)
	f.Must(err)
	stone := ""
	for range 2 {
		d, err := f.Store.MarkDeleting(f.Context(), c.Lease, ark, last)
		f.Must(err)
		if !d.Gone() || d.Last != last || d.ItemID != it.ID {
			f.Errorf("marked %+v", d)
		}
		last.Inventory = "sha256:ab" // what is noted stays
		stone = d.Tombstone
	}
	if o, err := f.Store.Object(f.Context(), ark); err != nil || o.Gone != registry.DeletionDeleting {
		f.Errorf("%+v %v, want it to be deleting", o, err)
	}
	if text, err := f.Store.Tombstone(f.Context(), ark); err != nil || text != "" {
		f.Errorf("the tombstone of an object that is not deleted yet is %q, %v", text, err)
	}
	stale := registry.Lease{ItemID: it.ID, N: c.Lease.N - 1}
	_, err = f.Store.MarkDeleting(f.Context(), stale, ark, last)
	f.Is(err, registry.ErrClaimLost)
	f.Is(f.Store.RecordDeletion(f.Context(), stale, ark, nil), registry.ErrClaimLost)
	_, err = f.Store.LockObject(f.Context(), c.Lease, ark) // a later attempt does so
	f.Must(err)
	event := registry.Premis{ID: f.Unique("premis"), ObjectID: ark, ItemID: it.ID, Type: "deletion", At: f.Clock.Now(), Agent: registrytest.Agent, Outcome: "success"}
	for range 2 {
		f.Must(f.Store.RecordDeletion(f.Context(), c.Lease, ark, []registry.Premis{event}))
	}
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if o.Gone != registry.DeletionDeleted || o.Head != 1 || len(o.Versions) != 1 || o.Deletion.DeletedAt == nil || o.Deletion.Last != last {
		f.Errorf("the tombstone is %+v %+v", o, o.Deletion)
	}
	if text, err := f.Store.Tombstone(f.Context(), ark); err != nil || text != stone || stone == "" {
		f.Errorf("the tombstone is %q, %v, want %q", text, err, stone)
	}
	if files, err := f.Store.Files(f.Context(), ark, 0, "", 10); err != nil || len(files) != 1 {
		f.Errorf("files %v %v: the inventory stays", files, err)
	}
	events, err := f.Store.PremisEvents(f.Context(), ark, "", 0)
	f.Must(err)
	if n := len(events.Rows); n == 0 || events.Rows[n-1].Type != "deletion" {
		f.Errorf("preservation events %+v", events.Rows)
	}
	f.Done(c.Lease)
	f.Finish(it.ID)
	var gone *registry.GoneError
	if _, err := f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker); !errors.As(err, &gone) || gone.Approved != registrytest.Approver || gone.AskedBy != registrytest.Asker || gone.Reason != "because" {
		f.Errorf("asked again: %v", err)
	}
}

func deletionActs(f *fixture) {
	ark := f.Object()
	it := f.ApprovedDeletion(ark)
	f.Command(it.ID, registry.ActCancel, "")
	f.Confirm(it.ID, registry.ActAbort)
	it = f.ApprovedDeletion(ark) // the first was given up before it began
	c := f.Take(registry.Delete, it.ID)
	_, err := f.Store.LockObject(f.Context(), c.Lease, ark)
	f.Must(err)
	_, err = f.Store.MarkDeleting(f.Context(), c.Lease, ark, registry.Remains{Version: 1})
	f.Must(err)
	for _, act := range []registry.Act{registry.ActCancel, registry.ActAbort} {
		_, err := f.Store.Command(f.Context(), registry.Command{ItemID: it.ID, Act: act, Actor: "admin", Confirmed: true})
		var late *registry.PastNoReturn
		if !errors.As(err, &late) || late.ObjectID != ark {
			f.Errorf("%s of a deletion that has begun: %v", act, err)
		}
	}
	f.Must(f.Store.RecordDeletion(f.Context(), c.Lease, ark, nil))
	f.Done(c.Lease)
}

func deletionIntent(f *fixture) {
	ark := f.Object()
	it := f.ApprovedDeletion(ark)
	c := f.Processing(1)[0]
	_, err := f.Store.Identify(f.Context(), c.Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark, Proposed: f.Unique("no")})
	f.Must(err)
	_, err = f.Store.Intend(f.Context(), c.Lease, registry.Intent{ObjectID: ark, Version: 2, Plan: []byte(`{}`)})
	f.Must(err)
	d := f.Take(registry.Delete, it.ID)
	var locked *registry.LockedError
	if _, err := f.Store.LockObject(f.Context(), d.Lease, ark); !errors.As(err, &locked) {
		f.Fatalf("locked beside an open intent: %v", err)
	}
	_, err = f.Store.MarkDeleting(f.Context(), d.Lease, ark, registry.Remains{})
	f.Is(err, registry.ErrNotFound)
}

func deletionIdentifiers(f *fixture) {
	first := f.Processing(1)[0]
	id := f.Named(first.Lease, "local")
	f.Preserve(first.Lease, id.ARK, 1, registrytest.File("producer/a"))
	f.Done(first.Lease)
	f.Finish(first.Item.ID)
	// Identified before, and not through with the object when it is deleted.
	waiting := f.Processing(1)[0]
	f.Named(waiting.Lease, "local")
	f.Settle(registry.Settlement{Lease: waiting.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage is down"})
	it := f.ApprovedDeletion(id.ARK)
	c := f.Take(registry.Delete, it.ID)
	_, err := f.Store.LockObject(f.Context(), c.Lease, id.ARK)
	f.Must(err)
	_, err = f.Store.MarkDeleting(f.Context(), c.Lease, id.ARK, registry.Remains{Version: 1})
	f.Must(err)
	f.Must(f.Store.RecordDeletion(f.Context(), c.Lease, id.ARK, nil))
	f.Done(c.Lease)
	for _, r := range []registry.IdentifyRequest{
		{Owner: registrytest.Owner, Supplied: id.ARK, Proposed: f.Unique("no")},
		{Owner: registrytest.Owner, LocalIDs: []string{"local"}, Proposed: f.Unique("no")},
	} {
		again := f.Processing(1)[0]
		_, err := f.Store.Identify(f.Context(), again.Lease, r)
		var gone *registry.GoneError
		if !errors.As(err, &gone) || gone.ObjectID != id.ARK || gone.Approved != registrytest.Approver || !gone.ContentFault() {
			f.Errorf("identified %+v: %v", r, err)
		}
	}
	// Its next attempt, with the name that it had.
	f.Command(waiting.Item.ID, registry.ActRequeue, "")
	again := f.Take(registry.Process, waiting.Item.ID)
	var gone *registry.GoneError
	if _, err := f.Store.Identify(f.Context(), again.Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"local"}}); !errors.As(err, &gone) {
		f.Errorf("identified again: %v", err)
	}
}
