package queue_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails unless a page has all texts of some and none of others.
func wants(t testing.TB, text string, has []string, not ...string) {
	t.Helper()
	for _, want := range has {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	for _, unwanted := range not {
		if strings.Contains(text, unwanted) {
			t.Errorf("the page has %q:\n%s", unwanted, text)
		}
	}
}

// does posts a form, which must lead somewhere.
func does(t testing.TB, s *uitest.Server, path, to string, form url.Values) {
	t.Helper()
	if w := s.Post(t, path, form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
		t.Fatalf("%s %v: %d to %q, want %q: %s", path, form, w.Code, w.Header().Get("Location"), to, w.Body)
	}
}

func submit(t testing.TB, s *uitest.Server) string {
	t.Helper()
	r, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "plates", Actor: "ann", Spec: registry.Spec{URL: "http://h.test/a"}})
	must(t, err)
	return r.BatchID
}

// TestOperations_Pipeline checks that each stage shows its figures, which lead to their items.
func TestOperations_Pipeline(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	submit(t, s)
	held := submit(t, s)
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldBatch, Key: held, Reason: "look", Actor: "ann"}))
	must(t, s.Store.NoteThroughput(t.Context()))
	for _, span := range registry.ThroughputSpans() {
		text := s.Get(t, "/operations?span="+string(span), http.StatusOK)
		_, row, _ := strings.Cut(text, `<tr id="stage-expand" data-live>`)
		row, _, _ = strings.Cut(row, "</tr>")
		wants(t, html.UnescapeString(row), []string{
			`href="/items?q=stage%3Aexpand+status%3Apending+held%3Ano+delayed%3Ano">1</a>`, "no worker", `href="/items?q=stage%3Aexpand+held%3Ayes">1</a>`, `<rect class="ready"`, `<rect class="still"`,
		})
		wants(t, text, []string{`id="chart-preserved" data-live`, `<tr id="stage-notify" data-live>`, "No worker is alive", `class="gap"`, `aria-current="true">`}, `id="stage-scan"`, "/operations/act")
	}
	s.Get(t, "/operations?span=year", http.StatusBadRequest)
	s.Get(t, "/operations/act?do=pause", http.StatusForbidden)
	if w := s.Post(t, "/operations/act", url.Values{"do": {"pause"}, "reason": {"r"}}); w.Code != http.StatusForbidden {
		t.Errorf("a viewer pauses: %d", w.Code)
	}
}

// checkedLate is a Registry with files that were not checked in time.
type checkedLate struct{ scope.Registry }

func (checkedLate) Holdings(context.Context) (registry.Holdings, error) {
	return registry.Holdings{Files: 100, Late: 2, FixityDays: 90, Checked: []registry.CheckedWithin{{Days: 30, Files: 40}, {Days: 90, Files: 97}, {Days: 365, Files: 100}}}, nil
}

// TestOperations_Coverage checks that the page says what share of the files was checked within which time.
func TestOperations_Coverage(t *testing.T) {
	s := uitest.New(t, uitest.Options{Registry: func(r scope.Registry) scope.Registry { return checkedLate{r} }})
	_, text, _ := strings.Cut(s.Get(t, "/operations", http.StatusOK), `<div id="coverage" data-live>`)
	wants(t, text, []string{"40 % of the files checked within 30 days", "97 % of the files checked within 90 days", "100 % of the files checked within 365 days", "2 files were not checked in time"})
}

// TestOperations_Acts checks each act of the page, as an operator asks it.
func TestOperations_Acts(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	s.Token = s.TokenOf(t, "op", registry.RoleAdmin)
	_, err := s.Store.Renew(t.Context(), registry.RenewRequest{Lease: time.Minute, Worker: registry.WorkerInfo{
		ID: "host-1-a", Version: "1.2", Capacity: map[registry.Stage]int{registry.Download: 4}, Free: map[registry.Stage]int{registry.Download: 1},
	}})
	must(t, err)
	act := func(do, reason string) {
		t.Helper()
		text := s.Get(t, "/operations/act?do="+do, http.StatusOK)
		wants(t, text, []string{`name="do" value="` + do + `"`})
		does(t, s, "/operations/act", "/operations", url.Values{"do": {do}, "reason": {reason}, "minutes": {"5"}, "worker": {"host-1-a"}})
	}
	wants(t, s.Get(t, "/operations", http.StatusOK), []string{"host-1-a", "0 of 4", "download 0/4", "60 s", "do=pause", "do=drain", "do=refuse", "do=hold-worker&amp;worker=host-1-a"}, "do=resume", "do=accept")
	act("pause", "moving <b>")
	wants(t, s.Get(t, "/operations", http.StatusOK), []string{"The queue is paused", "by op: moving &lt;b&gt;.", "do=resume"}, "do=pause")
	act("resume", "")
	act("drain", "upgrade")
	wants(t, s.Get(t, "/operations", http.StatusOK), []string{"Draining since", "workers can be stopped", "do=resume"})
	act("resume", "")
	act("refuse", "full")
	wants(t, s.Get(t, "/operations", http.StatusOK), []string{"Submissions are not accepted", "do=accept"}, "is paused", "Draining")
	act("accept", "room again")
	act("hold-worker", "a new version")
	wants(t, s.Get(t, "/operations", http.StatusOK), []string{"drained", `key=host-1-a`}, "not accepted")
	w := s.Post(t, "/operations/act", url.Values{"do": {"pause"}, "reason": {" "}})
	wants(t, w.Body.String(), []string{"Refused"})
	if w.Code != http.StatusUnprocessableEntity {
		t.Errorf("no reason: %d", w.Code)
	}
	limit := url.Values{"scope": {"stage"}, "key": {"download"}, "most": {"2"}}
	does(t, s, "/operations/limits", "/operations#limits", limit)
	wants(t, s.Get(t, "/operations", http.StatusOK), []string{"at most 2", "stage download"})
	limit.Set("do", "remove")
	does(t, s, "/operations/limits", "/operations#limits", limit)
	wants(t, s.Get(t, "/operations", http.StatusOK), []string{"No limit is set"})
}

// TestHome checks where the first page leads.
func TestHome(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	for from, to := range map[string]string{"/": "/operations", "/?q=state%3Afailed": "/items?q=state%3Afailed"} {
		if w := s.Send(t, http.MethodGet, from, nil); w.Code != http.StatusFound || w.Header().Get("Location") != to {
			t.Errorf("%s: %d to %q", from, w.Code, w.Header().Get("Location"))
		}
	}
}
