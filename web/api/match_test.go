package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/wire"
)

func TestItems_Query(t *testing.T) {
	b := newBench(t)
	batchID, jobID := b.batchOf(t, "field-notes")
	other, _ := b.batchOf(t, "letters")
	c := b.as(t, registry.RoleViewer)
	for _, tt := range []struct {
		text           string
		items, batches []string
	}{
		{"FIELD-notes action:batch", []string{batchID}, []string{batchID}},
		{"batch:" + batchID, []string{jobID}, nil},
		{"-notes state:processing,pending action:batch", []string{other}, []string{other}},
		{"state:completed", nil, nil},
	} {
		q, err := query.Parse(tt.text)
		must(t, err)
		items, err := c.Items(t.Context(), registry.ItemQuery{Match: q})
		must(t, err)
		batches, err := c.Batches(t.Context(), registry.ItemQuery{Match: q})
		must(t, err)
		for _, list := range []struct {
			rows []registry.WorkItem
			want []string
		}{{items.Rows, tt.items}, {batches.Rows, tt.batches}} {
			var got []string
			for _, it := range list.rows {
				got = append(got, it.ID)
			}
			if diff := cmp.Diff(list.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.text, diff)
			}
		}
		counts, err := c.CountItems(t.Context(), registry.ItemQuery{Match: q})
		must(t, err)
		total := 0
		for _, n := range counts {
			total += int(n)
		}
		if total != len(tt.items) {
			t.Errorf("%s: counts %v, want %d", tt.text, counts, len(tt.items))
		}
	}
	counts, err := c.CountItems(t.Context(), registry.ItemQuery{Action: registry.Ingest, ParentID: batchID, Text: "field-notes", Stage: registry.Estimate, Status: registry.Pending, Collection: "default"})
	must(t, err)
	if diff := cmp.Diff(map[registry.State]int64{registry.StatePending: 1}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestItems_BadQuery checks that the problem of an invalid query names the position and the known
// fields.
func TestItems_BadQuery(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/items", "/items/count", "/batches", "/failures"} {
		answer, text := b.send(t, http.MethodGet, "/api/v1"+path+"?q=x+state:faild", "")
		p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
		if len(p.Faults) != 1 {
			t.Fatalf("%s: faults=%v, want one", path, p.Faults)
		}
		f := p.Faults[0]
		if f.Location != "query.q" || f.Column != 9 || f.Found != "faild" || !strings.Contains(f.Message, "did you mean failed?") || !strings.Contains(f.Expected, "held") {
			t.Errorf("%s: fault=%+v, want the place, the word and what there is", path, f)
		}
		answer, text = b.send(t, http.MethodGet, "/api/v1"+path+"?q="+strings.Repeat("x", 2001), "")
		wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
	}
}

// TestFailures checks that the API returns the same groups of failures as the store.
func TestFailures(t *testing.T) {
	b := newBench(t)
	_, bad := b.batchOf(t, "bad")
	b.settle(t, registry.Settlement{
		Lease: b.claim(t, registry.Estimate).Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "GET http://h.test/bad: 410 Gone", Code: "http-410", Host: "h.test",
	})
	batchID, _ := b.batchOf(t, "good")
	c := b.as(t, registry.RoleViewer)
	q := registry.ItemQuery{Match: registry.Query{Terms: []registry.Term{{Field: "action", Value: "ingest"}}}}
	want, err := b.store.Failures(t.Context(), q)
	must(t, err)
	got, err := c.Failures(t.Context(), q)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" || len(got.Rows) != 1 || got.Rows[0].ItemID != bad {
		t.Errorf("groups of %s (-want +got):\n%s", bad, diff)
	}
	if got, err = c.Failures(t.Context(), registry.ItemQuery{ParentID: batchID, Match: q.Match}); err != nil || len(got.Rows) != 0 {
		t.Errorf("of a batch without failures: %+v, %v", got, err)
	}
	if g := want.Rows[0]; g.Code != "http-410" || g.Host != "h.test" || g.Count != 1 || g.Stage != registry.Estimate {
		t.Errorf("group %+v", g)
	}
	answer, text := b.send(t, http.MethodGet, "/api/v1/failures?after=nonsense", "")
	wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
}
