package registrytest

import (
	"encoding/json"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func fenceTests() []test {
	return []test{
		{"I3_a_superseded_worker_changes_nothing", fenceSuperseded},
		{"I3_a_settled_attempt_changes_nothing", fenceSettled},
		{"I3_an_attempt_that_never_was_changes_nothing", fenceUnknown},
	}
}

// fencedWrites are all writes of a worker, each as it would be after a good claim.
func fencedWrites() map[string]func(f *fixture, l registry.Lease) error {
	return map[string]func(f *fixture, l registry.Lease) error{
		"Settle": func(f *fixture, l registry.Lease) error {
			_, err := f.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Error: "zombie"})
			return err
		},
		"SaveResult": func(f *fixture, l registry.Lease) error {
			_, err := f.SaveResult(f.Context(), l, "zombie", json.RawMessage(`1`))
			return err
		},
		"AddJobs": func(f *fixture, l registry.Lease) error {
			_, err := f.AddJobs(f.Context(), l, newJobs(1))
			return err
		},
		"FirstOf": func(f *fixture, l registry.Lease) error {
			_, err := f.FirstOf(f.Context(), l, `"zombie"`)
			return err
		},
		"Reserve": func(f *fixture, l registry.Lease) error {
			return f.Reserve(f.Context(), l, registry.Reservation{Volume: "v", Bytes: 1, Total: 100, Threshold: 1})
		},
		"ApplyNext": func(f *fixture, l registry.Lease) error {
			_, err := f.ApplyNext(f.Context(), l)
			return err
		},
		"CloseReport": func(f *fixture, l registry.Lease) error {
			_, err := f.CloseReport(f.Context(), l)
			return err
		},
		"Identify": func(f *fixture, l registry.Lease) error {
			_, err := f.Identify(f.Context(), l, registry.IdentifyRequest{Owner: owner, LocalIDs: []string{"zombie"}, Proposed: "ark:/99999/zombie"})
			return err
		},
		"Intend": func(f *fixture, l registry.Lease) error {
			_, err := f.Intend(f.Context(), l, registry.Intent{ObjectID: "ark:/99999/zombie", Version: 1, Plan: json.RawMessage(`{}`)})
			return err
		},
		"RecordFiles": func(f *fixture, l registry.Lease) error {
			return f.RecordFiles(f.Context(), l, "ark:/99999/zombie", 1, []registry.File{{Path: "zombie"}})
		},
		"RecordVersion": func(f *fixture, l registry.Lease) error {
			return f.RecordVersion(f.Context(), l, registry.VersionRecord{ObjectID: "ark:/99999/zombie", Version: 1})
		},
	}
}

// refuses tries every write under l and compares the item and its history.
func (f *fixture) refuses(l registry.Lease, id string) {
	f.Helper()
	type all struct {
		Item     registry.WorkItem
		Attempts []registry.Attempt
		Events   []string
		Jobs     []string
	}
	look := func() all { return all{f.item(id), f.attemptsOf(id), f.events(id), f.children(id)} }
	before := look()
	for name, write := range fencedWrites() {
		if err := write(f, l); err == nil {
			f.Errorf("%s was accepted", name)
		} else {
			f.is(err, registry.ErrClaimLost)
		}
		if diff := cmp.Diff(before, look()); diff != "" {
			f.Errorf("%s changed what it may not touch:\n%s", name, diff)
		}
	}
	if lost := f.renew(beat(l)); !has(lost, l) {
		f.Error("Renew did not say that the attempt is lost")
	}
	objects, err := f.Objects(f.Context(), registry.ObjectQuery{})
	f.must(err)
	if len(objects.Rows) != 0 {
		f.Errorf("objects %+v", objects.Rows)
	}
}

func fenceSuperseded(f *fixture) {
	id := f.submit()
	stale := f.take(registry.Expand, id).Lease
	f.sweep(2 * lease)
	f.take(registry.Expand, id)
	f.refuses(stale, id)
}

func fenceSettled(f *fixture) {
	id := f.submit()
	l := f.take(registry.Expand, id).Lease
	f.done(l)
	f.refuses(l, id)
}

func fenceUnknown(f *fixture) {
	id := f.submit()
	f.take(registry.Expand, id)
	f.refuses(registry.Lease{ItemID: id, N: 2}, id)
	f.refuses(registry.Lease{ItemID: "unknown", N: 1}, id)
}
