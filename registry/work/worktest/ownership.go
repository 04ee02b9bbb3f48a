package worktest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// ownTests: an attempt's write may name only what its own item is about, so the secret of one
// worker does not open other items.
func ownTests() tests {
	return tests{
		"a_job_names_no_other_upload":                        ownUpload,
		"a_job_is_submitted_as_its_batch_was":                ownSubmission,
		"a_restore_lies_where_its_attempt_put_it":            ownPlace,
		"a_message_goes_to_its_collections_callback":         ownCallback,
		"a_version_is_of_its_items_collection_and_owner":     ownVersion,
		"events_are_of_the_items_object_and_by_the_software": ownEvents,
		"a_repeated_request_is_of_its_stage_and_token":       ownRequest,
		"what_the_registry_decides_is_no_result_of_a_step":   ownResult,
		"no_worker_puts_an_item_in_front_of_others":          ownPriority,
		"an_attempt_tells_what_its_step_may":                 ownTold,
		"a_token_hears_of_what_was_taken_from_it":            ownWithdrawn,
	}
}

// invalid checks for ErrInvalid with words that name the fault.
func (f *fixture) invalid(err error, names string) {
	f.Helper()
	if !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), names) {
		f.Errorf("error %v, want one that it is invalid and that names %q", err, names)
	}
}

func ownUpload(f *fixture) {
	const mine, theirs = "mine", "theirs"
	for _, id := range []string{mine, theirs} {
		f.Upload(id, id)
	}
	batch := f.Submit(func(s *registry.Submission) { s.Spec.Type, s.Spec.URL = registry.FileType, registry.UploadURL(mine) })
	c := f.TakeItem(batch)
	add := func(address, fault string) error {
		jobs := registrytest.NewJobs(1)
		jobs[0].Spec.URL, jobs[0].Fault = address, fault
		_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
		return err
	}
	for _, address := range []string{registry.UploadURL(theirs), "UPLOAD:" + theirs, "Upload:" + mine, registry.UploadURL("")} {
		f.invalid(add(address, ""), batch)
	}
	if jobs := f.Children(batch); len(jobs) != 0 {
		f.Errorf("%d jobs were made", len(jobs))
	}
	f.Must(add(registry.UploadURL(mine), ""))
	if spec := f.Spec(f.Children(batch)[0]); spec.URL != registry.UploadURL(mine) {
		f.Errorf("the job reads %q", spec.URL)
	}
	// A bad row that names one is kept, without it: it may be sent back.
	c = f.TakeItem(f.Submit())
	f.Must(add(registry.UploadURL(theirs), "an upload is its submitter's alone"))
	if spec := f.Spec(f.Children(c.Item.ID)[0]); spec.URL != "" {
		f.Errorf("the bad row reads %q", spec.URL)
	}
}

func ownSubmission(f *fixture) {
	batch := f.Submit()
	c, want := f.TakeItem(batch), f.Spec(batch)
	jobs := registrytest.NewJobs(1)
	s := &jobs[0].Spec
	s.Profile = registry.Profile{Owner: "ark:/99999/thief", Callback: registrytest.Receiver(), Mail: &registry.MailRules{To: []string{"eve@example.org"}}}
	s.Mode, s.Force, s.Priority, s.ProfileVersion = registry.Update, true, new(int), 99
	s.Submitter, s.UserAgent, s.SubmittedAt, s.Notify = "somebody else", "forged", f.Clock.Now().Add(-registrytest.Day), []string{"eve@example.org"}
	jobs[0].Priority = -1
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.invalid(err, "priority -1")
	jobs[0].Priority = 5
	_, err = f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	got := f.Spec(f.Children(batch)[0])
	want.Type, want.URL, want.Filename, want.RouteVersion = got.Type, got.URL, got.Filename, got.RouteVersion // which are the row's own
	f.same("the job's spec", got, want)
}

func (f *fixture) same(what string, got, want any) {
	f.Helper()
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	f.Must(errors.Join(errA, errB))
	if string(a) != string(b) {
		f.Errorf("%s is\n%s\nwant\n%s", what, a, b)
	}
}

func ownPlace(f *fixture) {
	ark := f.Object()
	l := f.Take(registry.Restore, f.Restore(ark).ItemID).Lease
	for place, name := range map[string]string{
		"uploads/theirs/payload":                                      "payload",
		"restores/" + l.ItemID + "/99/object-v1.tar":                  "object-v1.tar",
		"restores/other/1/object-v1.tar":                              "object-v1.tar",
		"restores/" + l.ItemID + "/1/../../../uploads/theirs/payload": "../../../uploads/theirs/payload",
	} {
		r := registrytest.RestorationRecord(l, ark)
		r.Place, r.Name = place, name
		_, err := f.Store.RecordRestoration(f.Context(), l, r)
		f.invalid(err, place)
	}
	if r := f.Restoration(l.ItemID); r.ReadyAt != nil || r.Place != "" {
		f.Errorf("it came to %+v", r)
	}
	f.RecordRestoration(l, ark)
}

func ownCallback(f *fixture) {
	id := f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	l := f.TakeItem(id).Lease
	good := registrytest.CompletedMessage(id)
	for names, change := range map[string]func(*registry.DeliverySpec){
		"https://evil.test/": func(m *registry.DeliverySpec) { m.Callback.URL = "https://evil.test/" },
		"mail-report":        func(m *registry.DeliverySpec) { m.Mail, m.To = registry.MailReport, "eve@example.org" },
		`"Failed"`:           func(m *registry.DeliverySpec) { m.State = registry.StateFailed },
	} {
		m := good
		change(&m)
		f.invalid(f.Store.PassOn(f.Context(), l, m), names)
		_, err := f.Store.NoteDelivery(f.Context(), l, registry.DeliveryTry{Message: m})
		f.invalid(err, names)
	}
	if n := len(f.DeliveryItems()) + len(f.Deliveries(id)); n != 0 {
		f.Errorf("%d items and deliveries came of it", n)
	}
	m := good
	m.Again, m.Times, m.Reason, m.Callback.CompletedOnly = true, 7, "forged", true
	f.Must(f.Store.PassOn(f.Context(), l, m))
	all := f.DeliveryItems()
	if len(all) != 1 {
		f.Fatalf("%d items go on", len(all))
	}
	spec, _ := registry.DeliverySpecIn(all[0].Spec)
	good.About = f.Item(id).Heading()
	f.same("the message", spec, good)
	// The callback that the collection has by now is its own, too.
	id = f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Callback: &registry.Callback{URL: "https://moved.test/"}})
	m = registrytest.CompletedMessage(id)
	m.Callback.URL = "https://moved.test/"
	f.Must(f.Store.PassOn(f.Context(), f.TakeItem(id).Lease, m))
}

func ownVersion(f *fixture) {
	f.Collection("other", registry.Profile{Owner: "ark:/99999/thief"})
	ark := f.Object()
	before, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	c := f.Processing(2)
	_, err = f.Store.Identify(f.Context(), c[1].Lease, registry.IdentifyRequest{Owner: "ark:/99999/thief", LocalIDs: []string{"x"}, Proposed: "ark:/99999/new"})
	f.invalid(err, "ark:/99999/thief")
	l := c[0].Lease
	_, err = f.Store.Identify(f.Context(), l, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark})
	f.Must(err)
	f.Intend(l, ark, 2, `{}`)
	for names, change := range map[string]func(*registry.VersionRecord){
		`"other"`:          func(v *registry.VersionRecord) { v.Collection = "other" },
		"ark:/99999/thief": func(v *registry.VersionRecord) { v.Owner = "ark:/99999/thief" },
		`storage "nowhere"`: func(v *registry.VersionRecord) {
			v.Replicas = append(v.Replicas, registry.Replica{Storage: "nowhere", VerifiedAt: f.Clock.Now()})
		},
	} {
		v := registrytest.VersionRecord(f.Fixture, l, ark, 2, []registry.File{registrytest.File(registrytest.FilePath)})
		change(&v)
		f.invalid(f.Store.RecordVersion(f.Context(), l, v), names)
	}
	after, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	before.Announced = 2
	f.same("the object", after, before)
}

func ownEvents(f *fixture) {
	other, ark := f.Object(), f.Object()
	forged := map[string]func(*registry.Premis){
		other:                                func(e *registry.Premis) { e.ObjectID = other },
		`names item "somebody's"`:            func(e *registry.Premis) { e.ItemID = "somebody's" },
		"version 7":                          func(e *registry.Premis) { e.Version = 7 },
		"deaccession":                        func(e *registry.Premis) { e.Type = "deaccession" },
		`Holdfast, not "Library director"`:   func(e *registry.Premis) { e.Agent = "Library director" },
		`Holdfast, not "Holdfastidious man"`: func(e *registry.Premis) { e.Agent = "Holdfastidious man" },
	}
	try := func(good registry.Premis, record func(registry.Premis) error) {
		f.Helper()
		good.ID, good.At, good.Agent, good.Outcome = f.Unique("event"), f.Clock.Now(), registrytest.Agent, "success"
		for names, forge := range forged {
			e := good
			forge(&e)
			f.invalid(record(e), names)
		}
		f.Must(record(good))
	}
	it := f.Restore(ark).ItemID
	l := f.Take(registry.Restore, it).Lease
	try(registry.Premis{ObjectID: ark, Version: 1, ItemID: it, Type: "dissemination"}, func(e registry.Premis) error {
		r := registrytest.RestorationRecord(l, ark)
		r.Events = []registry.Premis{e}
		_, err := f.Store.RecordRestoration(f.Context(), l, r)
		return err
	})
	f.Done(l)
	it = f.ItemAbout(registry.FixityCheck, ark).ID
	l = f.Take(registry.Fixity, it).Lease
	try(registry.Premis{ObjectID: ark, Version: 1, ItemID: it, Type: "fixity check"}, func(e registry.Premis) error {
		return f.Store.RecordCheck(f.Context(), l, registry.CheckRecord{
			Replicas: []registry.ReplicaCheck{{Storage: registrytest.Storage, Outcome: registry.CheckGood}}, Events: []registry.Premis{e},
		})
	})
	f.Done(l)
	l = f.Processing(1)[0].Lease
	fresh := f.Named(l, f.Unique("object")).ARK
	f.Intend(l, fresh, 1, `{}`)
	try(registry.Premis{ObjectID: fresh, Version: 1, ItemID: l.ItemID, Type: "ingestion"}, func(e registry.Premis) error {
		v := registrytest.VersionRecord(f.Fixture, l, fresh, 1, nil)
		v.Events = []registry.Premis{e}
		return f.Store.RecordVersion(f.Context(), l, v)
	})
	it = f.ApprovedDeletion(ark).ID
	l = f.Take(registry.Delete, it).Lease
	f.LockObject(l, ark)
	_, err := f.Store.MarkDeleting(f.Context(), l, ark, registry.Remains{Version: 1})
	f.Must(err)
	try(registry.Premis{ObjectID: ark, ItemID: it, Type: "deletion"}, func(e registry.Premis) error {
		return f.Store.RecordDeletion(f.Context(), l, ark, []registry.Premis{e})
	})
	page, err := f.Store.PremisEvents(f.Context(), other, "", 10)
	f.Must(err)
	if len(page.Rows) != 1 { // its ingestion
		f.Errorf("another object has the events %+v", page.Rows)
	}
}

func ownRequest(f *fixture) {
	id := f.Submit()
	r := f.Request(registry.Expand, id)
	r.Token = "mine"
	first, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	for _, change := range []func(*registry.ClaimRequest){
		func(r *registry.ClaimRequest) { r.Token = "theirs" },
		func(r *registry.ClaimRequest) { r.Stage = registry.Notify },
	} {
		other := r
		change(&other)
		c, err := f.Store.Claim(f.Context(), other)
		f.invalid(err, r.RequestID)
		if c.Item.ID != "" || len(c.NoteKey) != 0 {
			f.Errorf("it was told %+v", c)
		}
	}
	again, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	if again.Lease != first.Lease {
		f.Errorf("the repeat got %+v, want %+v", again.Lease, first.Lease)
	}
}

func ownResult(f *fixture) {
	ark := f.Object()
	c := f.Processing(1)[0]
	forged := map[string]json.RawMessage{
		registry.ResultARK: json.RawMessage(`{"ark":"` + ark + `"}`), registry.ResultCallback: json.RawMessage(`{"url":"https://evil.test/"}`),
		registry.ResultAbandon: json.RawMessage(`{}`),
	}
	for name, value := range forged {
		_, err := f.Store.SaveResult(f.Context(), c.Lease, name, value)
		f.invalid(err, name)
		_, err = f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{name: value}})
		f.invalid(err, name)
	}
	if it := f.Item(c.Item.ID); len(it.Results) != 0 || it.Status != registry.Running {
		f.Errorf("the item is %s with the results %v", it.Status, it.Results)
	}
}

// ownPriority: a worker changes its item's priority. Below 0, a priority goes first, and past the
// rule that shares slots among collections.
func ownPriority(f *fixture) {
	c := f.TakeItem(f.Submit())
	for _, n := range []int{-1, 101, math.MinInt64, math.MaxInt64} {
		_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Error: "no", PriorityAdd: n})
		f.invalid(err, "PriorityAdd")
	}
	before := f.Item(c.Item.ID).Priority
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, PriorityAdd: 100})
	if got := f.Item(c.Item.ID).Priority; got != before+100 {
		f.Errorf("its priority is %d, was %d", got, before)
	}
}

// ownTold: an attempt tries to write events of others, to the audit log and to the feed.
func ownTold(f *fixture) {
	c := f.TakeItem(f.Submit())
	many := make([]registry.NewEvent, 101)
	for i := range many {
		many[i].Type = "bad-manifest"
	}
	for names, events := range map[string][]registry.NewEvent{
		registry.EventRefused:      {{Type: registry.EventRefused, Data: []byte(`{"actor":"alice","operation":"DELETE /api/v1/objects","status":403}`)}},
		"object-deleted":           {{Type: "object-deleted", Data: []byte(`{"object_id":"ark:/99999/theirs","version":1}`)}},
		registry.EventTokenRevoked: {{Type: registry.EventTokenRevoked, Data: []byte(`{"name":"bob"}`)}},
		"stored":                   {{Type: "stored", Data: []byte(`{}`)}}, // which is process's to tell
		"Events":                   many,
	} {
		_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, Events: events})
		f.invalid(err, names)
	}
	page, err := f.Store.Audit(f.Context(), registry.AuditQuery{Limit: 100})
	f.Must(err)
	for _, e := range page.Rows {
		if e.Type == registry.EventRefused {
			f.Errorf("a worker wrote into the audit log: %s %s", e.Type, e.Data)
		}
	}
	if it := f.Item(c.Item.ID); it.Status != registry.Running {
		f.Errorf("the item is %s", it.Status)
	}
}

// ownWithdrawn: another token asks what was taken from a worker.
func ownWithdrawn(f *fixture) {
	id := f.Job(registry.Download)
	r := f.Request(registry.Download, id)
	r.Token = "mine"
	c, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	f.Command(id, registry.ActCancel, "")
	for token, want := range map[string]int{"mine": 1, "other": 0, "": 1} {
		ctx, cancel := context.WithTimeout(f.Context(), 100*time.Millisecond)
		taken, _, err := f.Store.Withdrawn(ctx, registry.WithdrawnQuery{Worker: r.Worker, Token: token})
		cancel()
		if err != nil || len(taken) != want || want == 1 && taken[0] != c.Lease {
			f.Errorf("token %q is told %v (%v)", token, taken, err)
		}
	}
}
