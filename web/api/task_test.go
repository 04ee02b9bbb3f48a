package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// announced is a server that knows the function count, which takes an object with a number.
func announced(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	must(t, b.store.Announce(t.Context(), []registry.Function{{Name: "count", Title: "Count files", Args: json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}}))
	return b
}

func TestTask_SubmitAndRead(t *testing.T) {
	b := announced(t)
	all, err := b.as(t, registry.RoleDepositor).Functions(t.Context())
	must(t, err)
	if len(all) != 1 || all[0].Name != "count" || all[0].Title != "Count files" || len(all[0].Args) == 0 || all[0].SeenAt.IsZero() {
		t.Errorf("functions=%+v", all)
	}
	c := b.as(t, registry.RoleOperator)
	first, err := c.SubmitTask(t.Context(), wire.TaskRequest{Function: "count", Args: json.RawMessage(`{"n":1}`)}, "")
	must(t, err)
	priority, later := 7, time.Now().Add(time.Hour)
	r := wire.TaskRequest{
		Function: "count", Args: json.RawMessage(`{"n":2}`), Title: "Two", Subject: "ark:/99999/x", Collection: "default", Priority: &priority, NotBefore: &later, Cause: first.ID,
		Requires: []registry.Requirement{{ItemID: first.ID, WaitFor: registry.WaitSettled}},
	}
	it, err := c.SubmitTask(t.Context(), r, "k")
	must(t, err)
	again, err := c.SubmitTask(t.Context(), r, "k")
	must(t, err)
	var spec registry.TaskSpec
	must(t, json.Unmarshal(it.Spec, &spec))
	if it.Action != registry.Task || it.Name != "Two" || it.CreatedBy != "the operator" || it.Priority != 7 || it.Collection != "default" || it.State != registry.StatePending ||
		again.ID != it.ID || spec.Function != "count" || string(spec.Args) != `{"n":2}` || spec.Subject != r.Subject || spec.Cause != first.ID {
		t.Errorf("item=%+v, again %s, spec %+v", it, again.ID, spec)
	}
	r.Args = json.RawMessage(`{"n":3}`)
	if _, err := c.SubmitTask(t.Context(), r, "k"); !errors.Is(err, registry.ErrIdempotencyConflict) {
		t.Errorf("other arguments with the same key: %v", err)
	}
	if it, err := b.as(t, registry.RoleDepositor).Item(t.Context(), it.ID); err != nil || it.Name != "Two" {
		t.Errorf("a depositor of its collection sees %+v, %v", it, err)
	}
	if _, err := b.as(t, registry.RoleDepositor).Item(t.Context(), first.ID); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a depositor sees a task of no collection: %v", err)
	}
}

func TestTask_Refusals(t *testing.T) {
	b := announced(t)
	c := b.as(t, registry.RoleOperator)
	for _, r := range []struct {
		name, body string
		status     int
		code       wire.Code
		locations  string
	}{
		{"an unknown function", `{"function":"cuont"}`, http.StatusNotFound, wire.CodeNotFound, "body.function"},
		{"arguments that do not fit", `{"function":"count","args":{"n":"x"}}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "body.args"},
		{"no arguments", `{"function":"count"}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "body.args"},
		{"no function", `{}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "body"},
		{"bad values", `{"function":"A b","title":"\u0007","priority":-1}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "body.function body.title body.priority"},
		{"an unknown field", `{"function":"count","arguments":1}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "body.arguments"},
		{"a key without a graph", `{"function":"count","args":{"n":1},"requires":[{"key":"a"}]}`, http.StatusUnprocessableEntity, wire.CodeGraph, "body.requires"},
		{"an unknown requirement", `{"function":"count","args":{"n":1},"requires":[{"item_id":"01999999-9999-7999-8999-999999999999"}]}`, http.StatusNotFound, wire.CodeNotFound, ""},
		{"an unknown collection", `{"function":"count","args":{"n":1},"collection":"zzz"}`, http.StatusNotFound, wire.CodeNotFound, ""},
	} {
		answer, text := b.send(t, http.MethodPost, "/api/v1/tasks", r.body, "Authorization", "Bearer "+tokenText(registry.RoleOperator))
		p := wantProblem(t, answer, text, r.status, r.code)
		var got []string
		for _, f := range p.Faults {
			got = append(got, f.Location)
		}
		if all := strings.Join(got, " "); all != r.locations {
			t.Errorf("%s: errors at %q, want %q: %s", r.name, all, r.locations, text)
		}
	}
	_, err := c.SubmitTask(t.Context(), wire.TaskRequest{Function: "cuont"}, "")
	var unknown *registry.UnknownFunctionError
	if !errors.As(err, &unknown) || !errors.Is(err, registry.ErrNotFound) || !strings.Contains(err.Error(), "did you mean count?") {
		t.Errorf("an unknown function: %v", err)
	}
	must(t, b.store.SetAccepting(t.Context(), registry.Accepting{Reason: "upgrade", Actor: "test"}))
	_, err = c.SubmitTask(t.Context(), wire.TaskRequest{Function: "count", Args: json.RawMessage(`{"n":1}`)}, "")
	problemOf(t, err, http.StatusServiceUnavailable, wire.CodeNotAccepting)
	if page, err := b.store.Items(t.Context(), registry.ItemQuery{}); err != nil || len(page.Rows) != 0 {
		t.Errorf("%d items were made, %v", len(page.Rows), err)
	}
}

// TestTask_Graph checks that a graph may have tasks beside submissions, for those who may submit
// tasks, and that the problem of a task names its node.
func TestTask_Graph(t *testing.T) {
	b := announced(t)
	c := b.as(t, registry.RoleOperator)
	count := func(args string, requires ...string) *wire.TaskRequest {
		r := &wire.TaskRequest{Function: "count", Args: json.RawMessage(args)}
		for _, key := range requires {
			r.Requires = append(r.Requires, registry.Requirement{Key: key})
		}
		return r
	}
	submission := wire.NodeRequest{Key: "deposit", SubmitRequest: wire.SubmitRequest{URL: "http://h.test/a"}}
	g := wire.GraphRequest{Nodes: []wire.NodeRequest{submission, {Key: "count", Task: count(`{"n":1}`, "deposit")}}, Seal: true}
	p, err := c.PrepareGraph(t.Context(), g, "")
	must(t, err)
	view, err := c.Graph(t.Context(), p.GraphID)
	must(t, err)
	task, err := c.Item(t.Context(), p.Items["count"])
	must(t, err)
	if !view.Sealed || len(view.Edges) != 1 || task.Action != registry.Task || task.State != registry.StatePending || task.CreatedBy != "the operator" {
		t.Errorf("graph=%+v, task %+v", view, task)
	}
	both := submission
	both.Task = count(`{"n":1}`)
	for name, r := range map[string]struct {
		nodes    []wire.NodeRequest
		status   int
		location string
	}{
		"arguments":  {[]wire.NodeRequest{{Key: "a", Task: count(`{"n":1}`)}, {Key: "b", Task: count(`{}`)}}, http.StatusUnprocessableEntity, "body.nodes[1].task.args"},
		"a function": {[]wire.NodeRequest{submission, {Key: "b", Task: &wire.TaskRequest{Function: "none"}}}, http.StatusNotFound, "body.nodes[1].task.function"},
		"both":       {[]wire.NodeRequest{both}, http.StatusUnprocessableEntity, "body.nodes[0].task"},
		"a cycle":    {[]wire.NodeRequest{{Key: "a", Task: count(`{"n":1}`, "b")}, {Key: "b", Task: count(`{"n":1}`, "a")}}, http.StatusUnprocessableEntity, "body.nodes[0]"},
	} {
		_, err := c.PrepareGraph(t.Context(), wire.GraphRequest{Nodes: r.nodes, Seal: true}, "")
		var p *wire.Problem
		if !errors.As(err, &p) || p.Status != r.status || len(p.Faults) != 1 || p.Faults[0].Location != r.location {
			t.Errorf("%s: %v, %+v; want %d at %s", name, err, p, r.status, r.location)
		}
	}
	_, err = b.as(t, registry.RoleDepositor).PrepareGraph(t.Context(), g, "")
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
}
