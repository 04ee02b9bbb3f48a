package worktest

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func foreignTests() tests {
	return tests{"no_write_of_a_worker_reaches_what_is_anothers": foreignWrites}
}

// victim is what the attempts attack: an object, its files, a job at notify, an upload that a
// cancelled batch may need again.
type victim struct{ ark, job, batch, upload string }

// foreignWrites says for every write of a worker what happens when it names another item's object,
// key or number. A new method fails here until it is listed. The attempts that call these may make
// the same write for their own item.
func foreignWrites(f *fixture) {
	attempts := map[string]func(v victim) error{
		"AddJobs": func(v victim) error {
			jobs := registrytest.NewJobs(1)
			jobs[0].Spec.URL = registry.UploadURL(v.upload)
			_, err := f.Store.AddJobs(f.Context(), f.TakeItem(f.Submit()).Lease, jobs)
			return err
		},
		"ApplyNext": func(victim) error { // names nothing: it is about its own item, which must be of this action
			_, err := f.Store.ApplyNext(f.Context(), f.TakeItem(f.Submit()).Lease)
			return err
		},
		"CloseReport": func(victim) error { // as above
			_, err := f.Store.CloseReport(f.Context(), f.TakeItem(f.Submit()).Lease)
			return err
		},
		"FirstOf": func(victim) error { // as above
			_, err := f.Store.FirstOf(f.Context(), f.Processing(1)[0].Lease, `"v"`)
			return err
		},
		"Identify": func(v victim) error {
			_, err := f.Store.Identify(f.Context(), f.Processing(1)[0].Lease, registry.IdentifyRequest{
				Owner: registrytest.Owner, Proposed: "ark:/99999/mine", Folders: []string{"ark:" + v.ark},
			})
			return err
		},
		"Intend": func(v victim) error {
			l := f.Processing(1)[0].Lease
			f.Named(l, f.Unique("mine"))
			_, err := f.Store.Intend(f.Context(), l, registry.Intent{ObjectID: v.ark, Version: 2, Plan: json.RawMessage(`{}`)})
			return err
		},
		"LockObject": func(v victim) error {
			_, err := f.Store.LockObject(f.Context(), f.Take(registry.Fixity, f.ItemAbout(registry.FixityCheck, f.Object()).ID).Lease, v.ark)
			return err
		},
		"MarkDeleting": func(v victim) error {
			_, err := f.Store.MarkDeleting(f.Context(), f.Take(registry.Delete, f.ApprovedDeletion(f.Object()).ID).Lease, v.ark, registry.Remains{Version: 1})
			return err
		},
		"NoteDelivery": func(v victim) error {
			l := f.TakeItem(f.JobWithCallback(registrytest.Receiver(), registry.Notify)).Lease
			_, err := f.Store.NoteDelivery(f.Context(), l, registry.DeliveryTry{Message: registrytest.CompletedMessage(v.job), Status: 200})
			return err
		},
		"Parents": func(victim) error { // names nothing: its item must be a task
			_, err := f.Store.Parents(f.Context(), f.Processing(1)[0].Lease)
			return err
		},
		"PassOn": func(v victim) error {
			l := f.TakeItem(f.JobWithCallback(registrytest.Receiver(), registry.Notify)).Lease
			return f.Store.PassOn(f.Context(), l, registrytest.CompletedMessage(v.job))
		},
		"ProcessOf": func(victim) error { // names nothing: its item must be a step
			_, err := f.Store.ProcessOf(f.Context(), f.Processing(1)[0].Lease, registry.HistoryRange{})
			return err
		},
		"RecordCheck": func(v victim) error {
			l := f.Take(registry.Fixity, f.ItemAbout(registry.FixityCheck, f.Object()).ID).Lease
			return f.Store.RecordCheck(f.Context(), l, registry.CheckRecord{
				Replicas: []registry.ReplicaCheck{{Storage: registrytest.Storage, Outcome: registry.CheckDamaged}},
				Events:   []registry.Premis{{ID: "e", ObjectID: v.ark, Version: 1, ItemID: l.ItemID, Type: "fixity check", Agent: registrytest.Agent, Outcome: "failure"}},
			})
		},
		"RecordCopy": func(v victim) error {
			ark := f.Object()
			c := f.TakeItem(f.ItemAbout(registry.CopyObject, ark).ID)
			f.LockObject(c.Lease, ark)
			return f.Store.RecordCopy(f.Context(), c.Lease, registry.CopyRecord{
				ObjectID: v.ark, Version: 1, Replicas: []registry.Replica{{Storage: c.Item.Storages[0], VerifiedAt: f.Clock.Now()}},
			})
		},
		"RecordDeletion": func(v victim) error {
			ark := f.Object()
			l := f.Take(registry.Delete, f.ApprovedDeletion(ark).ID).Lease
			f.LockObject(l, ark)
			_, err := f.Store.MarkDeleting(f.Context(), l, ark, registry.Remains{Version: 1})
			f.Must(err)
			return f.Store.RecordDeletion(f.Context(), l, v.ark, nil)
		},
		"RecordFiles": func(v victim) error {
			l := f.announced()
			return f.Store.RecordFiles(f.Context(), l, v.ark, 1, []registry.File{registrytest.File("producer/forged")})
		},
		"RecordRestoration": func(v victim) error {
			l := f.Take(registry.Restore, f.Restore(f.Object()).ItemID).Lease
			_, err := f.Store.RecordRestoration(f.Context(), l, registrytest.RestorationRecord(l, v.ark))
			return err
		},
		"RecordVersion": func(v victim) error {
			l := f.announced()
			return f.Store.RecordVersion(f.Context(), l, registrytest.VersionRecord(f.Fixture, l, v.ark, 1, nil))
		},
		"ReleaseUpload": func(v victim) error {
			f.Upload("mine", "mine")
			batch := f.Submit(func(s *registry.Submission) { s.Spec.Type, s.Spec.URL = registry.FileType, registry.UploadURL("mine") })
			f.Confirm(batch, registry.ActAbort)
			f.Clock.Pass(registrytest.Day)
			_, err := f.Store.ReleaseUpload(f.Context(), f.TakeItem(f.TidyOf(batch).ID).Lease, v.upload)
			return err
		},
		"Reserve": func(victim) error { // names a volume, which is everybody's: what it may take of it has bounds
			return f.Store.Reserve(f.Context(), f.Provisioning(1)[0].Lease, registry.Reservation{Volume: "v", Bytes: 101, Total: 100, Threshold: 1})
		},
		"SaveResult": func(v victim) error {
			_, err := f.Store.SaveResult(f.Context(), f.Processing(1)[0].Lease, registry.ResultARK, json.RawMessage(`{"ark":"`+v.ark+`"}`))
			return err
		},
		"SetState": func(victim) error { // names nothing, and has a bound
			return f.Store.SetState(f.Context(), f.Processing(1)[0].Lease, json.RawMessage(`"`+strings.Repeat("x", registry.MostState)+`"`))
		},
		"Settle": func(v victim) error {
			_, err := f.Store.Settle(f.Context(), registry.Settlement{
				Lease: f.Processing(1)[0].Lease, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultARK: json.RawMessage(`{"ark":"` + v.ark + `"}`)},
			})
			return err
		},
		"StoredFile": func(victim) error { // names nothing: its item must be about a file
			_, err := f.Store.StoredFile(f.Context(), f.Processing(1)[0].Lease)
			return err
		},
	}
	if diff := cmp.Diff(leased(), slices.Sorted(maps.Keys(attempts))); diff != "" {
		f.Fatalf("the writes of workers, and those that are judged here:\n%s", diff)
	}
	v := f.victim()
	before := f.look(v)
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		err := attempts[name](v)
		if !errors.Is(err, registry.ErrInvalid) && !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrIntentOpen) && !errors.As(err, new(*registry.NoSpaceError)) {
			f.Errorf("%s about what is another's: %v, want that it is refused", name, err)
		}
		if diff := cmp.Diff(before, f.look(v)); diff != "" {
			f.Errorf("%s changed what is another's:\n%s", name, diff)
		}
	}
}

// announced returns a job that announced the first version of its own object.
func (f *fixture) announced() registry.Lease {
	f.Helper()
	l := f.Processing(1)[0].Lease
	f.Intend(l, f.Named(l, f.Unique("mine")).ARK, 1, `{}`)
	return l
}

func (f *fixture) victim() (v victim) {
	f.Helper()
	v.ark, v.upload = f.Object(), "theirs"
	v.job = f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	f.TakeItem(v.job)
	f.Upload(v.upload, v.upload)
	v.batch = f.Submit(func(s *registry.Submission) {
		s.Spec.Type, s.Spec.URL = registry.FileType, registry.UploadURL(v.upload)
	})
	f.Command(v.batch, registry.ActCancel, "")
	return v
}

// seen is all that could change of a victim.
type seen struct {
	Object   registry.Object
	Files    []registry.File
	Premis   []registry.Premis
	Items    []registry.WorkItem
	Events   [][]string
	Told     []registry.Delivery
	Upload   registry.Upload
	Dropped  []registry.DroppedUpload
	Attempts []registry.Attempt
}

func (f *fixture) look(v victim) (s seen) {
	f.Helper()
	var err [5]error
	s.Object, err[0] = f.Store.Object(f.Context(), v.ark)
	s.Files, err[1] = f.Store.Files(f.Context(), v.ark, 0, "", 10)
	var page registry.Page[registry.Premis]
	page, err[2] = f.Store.PremisEvents(f.Context(), v.ark, "", 10)
	s.Premis, s.Told = page.Rows, f.Deliveries(v.job)
	s.Upload, err[3] = f.Store.UploadByID(f.Context(), v.upload)
	s.Dropped, err[4] = f.Store.DroppedUploads(f.Context())
	f.Must(errors.Join(err[:]...))
	for _, id := range []string{v.job, v.batch} {
		s.Items, s.Events = append(s.Items, f.Item(id)), append(s.Events, f.Events(id))
	}
	s.Attempts = f.AttemptsOf(v.job)
	return s
}
