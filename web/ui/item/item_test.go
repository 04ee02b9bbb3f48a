package item_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

const hostile = `<script>alert(1)</script>"'>`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func claim(t testing.TB, s *uitest.Server, stage registry.Stage) registry.Lease {
	t.Helper()
	c, err := s.Store.Claim(t.Context(), registry.ClaimRequest{
		RequestID: fmt.Sprint(stage, time.Now().UnixNano()), Stage: stage, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute,
	})
	must(t, err)
	return c.Lease
}

func settle(t testing.TB, s *uitest.Server, v registry.Settlement) {
	t.Helper()
	_, err := s.Store.Settle(t.Context(), v)
	must(t, err)
}

// fill makes a batch of jobs that wait at their first stage.
func fill(t testing.TB, s *uitest.Server, n int) (batch string, jobs []registry.WorkItem) {
	t.Helper()
	r, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: hostile, Actor: "ann", Spec: registry.Spec{Type: registry.BatchManifest, URL: "http://h.test/a"}})
	must(t, err)
	l := claim(t, s, registry.Expand)
	for first := 0; first < n; first += 500 {
		var rows []registry.NewJob
		for i := first; i < min(n, first+500); i++ {
			rows = append(rows, registry.NewJob{Line: int64(i + 1), Name: fmt.Sprintf("plate-%d.tif %s", i+1, hostile), Spec: registry.Spec{URL: "http://h.test/1"}})
		}
		_, err = s.Store.AddJobs(t.Context(), l, rows)
		must(t, err)
	}
	settle(t, s, registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
	list, err := s.Store.Items(t.Context(), registry.ItemQuery{ParentID: r.BatchID, Limit: 500})
	must(t, err)
	return r.BatchID, list.Rows
}

func contains(t *testing.T, where, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %q:\n%s", where, want, text)
		}
	}
}

// TestBatch_Filters: each filter has an address, which lists what it counts.
func TestBatch_Filters(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	batch, jobs := fill(t, s, 3)
	settle(t, s, registry.Settlement{Lease: claim(t, s, registry.Estimate), Outcome: registry.OutcomeDone})
	settle(t, s, registry.Settlement{Lease: claim(t, s, registry.Estimate), Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "404 " + hostile})
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[2].ID, Reason: hostile, Actor: "ann"}))
	rows := func(address string) int {
		text := s.Get(t, "/batches/"+batch+address, http.StatusOK)
		if strings.Contains(text, "<script>") {
			t.Errorf("%s obeys a hostile name", address)
		}
		return strings.Count(text, `<tr id="job-`)
	}
	for address, want := range map[string]int{
		"": 3, "?show=failed": 1, "?show=held": 1, "?show=waiting": 1, "?show=running": 0, "?show=completed": 0, "?stage=provision": 1, "?stage=estimate": 2, "?show=failed&stage=provision": 0,
	} {
		if got := rows(address); got != want {
			t.Errorf("%q lists %d jobs, want %d", address, got, want)
		}
	}
	text := s.Get(t, "/batches/"+batch, http.StatusOK)
	contains(t, "the batch", text, `?show=held#jobs">held <span class="figures">1<`, `?show=waiting#jobs">waiting <span class="figures">1<`, "held by ann", "Failures by cause")
	for _, wrong := range []string{"?show=nonsense", "?stage=nonsense"} {
		s.Get(t, "/batches/"+batch+wrong, http.StatusBadRequest)
	}
}

// TestTitles: lists and pages show a job by its title, with the name of its file below.
func TestTitles(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	batch, job := titled(t, s)
	for address, want := range map[string]string{
		"/batches/" + batch:  `>Harbour at dusk</a></span><span class="clip note">plate-1.tif</span>`,
		"/deposits/" + batch: `>Harbour at dusk</span><span class="clip note">plate-1.tif</span>`,
		"/items":             `>Harbour at dusk</a></span><span class="clip note">plate-1.tif</span>`,
		"/items?col=batch":   `<td data-label="Batch"><span class="clip"><a href="/batches/` + batch + `" title="` + batch + `">Glass plates</a>`,
		"/items/" + job:      "<h1>Harbour at dusk</h1>\n<p class=\"note\">plate-1.tif</p>",
	} {
		text := s.Get(t, address, http.StatusOK)
		contains(t, address, text, want)
	}
}

// titled makes a batch of a job that has a title and one that has only the batch's.
func titled(t testing.TB, s *uitest.Server) (batch, job string) {
	t.Helper()
	r, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "plates.checkm", Actor: "ann", Spec: registry.Spec{Type: registry.BatchManifest, URL: "http://h.test/a", Title: "Glass plates"}})
	must(t, err)
	l := claim(t, s, registry.Expand)
	_, err = s.Store.AddJobs(t.Context(), l, []registry.NewJob{
		{Line: 1, Name: "plate-1.tif", Spec: registry.Spec{URL: "http://h.test/1", Title: "Harbour at dusk"}},
		{Line: 2, Name: "plate-2.tif", Spec: registry.Spec{URL: "http://h.test/2", Title: "Glass plates", TitleShared: true}},
	})
	must(t, err)
	settle(t, s, registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
	list, err := s.Store.Items(t.Context(), registry.ItemQuery{ParentID: r.BatchID})
	must(t, err)
	return r.BatchID, list.Rows[0].ID
}

// TestBatch_Large: a page of a large batch is bounded, and leads to the next and the first page.
func TestBatch_Large(t *testing.T) {
	const jobs, most = 1200, 300 << 10
	s := uitest.New(t, uitest.Options{})
	batch, _ := fill(t, s, jobs)
	text := s.Get(t, "/batches/"+batch, http.StatusOK)
	if n := strings.Count(text, `<tr id="job-`); n != 100 || len(text) > most {
		t.Errorf("the page lists %d jobs in %d bytes", n, len(text))
	}
	contains(t, "the batch", text, "0 of 1,200 jobs completed", `rel="next"`)
	turn := func(text string, to string) string {
		before, _, _ := strings.Cut(text, `" rel="`+to)
		address, _, _ := strings.Cut(before[strings.LastIndex(before, `"`)+1:], "#")
		return s.Get(t, strings.ReplaceAll(address, "&amp;", "&"), http.StatusOK)
	}
	text = turn(text, "next")
	contains(t, "the second page", text, "plate-101.tif", "plate-200.tif", `rel="next"`)
	contains(t, "the first page again", turn(text, "prev"), "plate-1.tif", "plate-100.tif")
}

// TestItem_WayOn: a page has the one button that lets the item go on.
func TestItem_WayOn(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	reader := *s
	batch, jobs := fill(t, s, 2)
	s.Token = s.TokenOf(t, "an operator", registry.RoleOperator)
	failed := claim(t, s, registry.Estimate)
	settle(t, s, registry.Settlement{Lease: failed, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "disk " + hostile})
	late := claim(t, s, registry.Estimate)
	settle(t, s, registry.Settlement{Lease: late, Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "down", MaxAttempts: 5, Delay: time.Hour})
	main := func(act, of string) string {
		return `action="/items/` + of + `/acts" method="get" class="buttons"><button class="main" name="act" value="` + act + `"`
	}
	contains(t, "a failed item", s.Get(t, "/items/"+failed.ItemID, http.StatusOK), main("requeue", failed.ItemID), "Failed at estimate")
	contains(t, "a late item", s.Get(t, "/items/"+late.ItemID, http.StatusOK), main("retry-now", late.ItemID), "Retry at")
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldBatch, Key: batch, Reason: "r", Actor: "ann"}))
	contains(t, "an item of a held batch", s.Get(t, "/items/"+late.ItemID, http.StatusOK), main("release-hold", batch))
	contains(t, "a held batch", s.Get(t, "/batches/"+batch, http.StatusOK), main("release-hold", batch))
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldAll, Reason: "r", Actor: "ann"}))
	if text := s.Get(t, "/items/"+late.ItemID, http.StatusOK); strings.Count(text, "<dt>Held by</dt>") != 2 {
		t.Errorf("an item under two holds does not name both:\n%s", text)
	}
	must(t, s.Store.RemoveHold(t.Context(), registry.HoldBatch, batch, "ann"))
	contains(t, "an item of a paused queue", s.Get(t, "/items/"+late.ItemID, http.StatusOK), `href="/holds/release?key=&amp;next=%2Fitems%2F`+late.ItemID+`&amp;scope=all">Release the hold`)
	for _, path := range []string{"/items/" + failed.ItemID, "/items/" + jobs[1].ID, "/batches/" + batch} {
		if text := reader.Get(t, path, http.StatusOK); strings.Contains(text, "/acts") || strings.Contains(text, "release it") {
			t.Errorf("%s has buttons for readers", path)
		}
	}
}

// TestAct_Preview: the form of an act says how the item would be, without a change.
func TestAct_Preview(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	_, jobs := fill(t, s, 1)
	s.Token = s.TokenOf(t, "an operator", registry.RoleOperator)
	path := "/items/" + jobs[0].ID + "/acts?act="
	text := s.Get(t, path+"abort", http.StatusOK)
	contains(t, "the form", text, "Aborted</span>", "The job ends for good", `name="confirm" value="yes"`, "Abort with these consequences")
	contains(t, "the form", s.Get(t, path+"hold", http.StatusOK), "Held</span>", "starts no further step")
	if it, err := s.Store.Item(t.Context(), jobs[0].ID); err != nil || it.Status != registry.Pending || it.HeldBy != nil {
		t.Errorf("a form left %+v, %v", it, err)
	}
}

// TestRedeliver_Jobs: the outcomes of all jobs of a batch are delivered again by one form, once
// however often it is sent; what is not finished is left out.
func TestRedeliver_Jobs(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	batch, _ := fill(t, s, 3)
	path := "/batches/" + batch + "/redeliver"
	s.Get(t, path, http.StatusForbidden)
	if w := s.Post(t, path, url.Values{"key": {"k"}}); w.Code != http.StatusForbidden {
		t.Errorf("a reader's form: %d", w.Code)
	}
	s.Token = s.TokenOf(t, "an operator", registry.RoleOperator)
	for range 2 {
		settle(t, s, registry.Settlement{Lease: claim(t, s, registry.Estimate), Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	}
	contains(t, "the form", s.Get(t, path, http.StatusOK), "the outcomes of 2 jobs once more", `name="key"`)
	if w := s.Post(t, path, url.Values{"key": {"k"}, "reason": {hostile}}); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Refused") {
		t.Errorf("without a callback: %d %s", w.Code, w.Body)
	}
	it, err := s.Store.Item(t.Context(), batch)
	must(t, err)
	must(t, s.Store.PutCollection(t.Context(), registry.Collection{Mnemonic: it.Collection, Profile: registry.Profile{Owner: "o", Callback: &registry.Callback{URL: "https://told.test/"}}}, "ann"))
	for range 2 {
		w := s.Post(t, path, url.Values{"key": {"k2"}, "reason": {"lost"}})
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/subscriptions?deliveries=pending#deliveries" {
			t.Fatalf("%d to %q: %s", w.Code, to, w.Body)
		}
	}
	found, err := s.Store.Items(t.Context(), registry.ItemQuery{Action: registry.DeliverMessage})
	must(t, err)
	if len(found.Rows) != 2 {
		t.Errorf("%d items deliver, want 2", len(found.Rows))
	}
}

// TestRedeliver: the form says why nothing can be delivered, and is not for readers.
func TestRedeliver(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	_, jobs := fill(t, s, 1)
	path := "/items/" + jobs[0].ID + "/redeliver"
	s.Get(t, path, http.StatusForbidden)
	if w := s.Post(t, path, url.Values{"reason": {"r"}}); w.Code != http.StatusForbidden {
		t.Errorf("a reader's form: %d", w.Code)
	}
	s.Token = s.TokenOf(t, "an operator", registry.RoleOperator)
	contains(t, "the form", s.Get(t, path, http.StatusOK), "Deliver again", `name="key"`)
	if w := s.Post(t, path, url.Values{"reason": {hostile}}); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "Refused") || strings.Contains(w.Body.String(), "<script>") {
		t.Errorf("a job without a receiver: %d %s", w.Code, w.Body)
	}
	if w := s.Post(t, path, url.Values{"reason": {strings.Repeat("x", 2001)}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a long reason: %d", w.Code)
	}
}
