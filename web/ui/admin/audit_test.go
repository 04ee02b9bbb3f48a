package admin_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

func TestAudit(t *testing.T) {
	s := withKeys(t)
	operator := as(t, s, registry.RoleOperator)
	s.Get(t, "/audit", http.StatusForbidden)
	if w := s.Send(t, http.MethodGet, "/audit.csv", nil); w.Code != http.StatusForbidden {
		t.Errorf("a viewer gets the CSV: %d", w.Code)
	}
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldCollection, Key: "default", Reason: `=HYPERLINK("http://evil.test")`, Actor: `=cmd|' /C calc'!A0`}))
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldCollection, Key: "default", Reason: hostile, Actor: "+1"}))
	must(t, s.Store.AddToken(t.Context(), registry.Token{ID: "t1", Hash: "h1", Name: "made", Role: registry.RoleViewer, CreatedBy: "root"}))
	r, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "plates", Actor: "-ann", Spec: registry.Spec{URL: "http://h.test/1", Title: "Glass <b>plates"}})
	must(t, err)
	text := operator.Get(t, "/audit", http.StatusOK)
	has(t, text, `href="/batches/`+r.BatchID+`" title="`+r.BatchID+`">Glass &lt;b&gt;plates</a>`, `href="/tokens#token-t1"`, "&lt;script&gt;", `/audit.csv?`, "submit")
	has(t, text, "may not call list-audit", "refused", "403 forbidden", "request ")
	lacks(t, text, "<script>alert", "<img")
	text = operator.Get(t, "/audit?actor=-ann&types=submit%2C+hold", http.StatusOK)
	has(t, text, `value="-ann"`, `value="submit hold"`, r.BatchID)
	lacks(t, text, "/tokens#token-")
	has(t, operator.Get(t, "/audit?until=2001-01-01", http.StatusOK), "No entry matches")
	has(t, operator.Get(t, "/audit?since=2001-01-01", http.StatusOK), r.BatchID)
	operator.Get(t, "/audit?since=yesterday", http.StatusBadRequest)
	w := operator.Send(t, http.MethodGet, "/audit.csv", nil)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("status %d, %v", w.Code, w.Header())
	}
	rows, err := csv.NewReader(w.Body).ReadAll()
	must(t, err)
	var actors []string
	for _, row := range rows {
		actors = append(actors, row[1])
		for _, cell := range row {
			if strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r") {
				t.Errorf("the cell %q is a formula", cell)
			}
		}
	}
	if all := strings.Join(actors, "\n"); !strings.Contains(all, `'=cmd|' /C calc'!A0`) || !strings.Contains(all, "'+1") || !strings.Contains(all, "'-ann") {
		t.Errorf("actors:\n%s", all)
	}
}

// TestAudit_Whole checks that the file has the entries of all pages, and that pages lead back and forth.
func TestAudit_Whole(t *testing.T) {
	const many = 510
	s := withKeys(t)
	operator := as(t, s, registry.RoleOperator)
	for i := range many {
		must(t, s.Store.Refused(t.Context(), registry.Refusal{Actor: "bot", Code: "forbidden", Status: 403, Operation: fmt.Sprintf("GET /no/%03d", i), Detail: "no"}))
	}
	rows, err := csv.NewReader(operator.Send(t, http.MethodGet, "/audit.csv?actor=bot", nil).Body).ReadAll()
	must(t, err)
	if len(rows) != many+1 || rows[1][3] != "GET /no/509" || rows[many][3] != "GET /no/000" {
		t.Errorf("%d rows, from %v to %v", len(rows), rows[1], rows[len(rows)-1])
	}
	first := operator.Get(t, "/audit?actor=bot", http.StatusOK)
	second := operator.Get(t, linkOf(t, first, "next"), http.StatusOK)
	has(t, second, "GET /no/459", "GET /no/410")
	lacks(t, second, "GET /no/460", "GET /no/409")
	again := operator.Get(t, linkOf(t, second, "prev"), http.StatusOK)
	has(t, again, "GET /no/509", "GET /no/460")
	lacks(t, first, `rel="prev"`)
}

// linkOf is the address of a page's link to the next or previous page.
func linkOf(t testing.TB, text, rel string) string {
	t.Helper()
	m := regexp.MustCompile(`<a href="([^"]*)" rel="` + rel + `"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no link to %s:\n%s", rel, mainOf(text))
	}
	to, err := url.PathUnescape(strings.ReplaceAll(m[1], "&amp;", "&"))
	must(t, err)
	return to
}

// TestEvidence: the form leads to a report, and says on a page what is wrong.
func TestEvidence(t *testing.T) {
	s := withKeys(t)
	operator := as(t, s, registry.RoleOperator)
	s.Get(t, "/evidence", http.StatusForbidden)
	has(t, operator.Get(t, "/evidence", http.StatusOK), `action="/evidence.zip"`, `type="date"`, ">default</option>")
	w := operator.Send(t, http.MethodGet, "/evidence.zip?from=2026-01-01&to=2026-01-31&collection=default", nil)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/api/v1/evidence-report?collection=default&from=2026-01-01&to=2026-01-31" {
		t.Errorf("status %d, %s", w.Code, to)
	}
	if w := s.Send(t, http.MethodGet, "/evidence.zip?from=2026-01-01&to=2026-01-31", nil); w.Code != http.StatusForbidden {
		t.Errorf("a viewer: %d", w.Code)
	}
	has(t, operator.Get(t, "/evidence.zip?from=2026-02-01&to=2026-01-31", http.StatusUnprocessableEntity), "before the first day")
	has(t, operator.Get(t, "/evidence.zip?from=2026-02-01&to=2999-01-31", http.StatusUnprocessableEntity), "in the future")
	operator.Get(t, "/evidence.zip?from=2026-02-01", http.StatusUnprocessableEntity)
	operator.Get(t, "/evidence.zip?from=2026-01-01&to=2026-01-31&collection=none", http.StatusNotFound)
}
