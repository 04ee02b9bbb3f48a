package worktest

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func fenceTests() tests {
	return tests{
		"I3_a_superseded_worker_changes_nothing":         fenceSuperseded,
		"I3_a_settled_attempt_changes_nothing":           fenceSettled,
		"I3_an_attempt_that_never_was_changes_nothing":   fenceUnknown,
		"I3_an_attempt_of_another_token_changes_nothing": fenceToken,
		"I3_all_writes_of_a_worker_are_tried":            fenceAll,
	}
}

// fencedWrites returns all writes of a worker, as they would be after a claim.
func fencedWrites() map[string]func(f *fixture, l registry.Lease) error {
	return map[string]func(f *fixture, l registry.Lease) error{
		"Settle": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Error: "zombie"})
			return err
		},
		"SaveResult": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.SaveResult(f.Context(), l, "zombie", json.RawMessage(`1`))
			return err
		},
		"SetState": func(f *fixture, l registry.Lease) error {
			return f.Store.SetState(f.Context(), l, json.RawMessage(`"zombie"`))
		},
		"AddJobs": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.AddJobs(f.Context(), l, registrytest.NewJobs(1))
			return err
		},
		"FirstOf": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.FirstOf(f.Context(), l, `"zombie"`)
			return err
		},
		"Reserve": func(f *fixture, l registry.Lease) error {
			return f.Store.Reserve(f.Context(), l, registry.Reservation{Volume: "v", Bytes: 1, Total: 100, Threshold: 1})
		},
		"ApplyNext": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.ApplyNext(f.Context(), l)
			return err
		},
		"CloseReport": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.CloseReport(f.Context(), l)
			return err
		},
		"Identify": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.Identify(f.Context(), l, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"zombie"}, Proposed: "ark:/99999/zombie"})
			return err
		},
		"Intend": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.Intend(f.Context(), l, registry.Intent{ObjectID: "ark:/99999/zombie", Version: 1, Plan: json.RawMessage(`{}`)})
			return err
		},
		"RecordFiles": func(f *fixture, l registry.Lease) error {
			return f.Store.RecordFiles(f.Context(), l, "ark:/99999/zombie", 1, []registry.File{{Path: "zombie"}})
		},
		"RecordVersion": func(f *fixture, l registry.Lease) error {
			return f.Store.RecordVersion(f.Context(), l, registry.VersionRecord{ObjectID: "ark:/99999/zombie", Version: 1})
		},
		"ReleaseUpload": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.ReleaseUpload(f.Context(), l, "zombie")
			return err
		},
		"LockObject": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.LockObject(f.Context(), l, "ark:/99999/zombie")
			return err
		},
		"MarkDeleting": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.MarkDeleting(f.Context(), l, "ark:/99999/zombie", registry.Remains{Version: 1})
			return err
		},
		"RecordDeletion": func(f *fixture, l registry.Lease) error {
			return f.Store.RecordDeletion(f.Context(), l, "ark:/99999/zombie", nil)
		},
		"StoredFile": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.StoredFile(f.Context(), l)
			return err
		},
		"RecordCheck": func(f *fixture, l registry.Lease) error {
			return f.Store.RecordCheck(f.Context(), l, registry.CheckRecord{})
		},
		"RecordCopy": func(f *fixture, l registry.Lease) error {
			return f.Store.RecordCopy(f.Context(), l, registry.CopyRecord{
				ObjectID: "ark:/99999/zombie", Version: 1, Replicas: []registry.Replica{{Storage: "zombie"}},
			})
		},
		"RecordRestoration": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.RecordRestoration(f.Context(), l, registrytest.RestorationRecord(l, "ark:/99999/zombie"))
			return err
		},
		"NoteDelivery": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.NoteDelivery(f.Context(), l, registry.DeliveryTry{Message: registrytest.CompletedMessage(l.ItemID), Status: 200})
			return err
		},
		"ProcessOf": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.ProcessOf(f.Context(), l, registry.HistoryRange{})
			return err
		},
		"Parents": func(f *fixture, l registry.Lease) error {
			_, err := f.Store.Parents(f.Context(), l)
			return err
		},
		"PassOn": func(f *fixture, l registry.Lease) error {
			return f.Store.PassOn(f.Context(), l, registrytest.CompletedMessage(l.ItemID))
		},
	}
}

// leased returns the methods of a worker that take a lease, without Renew, which reports each lost
// lease.
func leased() (names []string) {
	asked, lease := reflect.TypeFor[registry.ForWorkers](), reflect.TypeFor[registry.Lease]()
	for i := range asked.NumMethod() {
		m := asked.Method(i)
		for n := range m.Type.NumIn() {
			of := m.Type.In(n)
			named := of == lease
			if of.Kind() == reflect.Struct && !named {
				f, ok := of.FieldByName("Lease")
				named = ok && f.Type == lease
			}
			if named {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// fenceAll fails for a new write that no test of this file tries.
func fenceAll(f *fixture) {
	if diff := cmp.Diff(leased(), slices.Sorted(maps.Keys(fencedWrites()))); diff != "" {
		f.Errorf("the writes of workers, and those that are tried under a foreign attempt:\n%s", diff)
	}
}

// fenceToken: the number of another token's attempt is useless. Over HTTP the Registry knows the
// token; the API's own tests cover that.
func fenceToken(f *fixture) {
	if _, remote := f.Store.(registrytest.Acting); remote {
		f.Skip("a lease's token does not travel")
	}
	id := f.Submit()
	r := f.Request(registry.Expand, id)
	r.Token = "mine"
	c, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	l := c.Lease
	l.Token = "theirs"
	f.refuses(l, id)
}

// refuses tries every write under a lease, and checks that the item and its history stay the same.
func (f *fixture) refuses(l registry.Lease, id string) {
	f.Helper()
	type all struct {
		Item     registry.WorkItem
		Attempts []registry.Attempt
		Events   []string
		Jobs     []string
	}
	look := func() all { return all{f.Item(id), f.AttemptsOf(id), f.Events(id), f.Children(id)} }
	before := look()
	for name, write := range fencedWrites() {
		if err := write(f, l); err == nil {
			f.Errorf("%s was accepted", name)
		} else if l.Token == "" || !errors.Is(err, registry.ErrInvalid) { // of another token's, the item's action may be told
			f.Is(err, registry.ErrClaimLost)
		}
		if diff := cmp.Diff(before, look()); diff != "" {
			f.Errorf("%s changed what it may not touch:\n%s", name, diff)
		}
	}
	if lost := f.Renew(registrytest.Beat(l)); !slices.Contains(lost, l) {
		f.Error("Renew did not say that the attempt is lost")
	}
	objects, err := f.Store.Objects(f.Context(), registry.ObjectQuery{})
	f.Must(err)
	if len(objects.Rows) != 0 {
		f.Errorf("objects %+v", objects.Rows)
	}
}

func fenceSuperseded(f *fixture) {
	id := f.Submit()
	stale := f.Take(registry.Expand, id).Lease
	f.Sweep(2 * registrytest.Lease)
	f.Take(registry.Expand, id)
	f.refuses(stale, id)
}

func fenceSettled(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	f.Done(l)
	f.refuses(l, id)
}

func fenceUnknown(f *fixture) {
	id := f.Submit()
	f.Take(registry.Expand, id)
	f.refuses(registry.Lease{ItemID: id, N: 2}, id)
	f.refuses(registry.Lease{ItemID: "unknown", N: 1}, id)
}
