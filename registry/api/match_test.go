package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
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
		q, err := registry.ParseQuery(tt.text)
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

// A query that cannot be read is a problem that names the place and what there is.
func TestItems_BadQuery(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/items", "/items/count", "/batches"} {
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
