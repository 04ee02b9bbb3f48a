package ui_test

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// foreignTitle is in the title of everything that belongs to the collection other.
const foreignTitle = "The harbour master's secret"

// preserve makes a batch of one job whose object is preserved.
func (s *site) preserve(t testing.TB, collection, title, ark string) (batch, job string) {
	t.Helper()
	ctx := t.Context()
	r, err := s.store.Submit(ctx, registry.Submission{Collection: collection, Name: title, Actor: "ben", Spec: registry.Spec{Type: registry.BatchManifest, URL: "http://h.test/" + collection, Title: title}})
	must(t, err)
	l := s.claim(t, registry.Expand)
	_, err = s.store.AddJobs(ctx, l, []registry.NewJob{{Line: 3, Row: 1, Name: title, Spec: registry.Spec{URL: "http://h.test/1", Title: title}}})
	must(t, err)
	s.settle(t, l, registry.OutcomeDone)
	for _, stage := range []registry.Stage{registry.Estimate, registry.Provision, registry.Download} {
		s.settle(t, s.claim(t, stage), registry.OutcomeDone)
	}
	l = s.claim(t, registry.Process)
	_, err = s.store.Identify(ctx, l, registry.IdentifyRequest{Proposed: ark})
	must(t, err)
	_, err = s.store.Intend(ctx, l, registry.Intent{ObjectID: ark, Version: 1, Plan: json.RawMessage("{}")})
	must(t, err)
	must(t, s.store.RecordFiles(ctx, l, ark, 1, []registry.File{
		{Path: "producer/" + title + ".txt", Version: 1, ContentPath: "v1/content/x", SizeBytes: 5, Digests: map[string]string{"sha512": "00"}, MIMEType: "text/plain"},
	}))
	must(t, s.store.RecordVersion(ctx, l, registry.VersionRecord{
		ObjectID: ark, Version: 1, Collection: collection, Title: title, Files: 1, SizeBytes: 5, CreatedAt: time.Now(),
		Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: time.Now()}},
		Events:   []registry.Premis{{ID: "e " + ark, ObjectID: ark, Version: 1, ItemID: l.ItemID, Type: "ingestion", At: time.Now(), Agent: "Holdfast"}},
	}))
	s.settle(t, l, registry.OutcomeDone)
	return r.BatchID, l.ItemID
}

// everything fills the site so that each page has something to show. It returns addresses from which
// all pages are reached, and addresses of what belongs to the collection other.
func (s *site) everything(t testing.TB) (start, foreign []string) {
	t.Helper()
	ctx := t.Context()
	must(t, s.store.PutCollection(ctx, registry.Collection{Mnemonic: "other"}, "test"))
	const otherARK, spareARK = "ark:/99999/fk4other", "ark:/99999/fk4spare"
	batch, job := s.preserve(t, "other", foreignTitle, otherARK)
	s.preserve(t, "default", "Letters", spareARK)
	must(t, s.store.PutCollection(ctx, registry.Collection{Mnemonic: "told", Profile: registry.Profile{Callback: &registry.Callback{URL: "https://receiver.test/{job}"}}}, "test"))
	told := s.failed(t, "told")
	own, jobs := s.fill(t)
	g := s.canGraph(t)
	upload := func(collection, name string) string {
		in, err := s.store.BeginUpload(ctx, registry.NewUpload{ID: "upload-" + collection, Filename: name, SizeBytes: 10, CreatedBy: "ben", Keep: time.Hour, Collection: collection})
		must(t, err)
		return "/uploads/" + in.ID
	}
	foreignUpload := upload("other", foreignTitle)
	_, err := s.store.PutSubscription(ctx, registry.SubscriptionRequest{Name: "catalogue", Target: "https://receiver.test/hook", Actor: "test"})
	must(t, err)
	_, err = s.store.AddSchedule(ctx, registry.ScheduleRequest{Name: "nightly", Actor: "test", ScheduleSpec: registry.ScheduleSpec{
		Cron: "@daily", Zone: "UTC", Task: &registry.ScheduledTask{Function: "convert"}, Overlap: registry.OverlapSkip, CatchUp: registry.CatchUpOnce,
	}})
	must(t, err)
	must(t, s.store.AnnounceNamespaces(ctx, []registry.Namespace{{Name: "curate"}}))
	_, err = s.store.PutProcess(ctx, registry.PutProcess{ProcessKey: registry.ProcessKey{Namespace: "curate", ProcessID: "plates"}, History: []registry.ProcessEvent{{ID: 1, Payload: json.RawMessage(`"x"`)}}})
	must(t, err)
	for _, id := range []string{"letters", "lists"} {
		s.broken(t, registry.ProcessKey{Namespace: "curate", ProcessID: id})
	}
	for _, name := range []string{"unwanted", "unwanted, too"} {
		_, err = s.store.Submit(ctx, registry.Submission{Collection: "default", Name: name, Actor: "ben", Spec: registry.Spec{URL: "http://h.test/" + name}})
		must(t, err)
	}
	failed, err := query.Parse("state:failed")
	must(t, err)
	bulk, err := s.store.Bulk(ctx, registry.BulkRequest{Match: failed, Act: registry.ActPriority, Priority: new(int), Reason: "test", Actor: "ben", Confirmed: true, GraceSeconds: 30})
	must(t, err)
	_, err = s.store.AskDeletion(ctx, spareARK, "rights were withdrawn", "ben")
	must(t, err)
	for _, key := range []string{"scan", "restore"} {
		must(t, s.store.AddHold(ctx, registry.Hold{Scope: registry.HoldStage, Key: key, Reason: "the shelves are moved", Actor: "ben"}))
	}
	start = []string{
		"/help", "/processes/curate/letters", "/batches/" + own, "/batches/" + own + "/redeliver", "/graphs/" + g.GraphID, "/bulk/" + bulk.ID, "/items/act?q=state%3Afailed&all=yes&act=requeue", upload("default", "plates.zip"), foreignUpload,
		"/deletions/" + spareARK + "?decision=approve", "/deletions/ark:/99999/fk4?decision=ask", hostileFile, "/batches/" + batch, "/objects/" + otherARK, "/objects/ark:/99999/fk4",
	}
	for _, j := range jobs {
		start = append(start, "/items/"+j.ID, "/items/"+j.ID+"/redeliver")
	}
	foreign = []string{
		"/batches/" + batch, "/items/" + batch, "/items/" + job, "/items/" + job + "/graph", "/deposits/" + batch, "/deposits/" + batch + "/cancel", "/objects/" + otherARK,
		"/objects/" + otherARK + "?file=" + url.QueryEscape("producer/"+foreignTitle+".txt"), foreignUpload, "/deposit?from=" + batch, "/collections/other", "/collections/other/versions",
		"/api/v1/objects/" + url.PathEscape(otherARK) + "/content?path=" + url.QueryEscape("producer/"+foreignTitle+".txt"), "/api/v1/items/" + job,
	}
	return append(start, "/items/"+told), foreign
}

// broken makes a process whose step failed.
func (s *site) broken(t testing.TB, key registry.ProcessKey) {
	t.Helper()
	_, err := s.store.PutProcess(t.Context(), registry.PutProcess{ProcessKey: key, History: []registry.ProcessEvent{{ID: 1, Payload: json.RawMessage(`"x"`)}}})
	must(t, err)
	_, err = s.store.CallProcess(t.Context(), registry.NewCall{ProcessKey: key, Args: json.RawMessage(`{"n": 1}`), Actor: "ben"})
	must(t, err)
	must(t, s.settleErr(t, registry.Settlement{Lease: s.claim(t, "step:curate"), Outcome: registry.OutcomeFailed, Error: "the scanner is off", Class: registry.SystemFault, MaxAttempts: 5}))
}

// ownNote is the error of a step of Holdfast's own workers.
const ownNote = "file 1, plate 7.tif: open https://h.test/plate%207.tif: the server answered 404 Not Found; put the file there, or correct the address"

// failed makes a batch of one job that fails, and returns the job's id.
func (s *site) failed(t testing.TB, collection string) string {
	t.Helper()
	_, err := s.store.Submit(t.Context(), registry.Submission{Collection: collection, Name: collection, Spec: registry.Spec{Type: registry.BatchManifest, URL: "http://h.test/" + collection}})
	must(t, err)
	l := s.claim(t, registry.Expand)
	_, err = s.store.AddJobs(t.Context(), l, []registry.NewJob{{Line: 3, Row: 1, Name: collection + " job", Spec: registry.Spec{URL: "http://h.test/1"}}})
	must(t, err)
	s.settle(t, l, registry.OutcomeDone)
	l = s.claim(t, registry.Estimate)
	must(t, s.settleErr(t, registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Error: ownNote, Class: registry.ContentFault, MaxAttempts: 5}))
	return l.ItemID
}
