package catalogtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func evidenceTests() tests {
	return tests{
		"routine_events_wait_for_others":           routineWaits,
		"anything_else_is_written_at_once":         urgentAtOnce,
		"many_routine_events_wait_no_longer":       manyWait,
		"a_storage_that_lacks_events_is_told":      placesTold,
		"a_new_version_has_the_events_before_it":   receiptHas,
		"a_deleted_object_leaves_nothing":          deletedLeaves,
		"only_events_that_are_recorded_are_signed": eventsSigned,
		"those_who_wait_longest_come_first":        waitingInOrder,
	}
}

const within = 30 * registrytest.Day

// waiting lists the objects that wait, two at a time.
func (f *fixture) waiting() (out []string) {
	f.Helper()
	for after := ""; ; {
		page, err := f.Store.WaitingEvidence(f.Context(), registry.WaitingQuery{Within: within, After: after, Limit: 2})
		f.Must(err)
		for _, w := range page.Rows {
			text := w.ObjectID
			if w.Deleted {
				text += " deleted"
			}
			out = append(out, text)
		}
		if after = page.Next; after == "" {
			return out
		}
	}
}

func (f *fixture) waits(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.waiting()); diff != "" {
		f.Fatalf("waiting (-want +got):\n%s", diff)
	}
}

// checked records events of a check of an object's file.
func (f *fixture) checked(ark string, outcomes ...string) {
	f.Helper()
	it := f.ItemAbout(registry.FixityCheck, ark)
	l := f.Take(registry.Fixity, it.ID).Lease
	r := registry.CheckRecord{Replicas: []registry.ReplicaCheck{{Storage: registrytest.Storage, Outcome: registry.CheckGood}}}
	for i, outcome := range outcomes {
		r.Events = append(r.Events, registry.Premis{
			ID: fmt.Sprint(it.ID, i), ObjectID: ark, Version: 1, ItemID: it.ID, Type: "fixity check", At: f.Clock.Now(), Agent: registrytest.Agent, Outcome: outcome,
		})
	}
	f.Must(f.Store.RecordCheck(f.Context(), l, r))
	f.Must(f.Store.RecordCheck(f.Context(), l, r)) // a repeat
	f.Done(l)
}

// places tells how far the events of an object lie where.
func (f *fixture) places(ark string) string {
	f.Helper()
	p, err := f.Store.EvidencePlaces(f.Context(), ark)
	f.Must(err)
	return fmt.Sprint(p.Last, p.Places)
}

// kept notes that a storage has the events up to one.
func (f *fixture) kept(ark string, seq int64, segments int, among ...string) {
	f.Helper()
	f.Must(f.Store.BeginEvidence(f.Context(), ark, []string{registrytest.Storage}))
	f.Must(f.Store.KeptEvidence(f.Context(), registry.KeptEvidence{
		ObjectID: ark, Places: []registry.EvidencePlace{{Storage: registrytest.Storage, Seq: seq, Segments: segments}}, Among: append(among, registrytest.Storage),
	}))
}

func routineWaits(f *fixture) {
	ark := f.Object()
	f.waits()
	f.checked(ark, "success")
	f.Clock.Pass(within - time.Second)
	f.checked(ark, "success")
	f.waits()
	f.Clock.Pass(2 * time.Second)
	f.waits(ark)
	f.kept(ark, 3, 1)
	f.waits()
	f.checked(ark, "success")
	f.waits()
	f.Clock.Pass(within + time.Second)
	f.waits(ark)
}

func urgentAtOnce(f *fixture) {
	ark, other := f.Object(), f.Object()
	f.checked(ark, "success", "failure")
	f.waits(ark)
	f.checked(ark, "success") // a routine event changes nothing
	f.waits(ark)
	f.Must(f.Store.SetTerms(f.Context(), other, registry.Terms{PreservationLevel: "bits"}, "because", "admin"))
	f.waits(slices.Sorted(slices.Values([]string{ark, other}))...)
}

func manyWait(f *fixture) {
	ark := f.Object()
	f.checked(ark, slices.Repeat([]string{"success"}, 99)...)
	f.waits()
	f.checked(ark, "success")
	f.waits(ark)
}

func waitingInOrder(f *fixture) {
	var want []string
	for range 5 {
		ark := f.Object()
		f.checked(ark, "success")
		want = append(want, ark)
		f.Clock.Pass(time.Second)
	}
	f.Clock.Pass(within)
	f.waits(want...)
}

func placesTold(f *fixture) {
	ark := f.Object()
	if got, want := f.places(ark), "1 [{storage 1 1 0 false}]"; got != want {
		f.Errorf("at first %s, want %s", got, want)
	}
	f.checked(ark, "failure", "success")
	f.Is(f.Store.BeginEvidence(f.Context(), "ark:/99999/none", []string{registrytest.Storage}), registry.ErrNotFound)
	f.Must(f.Store.BeginEvidence(f.Context(), ark, []string{registrytest.Storage}))
	if got, want := f.places(ark), "3 [{storage 1 1 0 true}]"; got != want {
		f.Errorf("begun %s, want %s", got, want)
	}
	f.kept(ark, 2, 1)
	f.waits(ark)
	if got, want := f.places(ark), "3 [{storage 1 2 1 true}]"; got != want {
		f.Errorf("one is kept: %s, want %s", got, want)
	}
	f.Must(f.Store.KeptEvidence(f.Context(), registry.KeptEvidence{ObjectID: ark, Among: []string{"another"}}))
	f.waits() // nobody who runs knows its storage
	f.checked(ark, "failure")
	f.kept(ark, 4, 2)
	f.kept(ark, 3, 2) // a late call
	f.waits()
	if got, want := f.places(ark), "4 [{storage 1 4 2 true}]"; got != want {
		f.Errorf("all are kept: %s, want %s", got, want)
	}
}

func receiptHas(f *fixture) {
	c := f.Processing(2)
	ark := f.Named(c[0].Lease, "x").ARK
	f.Preserve(c[0].Lease, ark, 1, registrytest.File(registrytest.FilePath))
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	f.checked(ark, "failure")
	f.Named(c[1].Lease, "x")
	f.Preserve(c[1].Lease, ark, 2, registrytest.File("b"), registrytest.File(registrytest.FilePath))
	if got, want := f.places(ark), "3 [{storage 2 3 0 false}]"; got != want {
		f.Errorf("places %s, want %s", got, want)
	}
	f.waits(ark)
	f.Must(f.Store.KeptEvidence(f.Context(), registry.KeptEvidence{ObjectID: ark, Among: []string{registrytest.Storage}}))
	f.waits()
}

func deletedLeaves(f *fixture) {
	ark := f.Object()
	f.checked(ark, "failure")
	f.Must(f.Store.BeginEvidence(f.Context(), ark, []string{registrytest.Storage}))
	it := f.ApprovedDeletion(ark)
	l := f.Take(registry.Delete, it.ID).Lease
	f.LockObject(l, ark)
	_, err := f.Store.MarkDeleting(f.Context(), l, ark, registry.Remains{Version: 1})
	f.Must(err)
	f.waits() // until it is deleted
	var gone *registry.GoneError
	if err := f.Store.BeginEvidence(f.Context(), ark, []string{"another"}); !errors.As(err, &gone) {
		f.Errorf("begun: %v", err)
	}
	if err := f.Store.KeptEvidence(f.Context(), registry.KeptEvidence{ObjectID: ark}); !errors.As(err, &gone) {
		f.Errorf("kept: %v", err)
	}
	f.Must(f.Store.RecordDeletion(f.Context(), l, ark, []registry.Premis{{
		ID: "deleted", ObjectID: ark, ItemID: it.ID, Type: "deletion", At: f.Clock.Now(), Agent: registrytest.Agent, Outcome: "success",
	}}))
	f.waits(ark + " deleted")
	if begun, err := f.Store.BegunEvidence(f.Context(), ark); err != nil || !slices.Equal(begun, []string{registrytest.Storage}) {
		f.Errorf("begun %q, %v", begun, err)
	}
	f.Must(f.Store.ForgetEvidence(f.Context(), ark))
	f.waits()
	if begun, err := f.Store.BegunEvidence(f.Context(), ark); err != nil || len(begun) > 0 {
		f.Errorf("forgotten: begun %q, %v", begun, err)
	}
}

func eventsSigned(f *fixture) {
	ark := f.Object()
	f.checked(ark, "failure", "success")
	page, err := f.Store.PremisEvents(f.Context(), ark, "", 10)
	f.Must(err)
	head, err := f.Store.SignEvents(f.Context(), ark, 2, 3)
	f.Must(err)
	again, err := f.Store.SignEvents(f.Context(), ark, 2, 3)
	f.Must(err)
	text := slices.Clone(head)
	for _, e := range page.Rows[1:] {
		text = append(text, receipt.EventOf(e).Line(e.Hash)...)
	}
	keys, err := f.Store.ReceiptKeys(f.Context())
	f.Must(err)
	if len(keys) != 1 {
		f.Fatalf("keys %+v", keys)
	}
	key, err := receipt.ParsePublicKey(keys[0].PublicKey)
	f.Must(err)
	result, err := receipt.VerifyEvents(bytes.NewReader(text), receipt.Options{Keys: []receipt.PublicKey{key}})
	f.Must(err)
	if !result.Valid() || !result.Trusted || result.Events != 2 || !slices.Equal(head, again) {
		f.Errorf("%+v\n%s", result, text)
	}
	for _, span := range [][2]int64{{0, 1}, {3, 2}, {3, 4}, {5, 5}} {
		if _, err := f.Store.SignEvents(f.Context(), ark, span[0], span[1]); !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrInvalid) {
			f.Errorf("events %d: %v", span, err)
		}
	}
}
