package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/wire"
)

const curation registry.Stage = "step:curation"

func processKey(id string) registry.ProcessKey {
	return registry.ProcessKey{Namespace: "curation", ProcessID: id}
}

// curating is a server that knows the namespace curation. The test drives the steps.
func curating(t *testing.T, change ...func(*bench, *api.Options)) *bench {
	t.Helper()
	b := newBench(t, change...)
	must(t, b.store.AnnounceNamespaces(t.Context(), []registry.Namespace{{Name: "curation", Title: "Curation"}}))
	return b
}

// step ends the next step with a result.
func (b *bench) step(t *testing.T, r registry.StepResult) {
	t.Helper()
	c := b.claim(t, curation)
	b.settle(t, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultStep: must2(json.Marshal(r))}})
}

// failStep ends the next step with an error.
func (b *bench) failStep(t *testing.T, text string) {
	t.Helper()
	b.settle(t, registry.Settlement{Lease: b.claim(t, curation).Lease, Outcome: registry.OutcomeFailed, Error: text, Class: registry.SystemFault})
}

// started creates a process whose first step has ended.
func (b *bench) started(t *testing.T, n registry.NewProcess) {
	t.Helper()
	_, err := b.as(t, registry.RoleOperator).InitProcess(t.Context(), n)
	must(t, err)
	b.step(t, registry.StepResult{})
}

// TestProcess_Life leads a process through every operation, as an operator and as the people of its
// collection.
func TestProcess_Life(t *testing.T) {
	b := curating(t)
	c := b.as(t, registry.RoleOperator)
	ctx := t.Context()
	all, err := b.as(t, registry.RoleDepositor).Namespaces(ctx)
	if must(t, err); len(all) != 1 || all[0].Name != "curation" || all[0].Title != "Curation" || all[0].SeenAt.IsZero() {
		t.Errorf("namespaces %+v", all)
	}
	key := processKey("ark:/99999/fk4x")
	a, err := c.InitProcess(ctx, registry.NewProcess{ProcessKey: key, Collection: "default", Args: json.RawMessage(`{"n":1}`)})
	must(t, err)
	b.step(t, registry.StepResult{Response: json.RawMessage(`"hello"`), State: json.RawMessage(`1`), Metadata: json.RawMessage(`{"k":2}`), Events: []registry.NewProcessEvent{{Payload: json.RawMessage(`3`)}}})
	if a, err = c.AwaitAnswer(ctx, a.ItemID); err != nil || a.ProcessKey != key || a.Kind != registry.StepInit || string(a.Response) != `"hello"` {
		t.Errorf("answer %+v, %v", a, err)
	}
	p, err := b.as(t, registry.RoleDepositor).Process(ctx, key, registry.HistoryRange{})
	if must(t, err); p.ProcessKey != key || p.CreatedBy != "the operator" || string(p.State) != "1" || string(p.Metadata) != `{"k":2}` || len(p.History) != 1 || p.Collection != "default" {
		t.Errorf("process %+v", p)
	}
	a, err = c.CallProcess(ctx, registry.NewCall{ProcessKey: key})
	must(t, err)
	b.failStep(t, "the tape is lost")
	if a, err = c.AwaitAnswer(ctx, a.ItemID); err != nil || a.Status != registry.Failed || a.Error != "the tape is lost" {
		t.Errorf("answer %+v, %v", a, err)
	}
	page, err := c.Processes(ctx, registry.ProcessQuery{Namespace: "curation", Status: registry.ProcessFailed, Text: "TAPE"})
	if must(t, err); len(page.Rows) != 1 || page.Rows[0].Detail != "the tape is lost" {
		t.Errorf("processes %+v", page)
	}
	if p, err = c.RetryProcess(ctx, registry.ProcessAct{ProcessKey: key, Reason: "found it"}); err != nil || p.Status != registry.ProcessRunning || p.PreviousStatus != registry.ProcessFailed {
		t.Errorf("process %+v, %v", p, err)
	}
	_, err = c.CallProcess(ctx, registry.NewCall{ProcessKey: key})
	must(t, err)
	b.failStep(t, "lost again")
	_, err = c.RepairProcess(ctx, registry.NewCall{ProcessKey: key, Args: json.RawMessage(`true`)})
	must(t, err)
	b.step(t, registry.StepResult{})
	steps, err := c.TraceProcess(ctx, registry.TraceQuery{ProcessKey: key})
	must(t, err)
	var kinds []string
	for _, s := range steps.Rows {
		kinds = append(kinds, string(s.Kind)+" "+string(s.Status))
	}
	if got := strings.Join(kinds, ", "); got != "init completed, call failed, call failed, repair completed" || len(steps.Rows[0].Events) != 1 || string(steps.Rows[0].Args) != `{"n":1}` {
		t.Errorf("steps %+v", steps.Rows)
	}
	must(t, c.RemoveProcess(ctx, registry.ProcessAct{ProcessKey: key, Reason: "a mistake"}))
	if _, err := c.Process(ctx, key, registry.HistoryRange{}); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a removed process: %v", err)
	}
}

// TestProcess_Wait: an answer comes when its step ends, when the wait has passed, or when the server
// stops: to depositors as well, whose right to it is looked up first.
func TestProcess_Wait(t *testing.T) {
	stopping := make(chan struct{})
	b := curating(t, func(_ *bench, o *api.Options) { o.Done = stopping })
	c := b.as(t, registry.RoleOperator)
	key := processKey("a")
	a, err := c.InitProcess(t.Context(), registry.NewProcess{ProcessKey: key, Collection: "default"})
	must(t, err)
	for _, path := range []string{"/answers/" + a.ItemID, "/processes/curation/a"} {
		for _, wait := range []string{"", "?wait=0", "?wait=0.01"} {
			for _, role := range []registry.Role{registry.RoleOperator, registry.RoleDepositor} {
				answer, text := b.send(t, http.MethodGet, "/api/v1"+path+wait, "", "Authorization", "Bearer "+tokenText(role))
				if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"status":"pending"`) && !strings.Contains(text, `"status":"init"`) {
					t.Errorf("GET %s%s as %s: %d %s", path, wait, role, answer.StatusCode, text)
				}
			}
		}
		for _, wait := range []string{"?wait=61", "?wait=-1", "?wait=x"} {
			answer, text := b.send(t, http.MethodGet, "/api/v1"+path+wait, "")
			wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
		}
	}
	type read struct {
		what string
		err  error
	}
	got := make(chan read, 2)
	wait := func() {
		go func() {
			a, err := c.AwaitAnswer(t.Context(), a.ItemID)
			got <- read{"answer " + string(a.Status), err}
		}()
		go func() {
			p, err := c.Process(t.Context(), key, registry.HistoryRange{})
			got <- read{"process " + string(p.Status), err}
		}()
	}
	wait()
	b.step(t, registry.StepResult{})
	for range 2 {
		if r := <-got; r.err != nil || r.what != "answer completed" && r.what != "process running" {
			t.Errorf("%s, %v", r.what, r.err)
		}
	}
	late, err := c.CallProcess(t.Context(), registry.NewCall{ProcessKey: key})
	must(t, err)
	ended := make(chan string, 1)
	go func() {
		answer, text := b.send(t, http.MethodGet, "/api/v1/answers/"+late.ItemID+"?wait=60", "")
		ended <- fmt.Sprint(answer.StatusCode, " ", text)
	}()
	close(stopping)
	if text := <-ended; !strings.HasPrefix(text, "200 ") || !strings.Contains(text, `"status":"pending"`) {
		t.Errorf("a server that stops answers %s", text)
	}
}

// TestProcess_Keys: an idempotency key is bound to its operation, process and arguments.
func TestProcess_Keys(t *testing.T) {
	b := curating(t)
	b.started(t, registry.NewProcess{ProcessKey: processKey("a")})
	b.started(t, registry.NewProcess{ProcessKey: processKey("b")})
	send := func(path, body string) (reply, string) {
		return b.send(t, http.MethodPost, "/api/v1/processes/curation/"+path, body, "Idempotency-Key", "k")
	}
	answer, first := send("a/calls", `{"args":1}`)
	if answer.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", answer.StatusCode, first)
	}
	b.step(t, registry.StepResult{Response: json.RawMessage(`"one"`)})
	answer, text := send("a/calls", `{"args":1}`)
	var was, is registry.Answer
	must(t, errors.Join(json.Unmarshal([]byte(first), &was), json.Unmarshal([]byte(text), &is)))
	if answer.StatusCode != http.StatusAccepted || is.ItemID != was.ItemID || string(is.Response) != `"one"` {
		t.Errorf("the repeat: %d %s, first %s", answer.StatusCode, text, first)
	}
	for _, other := range [][2]string{{"a/calls", `{"args":2}`}, {"b/calls", `{"args":1}`}, {"a/repairs", `{"args":1}`}, {"a/retry", `{}`}} {
		answer, text := send(other[0], other[1])
		wantProblem(t, answer, text, http.StatusConflict, wire.CodeIdempotency)
	}
	answer, text = b.send(t, http.MethodPost, "/api/v1/processes", `{"namespace":"curation","process_id":"c"}`, "Idempotency-Key", "k")
	wantProblem(t, answer, text, http.StatusConflict, wire.CodeIdempotency)
	answer, text = b.send(t, http.MethodPut, "/api/v1/processes/curation/c", `{}`, "Idempotency-Key", "k")
	wantProblem(t, answer, text, http.StatusConflict, wire.CodeIdempotency)
	answer, text = b.send(t, http.MethodDelete, "/api/v1/processes/curation/a", "", "Idempotency-Key", "k")
	wantProblem(t, answer, text, http.StatusConflict, wire.CodeIdempotency)
	for range 2 { // the answer to a removal may get lost too
		if answer, text := b.send(t, http.MethodDelete, "/api/v1/processes/curation/a", "", "Idempotency-Key", "away"); answer.StatusCode != http.StatusNoContent {
			t.Errorf("remove: %d %s", answer.StatusCode, text)
		}
	}
}

func TestProcess_Problems(t *testing.T) {
	b := curating(t)
	_, err := b.store.InitProcess(t.Context(), registry.NewProcess{ProcessKey: processKey("new")})
	must(t, err)
	b.claim(t, curation) // its first step runs and does not end
	b.started(t, registry.NewProcess{ProcessKey: processKey("a")})
	const one = "/processes/curation/"
	for _, r := range []struct {
		method, path, body string
		status             int
		code               wire.Code
		says               string
	}{
		{http.MethodPost, "/processes", `{"namespace":"curation","process_id":"a"}`, http.StatusConflict, wire.CodeConflict, "use another id"},
		{http.MethodPut, one + "a", `{}`, http.StatusConflict, wire.CodeConflict, "use another id"},
		{http.MethodPost, "/processes", `{"namespace":"curatoin","process_id":"b"}`, http.StatusNotFound, wire.CodeNotFound, "curation"},
		{http.MethodPost, "/processes", `{"namespace":"curation","process_id":"b","collection":"zzz"}`, http.StatusNotFound, wire.CodeNotFound, "zzz"},
		{http.MethodPost, "/processes", `{"namespace":"curation","process_id":".."}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "does not name a process"},
		{http.MethodPost, "/processes", `{"namespace":"Bad Name","process_id":"b"}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "Bad Name"},
		{http.MethodPost, "/processes", `{"namespace":"curation"}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "process_id"},
		{http.MethodPost, one + "new/calls", `{}`, http.StatusConflict, wire.CodeConflict, "its first step has not ended"},
		{http.MethodPost, one + "a/repairs", `{}`, http.StatusConflict, wire.CodeConflict, "nothing to repair"},
		{http.MethodPost, one + "a/retry", `{}`, http.StatusConflict, wire.CodeConflict, "nothing to repair"},
		{http.MethodPost, one + "nobody/calls", `{}`, http.StatusNotFound, wire.CodeNotFound, "nobody"},
		{http.MethodGet, one + "nobody", "", http.StatusNotFound, wire.CodeNotFound, "nobody"},
		{http.MethodGet, one + "nobody/steps", "", http.StatusNotFound, wire.CodeNotFound, "nobody"},
		{http.MethodDelete, one + "nobody", "", http.StatusNotFound, wire.CodeNotFound, "nobody"},
		{http.MethodGet, "/answers/nothing", "", http.StatusNotFound, wire.CodeNotFound, ""},
		{http.MethodGet, "/processes?status=dead", "", http.StatusUnprocessableEntity, wire.CodeInvalid, ""},
		{http.MethodGet, one + "a?limit=1001", "", http.StatusUnprocessableEntity, wire.CodeInvalid, ""},
		{http.MethodPut, one + "b", `{"history":[{"id":2,"payload":1},{"id":1,"payload":1}]}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "ids must grow"},
		{http.MethodPut, one + "b", `{"history":[{"id":9223372036854775807,"payload":1}]}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "ids are at most 9007199254740991"},
		{http.MethodPut, one + "b", `{"timer":{"kind":"call","at":"2026-01-01T00:00:00Z"}}`, http.StatusUnprocessableEntity, wire.CodeInvalid, "a timer is"},
	} {
		answer, text := b.send(t, r.method, "/api/v1"+r.path, r.body)
		if wantProblem(t, answer, text, r.status, r.code); !strings.Contains(text, r.says) {
			t.Errorf("%s %s %s: %s does not say %q", r.method, r.path, r.body, text, r.says)
		}
	}
	_, err = b.as(t, registry.RoleOperator).CallProcess(t.Context(), registry.NewCall{ProcessKey: processKey("new")})
	if state, ok := errors.AsType[*registry.ProcessStateError](err); !ok || state.Status != registry.ProcessInit || state.ProcessKey != processKey("new") {
		t.Errorf("the client gives %#v", err)
	}
	must(t, b.store.SetAccepting(t.Context(), registry.Accepting{Reason: "upgrade", Actor: "test"}))
	for _, path := range []string{"/processes", one + "a/calls"} {
		body := `{}`
		if path == "/processes" {
			body = `{"namespace":"curation","process_id":"b"}`
		}
		answer, text := b.send(t, http.MethodPost, "/api/v1"+path, body)
		wantProblem(t, answer, text, http.StatusServiceUnavailable, wire.CodeNotAccepting)
	}
}

// TestProcess_Pages reads lists by pages that are smaller than they are.
func TestProcess_Pages(t *testing.T) {
	b := curating(t)
	c := b.as(t, registry.RoleOperator)
	put := registry.PutProcess{}
	for i := range 5 {
		put.ProcessKey = processKey(fmt.Sprint(i))
		put.History = append(put.History, registry.ProcessEvent{Payload: json.RawMessage(fmt.Sprint(i))})
		_, err := c.PutProcess(t.Context(), put)
		must(t, err)
	}
	var ids []string
	for q := (registry.ProcessQuery{Limit: 2}); ; {
		page, err := c.Processes(t.Context(), q)
		must(t, err)
		for _, p := range page.Rows {
			ids = append(ids, p.ProcessID)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "4 3 2 1 0" {
		t.Errorf("processes %s", got)
	}
	for _, one := range []struct {
		r    registry.HistoryRange
		want string
	}{
		{registry.HistoryRange{}, "0 1 2 3 4"},
		{registry.HistoryRange{Offset: 1, Limit: 2}, "1 2"},
		{registry.HistoryRange{Backward: true, Limit: 2}, "4 3"},
		{registry.HistoryRange{Backward: true, Offset: 3}, "1 0"},
		{registry.HistoryRange{None: true}, ""},
	} {
		p, err := c.Process(t.Context(), processKey("4"), one.r)
		must(t, err)
		var got []string
		for _, e := range p.History {
			got = append(got, string(e.Payload))
		}
		if strings.Join(got, " ") != one.want || p.LastEventID != 5 {
			t.Errorf("%+v: %v of %d, want %s", one.r, got, p.LastEventID, one.want)
		}
	}
	for range 3 {
		_, err := c.CallProcess(t.Context(), registry.NewCall{ProcessKey: processKey("4")})
		must(t, err)
	}
	n := 0
	for q := (registry.TraceQuery{ProcessKey: processKey("4"), Limit: 2}); ; {
		page, err := c.TraceProcess(t.Context(), q)
		must(t, err)
		n += len(page.Rows)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d steps", n)
	}
}

// TestProcess_Ids: an id may have any characters that a path treats specially.
func TestProcess_Ids(t *testing.T) {
	b := curating(t)
	c := b.as(t, registry.RoleOperator)
	for _, id := range []string{"ark:/99999/fk4x", "100%", "%2F", "a/../b", "a?b=c#d", "a b+c", "//", "é/日本", "a/", "calls", `"\`} {
		key := processKey(id)
		b.started(t, registry.NewProcess{ProcessKey: key})
		_, err := c.CallProcess(t.Context(), registry.NewCall{ProcessKey: key})
		must(t, err)
		b.step(t, registry.StepResult{})
		if p, err := c.Process(t.Context(), key, registry.HistoryRange{}); err != nil || p.ProcessID != id {
			t.Errorf("%q: read %q, %v", id, p.ProcessID, err)
		}
		if page, err := c.TraceProcess(t.Context(), registry.TraceQuery{ProcessKey: key}); err != nil || len(page.Rows) != 2 {
			t.Errorf("%q: %d steps, %v", id, len(page.Rows), err)
		}
		must(t, c.RemoveProcess(t.Context(), registry.ProcessAct{ProcessKey: key}))
	}
	answer, text := b.send(t, http.MethodGet, "/api/v1/processes/curation/"+url.PathEscape(strings.Repeat("x", 257)), "")
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
}

// TestProcess_Roles: operators act on processes; those who read see the processes of their
// collections.
func TestProcess_Roles(t *testing.T) {
	b := curating(t)
	b.started(t, registry.NewProcess{ProcessKey: processKey("ours"), Collection: "default"})
	b.started(t, registry.NewProcess{ProcessKey: processKey("hidden")})
	const one = "/api/v1/processes/curation/ours"
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleWorker} {
		for _, act := range [][3]string{
			{http.MethodPost, "/api/v1/processes", `{"namespace":"curation","process_id":"b"}`},
			{http.MethodPost, one + "/calls", `{}`},
			{http.MethodPost, one + "/repairs", `{}`},
			{http.MethodPost, one + "/retry", `{}`},
			{http.MethodPut, one, `{}`},
			{http.MethodDelete, one, ""},
		} {
			answer, text := b.send(t, act[0], act[1], act[2], "Authorization", "Bearer "+tokenText(role))
			if wantProblem(t, answer, text, http.StatusForbidden, wire.CodeForbidden); answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %v", role, act)
			}
		}
	}
	for role, want := range map[registry.Role]int{registry.RoleDepositor: 1, registry.RoleViewer: 2, registry.RoleOperator: 2} {
		page, err := b.as(t, role).Processes(t.Context(), registry.ProcessQuery{})
		if must(t, err); len(page.Rows) != want {
			t.Errorf("%s sees %d processes, want %d", role, len(page.Rows), want)
		}
	}
	if _, err := b.as(t, registry.RoleDepositor).Process(t.Context(), processKey("hidden"), registry.HistoryRange{}); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a depositor reads a process of no collection: %v", err)
	}
}
