package catalogtest

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func identifyTests() tests {
	return tests{
		"R08_I10_minted_once_whatever_is_repeated":              mintedOnce,
		"R08_a_local_id_finds_its_object":                       localIDFinds,
		"R08_local_ids_are_an_owners_own":                       localIDsOfOwner,
		"R08_two_items_with_the_same_new_local_id":              sameNewLocalID,
		"R08_a_supplied_ark_is_taken":                           suppliedARK,
		"R08_a_mismatch_is_named":                               mismatch,
		"another_owner_s_object_cannot_be_taken_over":           otherOwner,
		"R08_a_taken_name_is_not_given_again":                   taken,
		"I10_the_name_survives_failure_and_requeue":             nameSurvives,
		"R08_the_item_that_EZID_knows_a_name_by":                ezidItem,
		"R08_a_refused_name_is_replaced":                        refusedName,
		"R08_a_refused_name_is_replaced_for_whoever_adopted_it": refusedAdopted,
		"R08_a_name_with_a_version_stays":                       refusedTooLate,
		"what_must_exist_and_does_not":                          mustExist,
	}
}

func mintedOnce(f *fixture) {
	c := f.Processing(1)[0]
	want := registry.Identity{ARK: "ark:/99999/first", Minted: true}
	r := registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"a", "b"}, Proposed: want.ARK}
	if got := f.Identify(c.Lease, r); got != want {
		f.Fatalf("identity %+v, want %+v", got, want)
	}
	r.Proposed = "ark:/99999/second"
	if got := f.Identify(c.Lease, r); got != want {
		f.Errorf("the repeat got %+v, want %+v", got, want)
	}
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	if got := f.Identify(f.TakeItem(c.Item.ID).Lease, r); got != want {
		f.Errorf("the next attempt got %+v, want %+v", got, want)
	}
	var kept registry.Identity
	f.Must(json.Unmarshal(f.Item(c.Item.ID).Results["ark"], &kept))
	if diff := cmp.Diff(want, kept); diff != "" {
		f.Errorf("results[ark] (-want +got):\n%s", diff)
	}
}

func localIDFinds(f *fixture) {
	c := f.Processing(3)
	first := f.Identify(c[0].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p1"})
	f.Preserve(c[0].Lease, first.ARK, 1)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	got := f.Identify(c[1].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x", "y"}, Proposed: "ark:/99999/p2"})
	if want := (registry.Identity{ARK: first.ARK, Head: 1}); got != want {
		f.Fatalf("identity %+v, want %+v", got, want)
	}
	f.Done(c[1].Lease)
	f.Finish(c[1].Item.ID)
	// The new local id belongs to the object from now on, too.
	got = f.Identify(c[2].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"y"}, Proposed: "ark:/99999/p3"})
	if got.ARK != first.ARK {
		f.Errorf("identity %+v, want %s", got, first.ARK)
	}
}

func localIDsOfOwner(f *fixture) {
	var c []registry.Claim
	for _, owner := range []string{"o:1", "o"} {
		f.Collection(registrytest.Mnemonic, registry.Profile{Owner: owner})
		c = append(c, f.Processing(1)...)
	}
	a := f.Identify(c[0].Lease, registry.IdentifyRequest{Owner: "o:1", LocalIDs: []string{"2:x"}, Proposed: "ark:/99999/p1"})
	b := f.Identify(c[1].Lease, registry.IdentifyRequest{Owner: "o", LocalIDs: []string{"1:2:x"}, Proposed: "ark:/99999/p2"})
	if a.ARK == b.ARK {
		f.Errorf("two owners' ids name one object %s", a.ARK)
	}
}

func sameNewLocalID(f *fixture) {
	c := f.Processing(2)
	first := f.Identify(c[0].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p1"})
	f.Waits(c[1].Lease, c[0].Lease, "x")
	f.Preserve(c[0].Lease, first.ARK, 1)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	second := f.Identify(c[1].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p2"})
	if second.ARK != first.ARK || second.Minted || second.Head != 1 {
		f.Errorf("the second item got %+v, want version 2 of %s", second, first.ARK)
	}
}

func suppliedARK(f *fixture) {
	c := f.Processing(2)
	r := registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: "ark:/13030/given", LocalIDs: []string{"x"}, Proposed: "ark:/99999/p1"}
	if got, want := f.Identify(c[0].Lease, r), (registry.Identity{ARK: "ark:/13030/given"}); got != want {
		f.Errorf("identity %+v, want %+v", got, want)
	}
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	if got := f.Named(c[1].Lease, "x"); got.ARK != "ark:/13030/given" || got.Minted {
		f.Errorf("its local id names %+v", got)
	}
}

func mismatch(f *fixture) {
	c := f.Processing(3)
	f.Identify(c[0].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p1"})
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	r := registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"new", "x"}, Supplied: "ark:/99999/other"}
	_, err := f.Store.Identify(f.Context(), c[1].Lease, r)
	var m *registry.IdentifierMismatch
	if !errors.As(err, &m) {
		f.Fatalf("error %v, want a mismatch", err)
	}
	if want := (registry.IdentifierMismatch{LocalID: "x", Known: "ark:/99999/p1", Given: "ark:/99999/other"}); *m != want {
		f.Errorf("mismatch %+v, want %+v", *m, want)
	}
	if got := f.Item(c[1].Item.ID).Results["ark"]; got != nil {
		f.Errorf("results[ark]=%s", got)
	}
	// And nothing of it stuck: no lock, no binding.
	if got := f.Identify(c[2].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"new"}, Proposed: "ark:/99999/p2"}); !got.Minted {
		f.Errorf("identity %+v", got)
	}
}

func otherOwner(f *fixture) {
	c := f.Processing(1)
	f.Identify(c[0].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/p1"})
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: "ark:/99999/thief"})
	c = append(c, f.Processing(1)...)
	_, err := f.Store.Identify(f.Context(), c[1].Lease, registry.IdentifyRequest{Owner: "ark:/99999/thief", Supplied: "ark:/99999/p1"})
	var m *registry.OwnerMismatch
	if !errors.As(err, &m) || !m.ContentFault() || m.ARK != "ark:/99999/p1" {
		f.Fatalf("error %v, want an owner mismatch", err)
	}
	if got := f.Item(c[1].Item.ID).Results["ark"]; got != nil {
		f.Errorf("results[ark]=%s", got)
	}
}

func taken(f *fixture) {
	c := f.Processing(3)
	f.Identify(c[0].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/p1"})
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	_, err := f.Store.Identify(f.Context(), c[1].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/p1"})
	f.Is(err, registry.ErrTaken)
	f.Identify(c[1].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: "ark:/99999/p2"})
	f.Done(c[1].Lease)
	f.Finish(c[1].Item.ID)
	_, err = f.Store.Identify(f.Context(), c[2].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/p2"})
	f.Is(err, registry.ErrTaken)
	if got := f.Identify(c[2].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/p3"}); got.ARK != "ark:/99999/p3" {
		f.Errorf("identity %+v", got)
	}
}

func nameSurvives(f *fixture) {
	c := f.Processing(1)[0]
	want := f.Named(c.Lease, "x")
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	f.Command(c.Item.ID, registry.ActRequeue, registry.Estimate)
	f.Bring(c.Item.ID, registry.Process)
	if got := f.Named(f.TakeItem(c.Item.ID).Lease, "x"); got != want {
		f.Errorf("identity %+v, want %+v", got, want)
	}
}

// ezidItem: EZID knows a name by the item that it was chosen for, whichever item uses it.
func ezidItem(f *fixture) {
	c := f.Processing(4)
	r := registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p1", EZID: true}
	want := registry.Identity{ARK: "ark:/99999/p1", Minted: true, EZIDItem: c[0].Item.ID}
	for range 2 {
		if got := f.Identify(c[0].Lease, r); got != want {
			f.Errorf("identity %+v, want %+v", got, want)
		}
	}
	f.Preserve(c[0].Lease, want.ARK, 1)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	r.Proposed, want.Minted, want.Head = "ark:/99999/p2", false, 1
	if got := f.Identify(c[1].Lease, r); got != want {
		f.Errorf("by its local id: %+v, want %+v", got, want)
	}
	f.Done(c[1].Lease)
	f.Finish(c[1].Item.ID)
	if got := f.Identify(c[2].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: want.ARK, EZID: true}); got != want {
		f.Errorf("by its ARK: %+v, want %+v", got, want)
	}
	// What came with a deposit is not ours to keep there.
	r = registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: "ark:/99999/given", Proposed: "ark:/99999/p3", EZID: true}
	if got := f.Identify(c[3].Lease, r); got != (registry.Identity{ARK: "ark:/99999/given"}) {
		f.Errorf("supplied: %+v", got)
	}
}

func refusedName(f *fixture) {
	c := f.Processing(2)
	r := registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x", "y"}, Proposed: "ark:/99999/p1", EZID: true}
	f.Identify(c[0].Lease, r)
	r.Proposed, r.Refused = "ark:/99999/p2", "ark:/99999/p1"
	want := registry.Identity{ARK: "ark:/99999/p2", Minted: true, EZIDItem: c[0].Item.ID}
	for range 2 { // the second time nothing has the refused name any more
		if got := f.Identify(c[0].Lease, r); got != want {
			f.Fatalf("identity %+v, want %+v", got, want)
		}
		r.Proposed = "ark:/99999/p3"
	}
	f.Preserve(c[0].Lease, want.ARK, 1)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	if got := f.Named(c[1].Lease, "y"); got.ARK != want.ARK || got.Head != 1 {
		f.Errorf("the local id leads to %+v", got)
	}
}

// refusedAdopted: two items share a name by their local id. When one of them is refused the name,
// both lose it.
func refusedAdopted(f *fixture) {
	c := f.Processing(2)
	r := registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p1", EZID: true}
	f.Identify(c[0].Lease, r)
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	r.Proposed = "ark:/99999/p2"
	if got, want := f.Identify(c[1].Lease, r), (registry.Identity{ARK: "ark:/99999/p1", EZIDItem: c[0].Item.ID}); got != want {
		f.Fatalf("identity %+v, want %+v", got, want)
	}
	r.Refused = "ark:/99999/p1"
	want := f.Identify(c[1].Lease, r)
	if want != (registry.Identity{ARK: "ark:/99999/p2", Minted: true, EZIDItem: c[1].Item.ID}) {
		f.Fatalf("identity %+v", want)
	}
	f.Preserve(c[1].Lease, want.ARK, 1)
	f.Done(c[1].Lease)
	f.Finish(c[1].Item.ID)
	f.Command(c[0].Item.ID, registry.ActRequeue, "")
	r.Proposed, r.Refused, want.Minted, want.Head = "ark:/99999/p3", "", false, 1
	if got := f.Identify(f.TakeItem(c[0].Item.ID).Lease, r); got != want {
		f.Errorf("the first item got %+v, want %+v", got, want)
	}
}

func refusedTooLate(f *fixture) {
	c := f.Processing(1)[0]
	r := registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/p1", EZID: true}
	f.Identify(c.Lease, r)
	f.Intend(c.Lease, "ark:/99999/p1", 1, `{}`)
	r.Proposed, r.Refused = "ark:/99999/p2", "ark:/99999/p1"
	if got := f.Identify(c.Lease, r); got.ARK != "ark:/99999/p1" {
		f.Errorf("an announced version lost its name: %+v", got)
	}
}

// mustExist: an update of an object that does not exist is refused and takes no name.
func mustExist(f *fixture) {
	c := f.Processing(3)
	for name, r := range map[string]registry.IdentifyRequest{
		`local id "x"`:       {Owner: registrytest.Owner, LocalIDs: []string{"x", "y"}, Proposed: "ark:/99999/p1", Existing: true},
		"ark:/99999/nothing": {Owner: registrytest.Owner, LocalIDs: []string{"x"}, Supplied: "ark:/99999/nothing", Existing: true},
	} {
		_, err := f.Store.Identify(f.Context(), c[0].Lease, r)
		var none *registry.NoObject
		if !errors.As(err, &none) || !none.ContentFault() || !strings.Contains(none.Error(), name) || !strings.Contains(none.Error(), "--update") {
			f.Errorf("%s: %v, want that there is no object", name, err)
		}
	}
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	if got := f.Named(c[1].Lease, "x"); !got.Minted {
		f.Errorf("its local id leads to %+v", got)
	}
	// A name without a version is no object.
	f.Done(c[1].Lease)
	f.Finish(c[1].Item.ID)
	_, err := f.Store.Identify(f.Context(), c[2].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Existing: true})
	if !errors.As(err, new(*registry.NoObject)) {
		f.Errorf("a name without a version: %v", err)
	}
}
