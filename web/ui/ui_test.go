package ui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// hostile is a name that a page must show and not obey.
// hostileFile is the address of the page of a file with that name.
var hostileFile = "/objects/ark:/99999/fk4?file=" + url.QueryEscape("producer/"+hostile)

const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)> javascript:alert(3)`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is the pages over a real store, as a viewer sees them.
type site struct {
	*uitest.Server
	store   *sqlstore.Store
	cookies []*http.Cookie // of the browser that walks
}

func newSite(t testing.TB) *site {
	t.Helper()
	return siteOf(uitest.New(t, uitest.Options{}))
}

// siteOver is a site over what wrap makes of the store.
func siteOver(t testing.TB, wrap func(scope.Registry) scope.Registry, log *slog.Logger) *site {
	t.Helper()
	return siteOf(uitest.New(t, uitest.Options{Registry: wrap, Log: log}))
}

func siteOf(s *uitest.Server) *site { return &site{Server: s, store: s.Store} }

// get loads a page and fails unless it has this status and is whole.
func (s *site) get(t testing.TB, path string, status int) string {
	t.Helper()
	return s.Get(t, path, status)
}

// wantTame fails when a hostile name is anything but text.
func wantTame(t testing.TB, path, text string) {
	t.Helper()
	for _, bad := range []string{"<script>", "<img", "href=\"javascript:", `"'>`} {
		if strings.Contains(text, bad) {
			t.Errorf("%s obeys a hostile name (%s)", path, bad)
		}
	}
	if !strings.Contains(text, "&lt;script&gt;") {
		t.Errorf("%s does not show the hostile name", path)
	}
}

func (s *site) claim(t testing.TB, stage registry.Stage) registry.Lease {
	t.Helper()
	c, err := s.store.Claim(t.Context(), registry.ClaimRequest{
		RequestID: string(stage) + time.Now().String(), Stage: stage, Worker: "w <b>1</b>", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute,
	})
	must(t, err)
	return c.Lease
}

// fill makes a batch of two jobs: one preserved, one failed on a hostile error; and another batch
// that waits.
func (s *site) fill(t testing.TB) (batchID string, jobs []registry.WorkItem) {
	t.Helper()
	ctx := t.Context()
	submit := func(name string) string {
		r, err := s.store.Submit(ctx, registry.Submission{
			Collection: "default", Name: name, Actor: "ann " + hostile,
			Spec: registry.Spec{Type: registry.BatchManifest, URL: "http://user:secret@h.test/a?sig=SECRET0123456789012345678901234567", Filename: name, Title: hostile},
		})
		must(t, err)
		return r.BatchID
	}
	batchID = submit(hostile)
	l := s.claim(t, registry.Expand)
	_, err := s.store.AddJobs(ctx, l, []registry.NewJob{
		{Line: 3, Row: 1, Name: "good " + hostile, Spec: registry.Spec{URL: "http://h.test/1", LocalIDs: []string{hostile}}},
		{Line: 5, Row: 2, Name: "bad " + hostile, Spec: registry.Spec{Repeats: &registry.RowPlace{Row: 1, Line: 3}}},
	})
	must(t, err)
	s.settle(t, l, registry.OutcomeDone)
	for _, stage := range []registry.Stage{registry.Estimate, registry.Provision, registry.Download} {
		s.settle(t, s.claim(t, stage), registry.OutcomeDone)
	}
	l = s.claim(t, registry.Process)
	const ark = "ark:/99999/fk4"
	_, err = s.store.Identify(ctx, l, registry.IdentifyRequest{LocalIDs: []string{hostile}, Proposed: ark})
	must(t, err)
	_, err = s.store.Intend(ctx, l, registry.Intent{ObjectID: ark, Version: 1, Plan: json.RawMessage("{}")})
	must(t, err)
	must(t, s.store.RecordFiles(ctx, l, ark, 1, []registry.File{
		{
			Path: "producer/" + hostile, Version: 1, ContentPath: "v1/content/x", SizeBytes: 1536, Digests: map[string]string{"sha512": hostile}, MIMEType: hostile,
			Format: &registry.Format{PUID: hostile, Name: hostile, Version: hostile, Registry: hostile, Warning: hostile},
		},
	}))
	must(t, s.store.RecordVersion(ctx, l, registry.VersionRecord{
		ObjectID: ark, Version: 1, Collection: "default", Title: hostile, Creator: hostile, Files: 1, SizeBytes: 1536, CreatedAt: time.Now(),
		Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: time.Now()}}, Events: []registry.Premis{{ID: "e", ObjectID: ark, Version: 1, ItemID: l.ItemID, Type: "ingestion", At: time.Now(), Agent: "Holdfast " + hostile, Detail: hostile}},
	}))
	must(t, s.settleErr(t, registry.Settlement{
		Lease: l, Outcome: registry.OutcomeRetry, Error: "again: " + hostile, Class: registry.SystemFault, MaxAttempts: 5, Delay: time.Hour,
		Results: map[string]json.RawMessage{"version": json.RawMessage("1")},
	}))
	must(t, s.settleErr(t, registry.Settlement{
		Lease: s.claim(t, registry.Estimate), Outcome: registry.OutcomeFailed, Error: "404 for " + hostile, Class: registry.ContentFault, MaxAttempts: 5,
	}))
	submit("waiting")
	page, err := s.store.Items(ctx, registry.ItemQuery{ParentID: batchID})
	must(t, err)
	return batchID, page.Rows
}

func (s *site) settle(t testing.TB, l registry.Lease, o registry.Outcome) {
	t.Helper()
	must(t, s.settleErr(t, registry.Settlement{Lease: l, Outcome: o, MaxAttempts: 5}))
}

func (s *site) settleErr(t testing.TB, v registry.Settlement) error {
	_, err := s.store.Settle(t.Context(), v)
	return err
}

func TestPages_ShowHostileNamesAsText(t *testing.T) {
	s := newSite(t)
	batchID, jobs := s.fill(t)
	for _, path := range []string{
		"/operations", "/items", "/items?q=script", "/batches/" + batchID, "/deposits?of=all", "/deposits/" + batchID, "/items/" + batchID, "/items/" + jobs[0].ID, "/items/" + jobs[1].ID,
		"/objects", "/objects?text=ark", "/objects/ark:/99999/fk4", "/objects/ark:%2F99999%2Ffk4?version=1", "/objects/ark:/99999/fk4?since=0&all=1", hostileFile,
		"/objects/ark:/99999/fk4?folder=" + url.QueryEscape("producer/<script>alert(1)</"),
	} {
		text := s.get(t, path, http.StatusOK)
		wantTame(t, path, text)
		if strings.Contains(text, "SECRET") || strings.Contains(text, "user:secret") {
			t.Errorf("%s shows a secret of an address", path)
		}
	}
	wantTame(t, "search", s.get(t, "/items?q=%3Cscript%3E", http.StatusOK))
}

func TestPages_Say(t *testing.T) {
	s := newSite(t)
	if text := s.get(t, "/operations", http.StatusOK); !strings.Contains(text, "No worker is alive") {
		t.Errorf("empty operations page does not say so:\n%s", text)
	}
	s.get(t, "/objects", http.StatusOK)
	batchID, jobs := s.fill(t)
	for path, wants := range map[string][]string{
		"/operations":                     {`sse-connect="/live?page=%2Foperations&amp;seen=`, "Failed", "404 for", `class="class">Content fault`},
		"/items":                          {"Processing", "Failed", "items match"},
		"/batches/" + batchID:             {"<h1>" + template.HTMLEscapeString(hostile) + "</h1>", "Processing", "batch-manifest", "(version 1 of its profile)", "http://redacted@h.test/a", "<caption>", `href="/objects/ark:/99999/fk4">`, "repeats row 1, line 3"},
		"/deposits/" + batchID:            {"You must correct it", "the rest goes on", "Retry at", ", attempt 2 of 5", "verified in 1 storage", "Keep it", "404 for", "/versions/1/receipt"},
		"/items/" + jobs[0].ID:            {"Retry at", "ark:/99999/fk4", "again:", "w &lt;b&gt;1", "History"},
		"/items/" + jobs[1].ID:            {"The producer corrects the deposit", "</span> It failed at ", "row 1, line 3 of its batch"},
		"/objects/ark:/99999/fk4?since=0": {"Changes of version 1", "added", `href="/objects/ark:/99999/fk4?file=producer`, "1.5 KiB"},
		"/objects/ark:99999/fk4":          {"1.5 KiB", `href="/objects/ark:/99999/fk4?folder=producer%2F`, "ingestion", "/api/v1/objects/ark:%2F99999%2Ffk4/export?version=1"},
		hostileFile:                       {"1.5 KiB", "1,536 bytes", "/api/v1/objects/ark:%2F99999%2Ffk4/content?path=producer"},
	} {
		text := s.get(t, path, http.StatusOK)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %q:\n%s", path, want, text)
			}
		}
	}
	if text := s.get(t, "/items/"+jobs[1].ID, http.StatusOK); strings.Contains(text, "sse-connect") {
		t.Error("the page of a settled item loads itself again")
	} else if strings.Count(text, "404 for") > 3 { // why, its attempt and its history
		t.Errorf("the page says the same fault over and over:\n%s", text)
	}
}

func TestPages_Problems(t *testing.T) {
	s := newSite(t)
	_, jobs := s.fill(t)
	for path, status := range map[string]int{
		"/nothing": 404, "/batches/none": 404, "/batches/" + jobs[0].ID: 404, "/items/none": 404, "/objects/none": 404,
		"/objects/ark:/99999/none": 404, "/objects/ark:/99999/fk4?version=9": 404, "/objects/ark:/99999/fk4?version=x": 400,
		"/items?after=zzz": 422, "/objects?after=zzz": 422, "/items/" + jobs[0].ID + "?after=-1": 400,
		"/nothing/%3Cscript%3E": 404,
	} {
		if text := s.get(t, path, status); strings.Contains(text, "<script>") {
			t.Errorf("%s obeys a hostile address", path)
		}
	}
	s = siteOver(t, func(r scope.Registry) scope.Registry { return broken{r} }, nil)
	text := s.get(t, "/operations", http.StatusInternalServerError)
	if strings.Contains(text, "password") {
		t.Error("an internal error is shown")
	}
}

// TestPages_LongPath checks that log lines about a failed page are bounded.
func TestPages_LongPath(t *testing.T) {
	var log bytes.Buffer
	s := siteOver(t, func(r scope.Registry) scope.Registry { return broken{r} }, slog.New(slog.NewTextHandler(&log, nil)))
	s.get(t, "/items/"+strings.Repeat("ä", 20_000), http.StatusUnprocessableEntity)
	if text := log.String(); !strings.Contains(text, "request refused") || len(text) > 12_000 || !utf8.ValidString(text) {
		t.Errorf("logged %d bytes, want the failure in a few: %.500s", len(text), text)
	}
}

// givenUp is a Registry in which the tries to tell every job's receiver were ended.
type givenUp struct{ scope.Registry }

func (g givenUp) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := g.Registry.Item(ctx, id)
	it.Status, it.Commitment = registry.Completed, registry.Preserved
	it.Results = map[string]json.RawMessage{registry.ResultUntold: json.RawMessage(`{"target": "https://gone.test", "actor": "ann <b>", "reason": "` + hostileReason + `"}`)}
	return it, err
}

const hostileReason = "<script>gone</script>"

// TestPages_GivenUp checks that the page of a job that completed without notifying its receiver
// says so, with actor and reason.
func TestPages_GivenUp(t *testing.T) {
	s := siteOver(t, func(r scope.Registry) scope.Registry { return givenUp{r} }, nil)
	_, jobs := s.fill(t)
	text := s.get(t, "/items/"+jobs[1].ID, http.StatusOK)
	for _, want := range []string{"preserved; callback given up", "https://gone.test was not told: given up by ann &lt;b&gt;", template.HTMLEscapeString(hostileReason)} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}

// broken is a Registry that does not answer.
type broken struct{ scope.Registry }

func (broken) Items(context.Context, registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
	return registry.Page[registry.WorkItem]{}, errors.New("password=hunter2")
}

func (broken) Item(_ context.Context, id string) (registry.WorkItem, error) {
	return registry.WorkItem{}, fmt.Errorf("look up item %s: broken", id)
}

func TestStyle(t *testing.T) {
	w := newSite(t).Send(t, http.MethodGet, "/static/style.css", nil)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/css; charset=utf-8" || w.Body.Len() == 0 {
		t.Errorf("style: %d %s", w.Code, w.Header())
	}
}
