package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestShortID checks short ids in all paths of the API and the pages. They are completed if they
// are unique among the visible ids; ambiguous ones are reported. Workers' operations take complete
// ids only.
func TestShortID(t *testing.T) {
	b, theirs := isolated(t)
	const before = "/api/v1"
	c := b.as(t, registry.RoleDepositor)
	sent, err := c.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	mine := sent.BatchID
	b.pass(time.Hour) // ids begin with the time
	graph, err := c.Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a"), linked("b", "a")}})
	must(t, err)
	token, err := b.as(t, registry.RoleAdmin).CreateToken(t.Context(), wire.TokenRequest{Name: "ann", Role: "viewer"})
	must(t, err)
	on, err := b.store.BeginUpload(t.Context(), registry.NewUpload{
		ID: "01999999-aaaa-7999-8999-999999999999", Filename: "f", SizeBytes: 9, CreatedBy: "the depositor", Keep: time.Hour,
	})
	must(t, err)
	own := []string{"Authorization", "Bearer " + tokenText(registry.RoleDepositor)}
	admin := []string{"Authorization", "Bearer " + tokenText(registry.RoleAdmin)}
	for _, c := range []struct {
		method, path, body string
		as                 []string
		status             int
		says               string
	}{
		{"GET", "/items/" + mine[:18], "", own, 200, mine},
		{"GET", "/items/" + strings.ToUpper(mine[:20]), "", own, 200, mine},
		{"GET", "/items/" + mine[:18] + "/history", "", own, 200, ""},
		{"GET", "/batches/" + mine[:18] + "/progress", "", own, 200, ""},
		{"GET", "/graphs/" + graph.GraphID[:18], "", own, 200, graph.GraphID},
		{"GET", "/uploads/" + on.ID[:8], "", own, 200, on.ID},
		{"POST", "/graphs/" + graph.GraphID[:18] + "/seal", "", own, 200, ""},
		{"POST", "/items/" + mine[:18] + "/commands", `{"act":"cancel","reason":"a test"}`, admin, 200, ""},
		{"DELETE", "/tokens/" + token.Token.ID[:8], "", admin, 204, ""},
		// Of both items of the graph, which were made in one moment.
		{"GET", "/items/" + graph.Items["a"][:8], "", own, 422, graph.Items["b"]},
		// Too short, of nobody, and of somebody else.
		{"GET", "/items/" + mine[:7], "", own, 404, ""},
		{"GET", "/items/01999999", "", own, 404, ""},
		{"GET", "/items/" + theirs.job[:30], "", own, 404, ""},
		{"GET", "/graphs/" + theirs.graph[:30], "", own, 404, ""},
		{"DELETE", "/tokens/" + token.Token.ID[:8], "", own, 403, ""},
	} {
		answer, text := b.send(t, c.method, before+c.path, c.body, c.as...)
		if answer.StatusCode != c.status && (c.status != 200 || answer.StatusCode/100 != 2) || !strings.Contains(text, c.says) {
			t.Errorf("%s %s: %d %s; want %d with %q", c.method, c.path, answer.StatusCode, text, c.status, c.says)
		}
		for _, id := range []string{theirs.job, theirs.batch, theirs.graph, theirs.node} {
			if strings.Contains(text, id) && !strings.Contains(c.path, id) {
				t.Errorf("%s %s tells of %s: %s", c.method, c.path, id, text)
			}
		}
	}
	it, err := b.store.Item(t.Context(), mine)
	must(t, err)
	if it.Status != registry.Cancelled {
		t.Errorf("the batch is %s: the act went elsewhere", it.Status)
	}
	if g, err := b.store.Graph(t.Context(), graph.GraphID); err != nil || !g.Sealed {
		t.Errorf("the graph was not sealed: %v", err)
	}
	worker := []string{"Authorization", "Bearer " + tokenText(registry.RoleWorker)}
	path := fmt.Sprintf("%s/items/%s/attempts/1/results", before, mine[:18])
	if answer, text := b.send(t, http.MethodPost, path, `{"name":"x","value":1}`, worker...); answer.StatusCode/100 == 2 || strings.Contains(text, mine) {
		t.Errorf("a worker's operation took an id in short: %d %s", answer.StatusCode, text)
	}
	if answer, text := b.send(t, http.MethodGet, "/items/"+mine[:18], "", own...); answer.StatusCode != http.StatusOK || !strings.Contains(text, mine) {
		t.Errorf("the page of an id in short: %d %s", answer.StatusCode, text)
	}
	if answer, text := b.send(t, http.MethodGet, "/items/"+graph.Items["a"][:8], "", own...); answer.StatusCode != http.StatusOK || !strings.Contains(text, graph.Items["b"]) {
		t.Errorf("the page of an id that could be several: %d %s", answer.StatusCode, text)
	}
}

// TestShortID_Inputs checks short ids in bodies, parameters and queries.
func TestShortID_Inputs(t *testing.T) {
	b, theirs := isolated(t)
	ctx, c, admin := t.Context(), b.as(t, registry.RoleDepositor), b.as(t, registry.RoleAdmin)
	sent, err := c.Submit(ctx, wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	mine := sent.BatchID
	b.pass(time.Hour) // ids begin with the time
	other, err := c.Submit(ctx, wire.SubmitRequest{URL: "http://h.test/b"}, "")
	must(t, err)
	b.pass(time.Hour)
	pair, err := c.Prepare(ctx, registry.Graph{Nodes: []registry.Node{linked("a"), linked("b", "a")}})
	must(t, err)
	b.pass(time.Hour)
	stored := b.upload(t, "f.txt", "text")
	short, twice := func(id string) string { return id[:18] }, pair.Items["a"][:8]
	own, all := []string{"Authorization", "Bearer " + tokenText(registry.RoleDepositor)}, []string{"Authorization", "Bearer " + tokenText(registry.RoleAdmin)}
	for _, tt := range []struct {
		method, path, body string
		as                 []string
		status             int
		says               string
	}{
		{"GET", "/items?parent=" + short(mine), "", own, 200, `"rows"`},
		{"GET", "/items?q=batch:" + short(mine) + "," + short(other.BatchID), "", own, 200, `"rows"`},
		{"GET", "/items/count?q=batch:" + short(mine), "", own, 200, `"total":0`},
		{"GET", "/failures?q=-batch:" + short(mine), "", own, 200, `"rows"`},
		{"GET", "/feed?item=" + short(mine), "", all, 200, mine},
		{"POST", "/batches", `{"url":"http://h.test/c","requires":[{"item_id":"` + short(mine) + `"}]}`, own, 202, ""},
		{"POST", "/graphs", `{"graph_id":"` + short(pair.GraphID) + `","nodes":[{"key":"c","url":"http://h.test/d","requires":[{"item_id":"` + short(other.BatchID) + `"}]}]}`, own, 201, pair.GraphID},
		{"POST", "/batches", `{"upload_id":"` + short(stored.ID) + `"}`, own, 202, ""},
		{"POST", "/holds", `{"scope":"batch","key":"` + short(mine) + `","reason":"look"}`, all, 200, mine},
		{"DELETE", "/holds?scope=batch&key=" + short(mine), "", all, 204, ""},
		{"POST", "/bulk", `{"query":"batch:` + short(mine) + `","act":"cancel"}`, all, 202, "batch:" + mine},
		// Of both items of the graph.
		{"GET", "/items?q=batch:" + twice, "", own, 422, pair.Items["b"]},
		{"POST", "/bulk", `{"query":"state:failed batch:` + twice + `","act":"cancel"}`, all, 422, "body.query"},
		{"POST", "/holds", `{"scope":"item","key":"` + twice + `","reason":"look"}`, all, 422, "body.key"},
		{"POST", "/graphs", `{"nodes":[{"key":"c","url":"http://h.test/d","requires":[{"item_id":"` + twice + `"}]}]}`, own, 422, "body.nodes[0].requires[0].item_id"},
		// Of somebody else: as if there were none.
		{"GET", "/items?parent=" + theirs.batch[:30], "", own, 200, `"rows":[]`},
		{"GET", "/items?q=batch:" + theirs.batch[:30], "", own, 200, `"rows":[]`},
		{"POST", "/batches", `{"url":"http://h.test/e","requires":[{"item_id":"` + theirs.job[:30] + `"}]}`, own, 404, "not found"},
		{"POST", "/graphs", `{"graph_id":"` + theirs.graph[:30] + `","nodes":[{"key":"c","url":"http://h.test/f"}]}`, own, 404, ""},
	} {
		answer, text := b.send(t, tt.method, "/api/v1"+tt.path, tt.body, tt.as...)
		if answer.StatusCode != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("%s %s %s: %d %s; want %d with %q", tt.method, tt.path, tt.body, answer.StatusCode, text, tt.status, tt.says)
		}
		for _, id := range []string{theirs.job, theirs.batch, theirs.graph, theirs.node} {
			if strings.Contains(text, id) && tt.as[1] == own[1] {
				t.Errorf("%s %s %s tells of %s: %s", tt.method, tt.path, tt.body, id, text)
			}
		}
	}
	after, err := admin.Items(ctx, registry.ItemQuery{Action: registry.Batch, Limit: 500})
	must(t, err)
	waits := 0
	for _, it := range after.Rows {
		requires, _, err := b.store.Edges(ctx, it.ID)
		must(t, err)
		for _, e := range requires {
			if e.RequiresID == mine || e.RequiresID == other.BatchID {
				waits++
			}
		}
	}
	if waits != 2 {
		t.Errorf("%d batches wait for those that were named in short, want 2", waits)
	}
	if answer, text := b.send(t, http.MethodGet, "/?q=batch:"+short(mine), "", own...); answer.StatusCode != http.StatusOK || !strings.Contains(text, "batch:"+mine) {
		t.Errorf("a search for the jobs of a batch: %d %s", answer.StatusCode, text)
	}
	if answer, text := b.send(t, http.MethodGet, "/?q=batch:"+twice, "", own...); answer.StatusCode != http.StatusOK || !strings.Contains(text, pair.Items["a"]) || !strings.Contains(text, pair.Items["b"]) {
		t.Errorf("a search for the jobs of what could be several batches: %d %s", answer.StatusCode, text)
	}
}

// TestShortID_Worker checks that short ids reveal nothing to a token that may see nothing: it is
// refused as with a complete id, and audited.
func TestShortID_Worker(t *testing.T) {
	b, _ := isolated(t)
	const hidden = "the-name-of-a-file"
	sent, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/" + hidden, Filename: hidden}, "")
	must(t, err)
	b.pass(time.Hour)
	graph, err := b.as(t, registry.RoleDepositor).Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a"), linked("b", "a")}})
	must(t, err)
	var uploads []string
	for _, end := range []string{"1", "2"} {
		on, err := b.store.BeginUpload(t.Context(), registry.NewUpload{
			ID: "01999999-aaaa-7999-8999-99999999999" + end, Filename: hidden, SizeBytes: 9, CreatedBy: "the depositor", Keep: time.Hour,
		})
		must(t, err)
		uploads = append(uploads, on.ID)
	}
	ids := append(uploads, sent.BatchID, graph.GraphID, graph.Items["a"], graph.Items["b"])
	worker := []string{"Authorization", "Bearer " + tokenText(registry.RoleWorker)}
	for _, tt := range []struct{ method, kind, id, rest, body string }{
		{"GET", "items", sent.BatchID[:18], "", ""},
		{"GET", "items", graph.Items["a"][:8], "", ""}, // which begins both
		{"GET", "batches", graph.Items["a"][:8], "", ""},
		{"GET", "batches", graph.Items["a"][:8], "/report.csv", ""},
		{"POST", "items", graph.Items["a"][:8], "/commands", `{"act":"cancel","reason":"a test"}`},
		{"GET", "graphs", graph.GraphID[:8], "", ""},
		{"GET", "uploads", uploads[0][:8], "", ""},
		{"DELETE", "uploads", uploads[0][:8], "", ""},
		{"DELETE", "tokens", "hiveb", "", ""},
	} {
		before := len(b.entries(t))
		path := "/api/v1/" + tt.kind + "/" + tt.id + tt.rest
		answer, text := b.send(t, tt.method, path, tt.body, worker...)
		wantProblem(t, answer, text, http.StatusForbidden, wire.CodeForbidden)
		for _, id := range append(ids, hidden) {
			if strings.Contains(text, id) {
				t.Errorf("%s %s tells %s: %s", tt.method, path, id, text)
			}
		}
		if got := b.entries(t); len(got) != before+1 || got[0] != registry.EventRefused {
			t.Errorf("%s %s: audit log %v, want one refusal more than the %d entries before", tt.method, path, got, before)
		}
		if answer, _ := b.send(t, http.MethodGet, "/"+tt.kind+"/"+tt.id, "", worker...); answer.StatusCode != http.StatusForbidden {
			t.Errorf("the page /%s/%s: %d", tt.kind, tt.id, answer.StatusCode)
		}
	}
}
