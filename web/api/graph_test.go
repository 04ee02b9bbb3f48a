package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/wire"
)

// linked is a node of a URL that requires others by key.
func linked(key string, requires ...string) registry.Node {
	n := registry.Node{Key: key, Submission: registry.Submission{
		Collection: "default", Spec: registry.Spec{Type: registry.FileType, URL: "http://h.test/" + key, Title: "T"},
	}}
	for _, r := range requires {
		n.Submission.Requires = append(n.Submission.Requires, registry.Requirement{Key: r})
	}
	return n
}

func TestGraph_PrepareSealShow(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	p, err := c.Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a"), linked("b", "a")}, IdempotencyKey: "k"})
	must(t, err)
	again, err := c.Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a"), linked("b", "a")}, IdempotencyKey: "k"})
	must(t, err)
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("the repeat's answer is another one:\n%s", diff)
	}
	a, err := b.store.Item(t.Context(), p.Items["a"])
	must(t, err)
	if a.Status != registry.Prepare || a.CreatedBy != "the depositor" || a.Name != "a" || a.GraphID != p.GraphID {
		t.Errorf("item=%+v", a)
	}
	must(t, c.Seal(t.Context(), p.GraphID))
	must(t, c.Seal(t.Context(), p.GraphID))
	view, err := b.as(t, registry.RoleViewer).Graph(t.Context(), p.GraphID)
	must(t, err)
	want, err := b.store.Graph(t.Context(), p.GraphID)
	must(t, err)
	if !view.Sealed || len(view.Items) != 2 || !cmp.Equal(view.Keys, want.Keys) || !cmp.Equal(view.Edges, want.Edges) {
		t.Errorf("graph=%+v, want %+v", view, want)
	}
	requires, required, err := c.Edges(t.Context(), p.Items["b"])
	must(t, err)
	if len(requires) != 1 || requires[0].RequiresID != p.Items["a"] || len(required) != 0 {
		t.Errorf("edges of b: %v, %v", requires, required)
	}
	answer, text := b.send(t, http.MethodGet, "/api/v1/items/"+p.Items["a"]+"/edges", "")
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"requires":[]`) {
		t.Errorf("edges of a: %s", text)
	}
	r, err := c.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/c", Requires: []registry.Requirement{{ItemID: p.Items["b"]}}}, "")
	must(t, err)
	why, err := c.Why(t.Context(), r.BatchID)
	must(t, err)
	if why.Reason != registry.ReasonBlocked || !strings.Contains(why.Sentence, p.Items["b"]) {
		t.Errorf("why=%+v", why)
	}
}

func TestGraph_Refusals(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	p, err := c.Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a", "b"), linked("b", "a")}})
	must(t, err)
	err = c.Seal(t.Context(), p.GraphID)
	problem := problemOf(t, err, http.StatusConflict, wire.CodeCycle)
	var cycle *registry.CycleError
	if !errors.As(err, &cycle) || len(cycle.Items) != 2 || !slices.Equal(cycle.Items, problem.Cycle) {
		t.Errorf("cycle=%v of problem %+v", cycle, problem)
	}
	_, err = c.Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a"), linked("b", "nobody")}})
	problem = problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeGraph)
	var wrong *registry.GraphError
	if !errors.As(err, &wrong) || wrong.Key != "b" || problem.Faults[0].Location != "body.nodes[1]" {
		t.Errorf("graph error=%v of problem %+v", wrong, problem)
	}
	sealed, err := c.Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a")}})
	must(t, err)
	must(t, c.Seal(t.Context(), sealed.GraphID))
	_, err = c.Prepare(t.Context(), registry.Graph{ID: sealed.GraphID, Nodes: []registry.Node{linked("b")}})
	problemOf(t, err, http.StatusConflict, wire.CodeSealed)
	if !errors.Is(err, registry.ErrSealed) {
		t.Errorf("error=%v, want ErrSealed", err)
	}
	for name, err := range map[string]error{
		"seal":     c.Seal(t.Context(), "nothing"),
		"add to":   second(c.Prepare(t.Context(), registry.Graph{ID: "nothing", Nodes: []registry.Node{linked("a")}})),
		"show":     second(c.Graph(t.Context(), "nothing")),
		"unstored": second(c.PrepareGraph(t.Context(), wire.GraphRequest{Nodes: []wire.NodeRequest{{Key: "a", SubmitRequest: wire.SubmitRequest{UploadID: "nothing"}}}}, "")),
	} {
		if p := problemOf(t, err, http.StatusNotFound, wire.CodeNotFound); p.Detail == "" {
			t.Errorf("%s: no detail", name)
		}
	}
	_, err = b.as(t, registry.RoleViewer).Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{linked("a")}})
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
}

func second[T any](_ T, err error) error { return err }

// TestGraph_InvalidInput checks that all faults are reported at once with their nodes, and that
// nothing is prepared.
func TestGraph_InvalidInput(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name, body string
		code       wire.Code
		locations  string
	}{
		{"nothing", `{}`, wire.CodeInvalid, "body"},
		{"no nodes", `{"nodes":[]}`, wire.CodeGraph, "body.nodes"},
		{"null", `{"nodes":null}`, wire.CodeGraph, "body.nodes"},
		{"no key", `{"nodes":[{"url":"http://h/a"}]}`, wire.CodeInvalid, "body.nodes[0]"},
		{"an empty key", `{"nodes":[{"key":"","url":"http://h/a"}]}`, wire.CodeGraph, "body.nodes"},
		{"a long key", `{"nodes":[{"key":"` + strings.Repeat("k", 201) + `","url":"http://h/a"}]}`, wire.CodeInvalid, "body.nodes[0].key"},
		{"a key twice", `{"nodes":[{"key":"a","url":"http://h/a"},{"key":"a","url":"http://h/a"}]}`, wire.CodeGraph, "body.nodes[1]"},
		{"itself", `{"nodes":[{"key":"b","url":"http://h/a"},{"key":"a","url":"http://h/a","requires":[{"key":"a"}]}]}`, wire.CodeGraph, "body.nodes[1]"},
		{"a kind", `{"nodes":[{"key":"a","url":"http://h/a","requires":[{"item_id":"x","wait_for":"later"}]}]}`, wire.CodeGraph, "body.nodes[0]"},
		{"an unknown field", `{"nodes":[{"key":"a","url":"http://h/a","after":1}]}`, wire.CodeInvalid, "body.nodes[0].after"},
		{"fields", `{"nodes":[{"key":"a","url":"http://h/a"},{"key":"b","url":"x","type":"y"}]}`, wire.CodeInvalid, "body.nodes[1].type body.nodes[1].url"},
		{"an upload twice", `{"nodes":[{"key":"a","upload_id":"u"},{"key":"b","upload_id":"u"}]}`, wire.CodeInvalid, "body.nodes[1].upload_id"},
		{"both kinds", `{"nodes":[{"key":"a","url":"x","requires":[{}]}]}`, wire.CodeGraph, "body.nodes[0] body.nodes[0].url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, text := b.send(t, http.MethodPost, "/api/v1/graphs", c.body)
			p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, c.code)
			var got []string
			for _, f := range p.Faults {
				got = append(got, f.Location)
			}
			if all := strings.Join(got, " "); all != c.locations {
				t.Errorf("errors at %q, want %q: %s", all, c.locations, text)
			}
		})
	}
	for _, c := range []struct{ name, requires string }{
		{"nothing", `{}`}, {"a key", `{"key":"a"}`}, {"a kind", `{"item_id":"x","wait_for":"later"}`},
	} {
		answer, text := b.send(t, http.MethodPost, "/api/v1/batches", `{"url":"http://h/a","requires":[`+c.requires+`]}`)
		if p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeGraph); p.Faults[0].Location != "body.requires" {
			t.Errorf("%s: errors %+v", c.name, p.Faults)
		}
	}
	page, err := b.store.Items(t.Context(), registry.ItemQuery{})
	must(t, err)
	if len(page.Rows) != 0 {
		t.Errorf("%d items were made", len(page.Rows))
	}
}

// TestGraph_Uploads checks that a graph's uploads are judged before any of the graph is created.
func TestGraph_Uploads(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	send := func(name, text string) string {
		t.Helper()
		u, err := c.SendUpload(t.Context(), oneRequest{Filename: name, Body: strings.NewReader(text), Size: int64(len(text))})
		must(t, err)
		return u.ID
	}
	request := func(ids ...string) wire.GraphRequest {
		var g wire.GraphRequest
		for i, id := range ids {
			g.Nodes = append(g.Nodes, wire.NodeRequest{Key: fmt.Sprint(i), SubmitRequest: wire.SubmitRequest{UploadID: id}})
		}
		return g
	}
	good, bad := send("good.checkm", goodManifest), send("bad.checkm", strings.Replace(goodManifest, " | md5 | ", " | md7 | ", 1))
	_, err := c.PrepareGraph(t.Context(), request(good, bad), "")
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeContentInvalid)
	if _, err := b.staging.Stat(t.Context(), source.UploadKey(good)); err != nil {
		t.Errorf("the good upload: %v", err)
	}
	p, err := c.PrepareGraph(t.Context(), request(good, send("a.txt", "a"), send("b.txt", "a")), "k")
	must(t, err)
	it, err := b.store.Item(t.Context(), p.Items["0"])
	must(t, err)
	var spec registry.Spec
	must(t, json.Unmarshal(it.Spec, &spec))
	if spec.Type != registry.ObjectManifest || it.Name != "good.checkm" || spec.SizeBytes != int64(len(goodManifest)) {
		t.Errorf("spec=%+v name=%q", spec, it.Name)
	}
	if p.Items["1"] == p.Items["2"] {
		t.Error("two nodes of the same content became one batch")
	}
}

// FuzzGraph checks that every graph is accepted or refused with a problem, and never with a 5xx
// status.
func FuzzGraph(f *testing.F) {
	for _, seed := range []string{
		`{"nodes":[{"key":"a","url":"http://h.test/a"}]}`, `{"graph_id":"x","nodes":[{"key":"a","url":"http://h.test/a","requires":[{"key":"a"}]}]}`,
		`{"nodes":[{"key":"a","upload_id":"x","requires":null},null]}`, `{"nodes":{}}`, `[]`, `{"nodes":[{"key":"\u0000","url":"http://h.test/a"}]}`,
		`{"nodes":[{"key":"a","url":"http://h.test/a","requires":[{"item_id":"\ud800","wait_for":"settled"}]}]}`,
	} {
		f.Add(seed)
	}
	b := newBench(f)
	handler := b.server.Config.Handler
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.Base+"/graphs", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+tokenText(registry.RoleDepositor))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusCreated && (w.Code < 400 || w.Code >= 500) {
			t.Errorf("status=%d for %q: %s", w.Code, body, w.Body)
		}
	})
}
