// Package surveytest is the conformance kit of surveys.
package surveytest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/survey"
)

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{registrytest.NewTopic("survey", map[string]func(*fixture){
		"a_period_has_what_happened_in_it": period,
		"a_collection_alone":               oneCollection,
	})}
}

// fixture is the fixture of all kits.
type fixture struct{ *registrytest.Fixture }

// checked records a fixity check of the file of an object, with its event.
func checked(f *fixture, ark, kind, outcome, detail string, right registry.CheckOutcome) {
	f.Helper()
	f.Must(f.Store.AskForCheck(f.Context(), registry.CheckRequest{ObjectID: ark, Actor: "ann"}))
	f.Clock.Pass(time.Second)
	f.Recheck(10)
	l, _ := f.TakeCheck()
	f.Must(f.Store.RecordCheck(f.Context(), l, registry.CheckRecord{
		Replicas: []registry.ReplicaCheck{{Storage: registrytest.Storage, Outcome: right}},
		Events: []registry.Premis{{
			ID: f.Unique("event"), ObjectID: ark, Version: 1, ItemID: l.ItemID, Type: kind, At: f.Clock.Now(), Agent: registrytest.Agent, Outcome: outcome,
			Detail: "v1/content/" + registrytest.FilePath + " compared by sha512: " + detail,
		}},
	}))
	f.Done(l)
}

// bytesOfFile is the size of registrytest.File.
const bytesOfFile = 5

func period(f *fixture) {
	old := f.Object()
	announce := func(version string, stage registry.Stage) {
		_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Lease: registrytest.Lease, Worker: registry.WorkerInfo{
			ID: f.Unique("worker"), Version: version, Capacity: map[registry.Stage]int{stage: 1},
		}})
		f.Must(err)
	}
	announce("0.9", registry.Download)
	f.Clock.Pass(24 * time.Hour)
	q := survey.Query{From: f.Clock.Now()}
	day := f.Clock.Now().UTC().Truncate(24 * time.Hour)
	for range 2 { // a second worker of a day adds nothing
		announce("1.0", registry.Download)
	}
	announce("1.0", registry.Run.Of("thumbnails"))
	first, second := f.Object(), f.Object()
	checked(f, old, "fixity check", "failure", "damaged in storage storage", registry.CheckDamaged)
	f.Clock.Pass(time.Minute)
	checked(f, old, "replication", "success", "repaired in storage storage", registry.CheckRepaired)
	failed := f.WaitingAt(registry.Download, registrytest.Mnemonic, 2, false)
	for n, id := range failed {
		_, err := f.Store.Settle(f.Context(), registry.Settlement{
			Lease: f.Take(registry.Download, id).Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: fmt.Sprintf("line %d: no such file", n+1), MaxAttempts: 5,
		})
		f.Must(err)
	}
	for _, a := range []registry.Access{
		{Kind: registry.EventExported, Actor: "eve", ObjectID: first, Collection: registrytest.Mnemonic, Version: 1, By: registry.ByCommand, Export: "x"},
		{Kind: registry.EventFilesRead, Actor: "eve", ObjectID: second, Collection: "other", Version: 1, By: registry.ByPage, File: "a"},
	} {
		f.Must(f.Store.NoteAccess(f.Context(), a))
	}
	f.Restore(first)
	f.ApprovedDeletion(second)
	f.Must(f.Store.NoteBackup(f.Context(), registry.Backup{Name: "one.tar.zst", Place: "/mnt/backups", Bytes: 7, Database: true, Objects: 3}))
	f.Clock.Pass(time.Minute)
	q.To = f.Clock.Now()
	counts := func() survey.Counts {
		f.Helper()
		got, err := f.Store.CountPeriod(f.Context(), q)
		f.Must(err)
		return got
	}
	got := counts()
	f.Clock.Pass(time.Minute)
	checked(f, first, "fixity check", "failure", "damaged in storage storage", registry.CheckDamaged) // after the period
	f.Must(f.Store.NoteAccess(f.Context(), registry.Access{Kind: registry.EventExported, Actor: "late", ObjectID: first, Version: 1, By: registry.ByAPI}))
	f.Must(f.Store.NoteBackup(f.Context(), registry.Backup{Name: "later.tar.zst"}))
	f.Clock.Pass(24 * time.Hour)
	announce("2.0", registry.Download)
	f.Object()
	f.Collection(registrytest.Mnemonic, registry.Profile{Name: "Later", Owner: registrytest.Owner})
	if diff := cmp.Diff(got, counts()); diff != "" {
		f.Errorf("what came after the period is in it (-before +after):\n%s", diff)
	}
	one := registrytest.File("")
	want := survey.Counts{
		Holdings: []survey.Holding{{Collection: registrytest.Mnemonic, Start: survey.Amount{Objects: 1, Versions: 1, Files: 1, Bytes: bytesOfFile}, End: survey.Amount{Objects: 3, Versions: 3, Files: 3, Bytes: 3 * bytesOfFile}}},
		Formats:  []survey.Format{{PUID: one.Format.PUID, Name: one.Format.Name, Version: one.Format.Version, MIMEType: one.MIMEType, Files: 3, Bytes: 3 * bytesOfFile}},
		Ingests:  []survey.Ingest{{Collection: registrytest.Mnemonic, First: 2, FilesWritten: 2, BytesAdded: 2 * bytesOfFile}},
		Coverage: []survey.Coverage{{Storage: registrytest.Storage, Files: survey.Share{All: 3, Checked: 1, Written: 2}, Bytes: survey.Share{All: 3 * bytesOfFile, Checked: bytesOfFile, Written: 2 * bytesOfFile}}},
		Copies:   []survey.Copies{{Collection: registrytest.Mnemonic, Copies: 1, Versions: 3}}, Incidents: 1,
		Programs: []survey.Program{
			{Kind: registry.KindFunction, Version: "1.0", First: day, Last: day, Days: 1}, {Kind: registry.KindWorker, Version: "1.0", First: day, Last: day, Days: 1},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(survey.Counts{}, "Failures", "Software", "Policies", "Keys")); diff != "" {
		f.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(got.Failures) != 1 || got.Failures[0].Times != 2 || got.Failures[0].Class != registry.ContentFault || got.Failures[0].Stage != registry.Download || got.Failures[0].Title == "" {
		f.Errorf("failures %+v", got.Failures)
	}
	if len(got.Software) != 1 || got.Software[0].Name != registrytest.Agent || got.Software[0].First.Before(q.From) || !got.Software[0].Last.Before(q.To) {
		f.Errorf("software %+v", got.Software)
	}
	if len(got.Policies) != 1 || got.Policies[0].Version != 1 || got.Policies[0].Profile.Owner != registrytest.Owner {
		f.Errorf("policies %+v", got.Policies)
	}
	told := tell(f, q)
	if diff := cmp.Diff([]string{
		"incident fixity check failure of " + old, "incident replication success of " + old,
		"deletion approved of " + second + " asked " + registrytest.Asker + " approved " + registrytest.Approver,
		"access exported by eve of " + first, "access files-read by eve of " + second, "access restore-requested by depositor of " + first,
		"backup one.tar.zst in /mnt/backups of 7 bytes with 3 objects",
	}, told); diff != "" {
		f.Errorf("lists (-want +got):\n%s", diff)
	}
}

// tell returns the rows of the lists of a period.
func tell(f *fixture, q survey.Query) (told []string) {
	f.Helper()
	f.Must(f.Store.Incidents(f.Context(), q, func(i survey.Incident) error {
		told = append(told, fmt.Sprintf("incident %s %s of %s", i.Type, i.Outcome, i.ObjectID))
		return nil
	}))
	f.Must(f.Store.PeriodDeletions(f.Context(), q, func(d survey.Deletion) error {
		told = append(told, fmt.Sprintf("deletion %s of %s asked %s approved %s", d.Status, d.ObjectID, d.AskedBy, d.ApprovedBy))
		return nil
	}))
	f.Must(f.Store.Accesses(f.Context(), q, func(a survey.Access) error {
		told = append(told, fmt.Sprintf("access %s by %s of %s", a.Kind, a.Actor, a.ObjectID))
		return nil
	}))
	f.Must(f.Store.Backups(f.Context(), q, func(b survey.Backup) error {
		told = append(told, fmt.Sprintf("backup %s in %s of %d bytes with %d objects", b.Name, b.Place, b.Bytes, b.Objects))
		return nil
	}))
	return told
}

func oneCollection(f *fixture) {
	q := survey.Query{From: f.Clock.Now(), Collection: "other"}
	ark := f.Object()
	f.Must(f.Store.NoteAccess(f.Context(), registry.Access{Kind: registry.EventExported, Actor: "eve", ObjectID: ark, Collection: registrytest.Mnemonic, Version: 1}))
	f.ApprovedDeletion(ark)
	f.Clock.Pass(time.Minute)
	q.To = f.Clock.Now()
	got, err := f.Store.CountPeriod(f.Context(), q)
	f.Must(err)
	if told := tell(f, q); len(told) > 0 || len(got.Holdings)+len(got.Formats)+len(got.Ingests)+len(got.Coverage)+len(got.Copies)+len(got.Software)+len(got.Policies) > 0 {
		f.Errorf("of another collection: %v %+v", told, got)
	}
	text, err := f.Store.SignReport(f.Context(), receipt.Report{From: q.From, To: q.To, Collection: q.Collection, Manifest: "aa"})
	f.Must(err)
	r, _, err := receipt.ReadReport(text, nil)
	if err != nil || r.Registry == "" || r.Collection != "other" || !r.From.Equal(q.From) {
		f.Errorf("signed %s: %v", text, err)
	}
}
