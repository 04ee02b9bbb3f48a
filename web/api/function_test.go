package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// program is a program that serves functions by the public protocol.
type program struct {
	*testing.T
	*bench
	name, secret string
}

func (b *bench) program(t *testing.T, name string, functions ...string) *program {
	t.Helper()
	stages := make([]registry.Stage, len(functions))
	for i, f := range functions {
		stages[i] = registry.Run.Of(f)
	}
	return &program{t, b, name, b.serving(t, name, stages...)}
}

// post sends a request and returns its answer.
func (p *program) post(path, body string) (reply, string) {
	p.Helper()
	method := http.MethodPost
	if strings.Contains(path, "/values/") {
		method = http.MethodPut
	}
	return p.send(p.T, method, "/api/v1"+path, body, "Authorization", "Bearer "+p.secret)
}

// tell is post for an answer of a type with a status.
func tell[T any](p *program, path, body string, status int) (out T) {
	p.Helper()
	answer, text := p.post(path, body)
	if answer.StatusCode != status {
		p.Fatalf("POST %s %s: %d %s, want %d", path, body, answer.StatusCode, text, status)
	}
	if text != "" {
		must(p.T, json.Unmarshal([]byte(text), &out))
	}
	return out
}

func (p *program) claim(function string) wire.TaskRun {
	p.Helper()
	return tell[wire.TaskRun](p, "/tasks/claim", `{"worker":"`+p.name+`","functions":["`+function+`"],"wait_seconds":30}`, http.StatusOK)
}

// at returns the path of an attempt.
func at(r wire.TaskRun, act string) string {
	return "/tasks/" + r.ID + "/attempts/" + string(must2(json.Marshal(r.Attempt))) + "/" + act
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (b *bench) submitTask(t *testing.T, function, args string, requires ...registry.Requirement) string {
	t.Helper()
	it, err := b.as(t, registry.RoleOperator).SubmitTask(t.Context(), wire.TaskRequest{Function: function, Args: json.RawMessage(args), Requires: requires}, "")
	must(t, err)
	return it.ID
}

// TestFunctions_AnyLanguage goes through the protocol: what a program of any language does with a
// task, and what people then see.
func TestFunctions_AnyLanguage(t *testing.T) {
	b := newBench(t)
	p := b.program(t, "links", "link-check", "count")
	tell[any](p, "/functions", `{"functions":[
		{"name":"link-check","title":"Check links","args":{"type":"object","required":["url"]},"result":{"type":"object","required":["ok"]},"max_attempts":2,"first_seconds":1,"factor":1},
		{"name":"count","at_once":7}]}`, http.StatusNoContent)
	tell[any](p, "/tasks/claim", `{"worker":"w","functions":["link-check","count"]}`, http.StatusNoContent)
	limits, err := b.as(t, registry.RoleAdmin).Limits(t.Context())
	must(t, err)
	if len(limits) != 1 || limits[0].Key != "run:count" || limits[0].Announced != 7 || limits[0].Most != 0 {
		t.Errorf("limits %+v", limits)
	}

	first := b.submitTask(t, "count", `{}`)
	r := p.claim("count")
	if r.ID != first || r.Attempt != 1 || r.Function != "count" || string(r.Args) != "{}" || r.Actor != "the operator" || r.MaxAttempts != 5 || r.LeaseSeconds != 30 || r.Parents == nil || len(r.Values) != 0 {
		t.Errorf("claimed %+v", r)
	}
	if v := tell[wire.TaskVerdict](p, at(r, "settle"), `{"outcome":"done","result":[1,2]}`, http.StatusOK); v.Status != registry.Completed {
		t.Errorf("verdict %+v", v)
	}

	id := b.submitTask(t, "link-check", `{"url":"http://h.test/"}`, registry.Requirement{ItemID: first})
	r = p.claim("link-check")
	if r.ID != id || len(r.Parents) != 1 || string(r.Parents[0].Result) != "[1,2]" || r.MaxAttempts != 2 || r.Title != "Check links" {
		t.Errorf("claimed %+v", r)
	}
	beat := `{"worker":"w","lease_seconds":60,"progress":[{"title":"Links","unit":"links","position":3,"end":7}],
		"log":[{"seq":1,"text":"one\nline ` + strings.Repeat("€", 1000) + `"},{"seq":2,"level":"WARN","text":"slow","at":"2020-01-02T03:04:05Z"}]}`
	for range 2 { // a repeat of a line changes nothing
		tell[wire.TaskRenewal](p, at(r, "renew"), beat, http.StatusOK)
	}
	if renewed := tell[wire.TaskRenewal](p, at(r, "renew"), beat, http.StatusOK); renewed.LeaseSeconds != 60 || renewed.Held || renewed.Drain {
		t.Errorf("renewed %+v", renewed)
	}
	for _, bad := range []string{`"position":-1`, `"position":9223372036854775807`, `"position":1,"end":-1`} {
		answer, text := p.post(at(r, "renew"), `{"worker":"w","progress":[{"title":"Links",`+bad+`}]}`)
		wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
	}
	must(t, b.as(t, registry.RoleOperator).Drain(t.Context(), "power cut", time.Hour))
	if renewed := tell[wire.TaskRenewal](p, at(r, "renew"), beat, http.StatusOK); !renewed.Drain {
		t.Errorf("the program does not hear of a drain: %+v", renewed)
	}
	must(t, b.store.RemoveHold(t.Context(), registry.HoldAll, "", "admin"))
	for _, value := range []string{`"http://one"`, `"http://two"`} {
		if v := tell[wire.TaskValue](p, at(r, "values/page"), `{"value":`+value+`}`, http.StatusOK); string(v.Value) != `"http://one"` {
			t.Errorf("the value that holds is %s", v.Value)
		}
	}
	attempts, err := b.as(t, registry.RoleOperator).Attempts(t.Context(), id)
	must(t, err)
	if len(attempts) != 1 || len(attempts[0].Progress) != 1 || attempts[0].Progress[0] != (registry.Progress{Title: "Links", Unit: "links", Position: 3, End: 7}) {
		t.Errorf("people see %+v", attempts)
	}
	answer, text := p.post(at(r, "settle"), `{"outcome":"done","result":3}`)
	if problem := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid); len(problem.Faults) != 1 || problem.Faults[0].Location != "body.result" {
		t.Errorf("a result that does not fit: %s", text)
	}
	for range 2 { // the second is a repeat after a lost answer
		if v := tell[wire.TaskVerdict](p, at(r, "settle"), `{"outcome":"retry","error":"timeout","log":[{"seq":3,"level":"ERROR","text":"gave up"}]}`, http.StatusOK); v.Status != registry.Pending || v.Failures != 1 {
			t.Errorf("verdict %+v", v)
		}
	}
	log, err := b.store.Log(t.Context(), registry.LogQuery{ItemID: id, Limit: 100})
	must(t, err)
	if l := log.Rows; len(l) != 3 || l[0].Level != "INFO" || !strings.HasPrefix(l[0].Text, "one line €") || len(l[0].Text) > 2000 || l[0].At.IsZero() ||
		l[1].Level != "WARN" || l[1].At.Year() != 2020 || l[2].Text != "gave up" || l[2].N != r.Attempt {
		t.Errorf("the log is %+v", l)
	}
	answer, text = p.post(at(r, "settle"), `{"outcome":"done","result":{"ok":true}}`)
	wantProblem(t, answer, text, http.StatusConflict, wire.CodeClaimLost)
	answer, text = p.post(at(r, "renew"), beat)
	wantProblem(t, answer, text, http.StatusConflict, wire.CodeClaimLost)
	b.pass(time.Minute)
	r = p.claim("link-check")
	if r.ID != id || r.Attempt != 2 || r.Failures != 1 || string(r.Values["page"]) != `"http://one"` {
		t.Errorf("the second attempt is %+v", r)
	}
	tell[wire.TaskVerdict](p, at(r, "settle"), `{"outcome":"later","error":"the site is closed","delay_seconds":5}`, http.StatusOK)
	b.pass(time.Minute)
	r = p.claim("link-check")
	tell[wire.TaskVerdict](p, at(r, "settle"), `{"outcome":"released"}`, http.StatusOK)
	r = p.claim("link-check")
	if r.Failures != 1 {
		t.Errorf("waits and stops count: %+v", r)
	}
	if v := tell[wire.TaskVerdict](p, at(r, "settle"), `{"outcome":"retry","error":"timeout `+strings.Repeat("€", 1000)+`"}`, http.StatusOK); v.Status != registry.Failed || v.Failures != 2 {
		t.Errorf("verdict %+v", v)
	}
	it, err := b.store.Item(t.Context(), id)
	must(t, err)
	if it.Status != registry.Failed || !strings.HasPrefix(it.Note, "timeout €") || len(it.Note) > 2000 || !strings.HasSuffix(it.Note, "€…") {
		t.Errorf("item %s: %d bytes: %s", it.Status, len(it.Note), it.Note)
	}
	for outcome, class := range map[string]registry.ErrorClass{"fatal": registry.SystemFault, "invalid": registry.ContentFault} {
		id := b.submitTask(t, "count", `1`)
		tell[wire.TaskVerdict](p, at(p.claim("count"), "settle"), `{"outcome":"`+outcome+`","error":"no"}`, http.StatusOK)
		if it, err := b.store.Item(t.Context(), id); err != nil || it.Status != registry.Failed || it.ErrorClass != class {
			t.Errorf("%s: %s, %s, %v", outcome, it.Status, it.ErrorClass, err)
		}
	}
}

// TestFunctions_LostAnswers checks that a repeated claim gets its task again, that other functions
// may be named in any order, and that a program which disconnects keeps no task.
func TestFunctions_LostAnswers(t *testing.T) {
	b := newBench(t)
	p := b.program(t, "program", "a", "b")
	tell[any](p, "/functions", `{"functions":[{"name":"a"},{"name":"b"}]}`, http.StatusNoContent)
	id := b.submitTask(t, "b", `1`)
	request := `{"worker":"w","functions":["a","b"],"request_id":"r1","wait_seconds":30}`
	first := tell[wire.TaskRun](p, "/tasks/claim", request, http.StatusOK)
	b.submitTask(t, "a", `2`) // must not be what a repeat gets
	for range 5 {
		if again := tell[wire.TaskRun](p, "/tasks/claim", request, http.StatusOK); again.ID != id || again.Attempt != first.Attempt {
			t.Fatalf("a repeat got attempt %d of %s, want %d of %s", again.Attempt, again.ID, first.Attempt, id)
		}
	}
	foreign := b.program(t, "foreign", "a", "b")
	tell[any](foreign, "/tasks/claim", strings.ReplaceAll(request, `"w"`, `"v"`), http.StatusUnprocessableEntity)
	tell[any](foreign, "/tasks/claim", request, http.StatusConflict) // the worker is another token's

	a := p.claim("a")
	tell[wire.TaskVerdict](p, at(a, "settle"), `{"outcome":"done"}`, http.StatusOK)
	tell[wire.TaskVerdict](p, at(first, "settle"), `{"outcome":"done"}`, http.StatusOK)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.server.URL+"/api/v1/tasks/claim", strings.NewReader(`{"worker":"u","functions":["a"],"wait_seconds":30}`))
		if err == nil {
			r.Header.Set("Authorization", "Bearer "+p.secret)
			r.Header.Set("Content-Type", "application/json")
			var answer *http.Response
			if answer, err = http.DefaultClient.Do(r); err == nil {
				err = answer.Body.Close()
			}
		}
		waiting <- err
	}()
	await(t, func() bool { // it asks
		workers, err := b.store.Workers(t.Context())
		return err == nil && slices.ContainsFunc(workers, func(w registry.WorkerInfo) bool { return w.ID == "u" })
	})
	cancel()
	if err := <-waiting; err == nil {
		t.Error("it got an answer")
	}
	id = b.submitTask(t, "a", `3`)
	if r := p.claim("a"); r.ID != id {
		t.Errorf("claimed %+v", r)
	}
}

func await(t *testing.T, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("it never came to that")
		}
	}
}

// TestFunctions_CancelNotice checks that a renewal that waits answers at once when people cancel
// its task, and that the worker can change nothing after.
func TestFunctions_CancelNotice(t *testing.T) {
	b := newBench(t)
	p := b.program(t, "program", "a")
	tell[any](p, "/functions", `{"functions":[{"name":"a"}]}`, http.StatusNoContent)
	for _, act := range []registry.Act{registry.ActCancel, registry.ActAbort} {
		id := b.submitTask(t, "a", `1`)
		r := p.claim("a")
		noticed := make(chan struct{})
		go func() {
			defer close(noticed)
			answer, text := p.post(at(r, "renew"), `{"worker":"program","wait_seconds":30,"lease_seconds":3600}`)
			wantProblem(t, answer, text, http.StatusConflict, wire.CodeClaimLost)
		}()
		_, err := b.as(t, registry.RoleAdmin).Command(t.Context(), registry.Command{ItemID: id, Act: act, Confirmed: true})
		must(t, err)
		select {
		case <-noticed:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the renewal did not answer", act)
			<-noticed
		}
		for path, body := range map[string]string{"settle": `{"outcome":"done"}`, "renew": `{"worker":"program"}`, "values/x": `{"value":1}`} {
			answer, text := p.post(at(r, path), body)
			wantProblem(t, answer, text, http.StatusConflict, wire.CodeClaimLost)
		}
	}
}

// TestFunctions_OnlyTheirOwn checks that a token reaches nothing but the tasks of its functions
// that it claimed: not those of other functions or tokens, no stage of the ingest, no other
// operation.
func TestFunctions_OnlyTheirOwn(t *testing.T) {
	b := newBench(t)
	mine, other, same := b.program(t, "mine", "a"), b.program(t, "other", "b"), b.program(t, "same", "a")
	tell[any](mine, "/functions", `{"functions":[{"name":"a"}]}`, http.StatusNoContent)
	tell[any](other, "/functions", `{"functions":[{"name":"b"}]}`, http.StatusNoContent)
	batch, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	b.submitTask(t, "b", `"HONEYPOT"`)
	theirs := other.claim("b")

	forbidden := map[string]string{
		"/functions":   `{"functions":[{"name":"a"},{"name":"b"}]}`,
		"/tasks/claim": `{"worker":"x","functions":["a","b"]}`,
		"/tasks":       `{"function":"a"}`,
	}
	for path, body := range forbidden {
		answer, text := mine.post(path, body)
		wantProblem(t, answer, text, http.StatusForbidden, wire.CodeForbidden)
	}
	for _, name := range []string{"process", "run:b", ""} { // not a function's name
		answer, text := mine.post("/tasks/claim", `{"worker":"x","functions":["`+name+`"]}`)
		if answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("claims %q: %d %s", name, answer.StatusCode, text)
		}
	}
	acts := map[string]string{"settle": `{"outcome":"done"}`, "renew": `{"worker":"x"}`, "values/x": `{"value":1}`}
	for act, body := range acts {
		for _, id := range []string{theirs.ID, batch.BatchID, "01999999-9999-7999-8999-999999999999", "x", "%00"} {
			answer, text := mine.post(at(wire.TaskRun{ID: id, Attempt: 1}, act), body)
			wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
		}
	}
	b.submitTask(t, "a", `1`)
	r := mine.claim("a")
	for act, body := range acts {
		answer, text := same.post(at(r, act), body) // a token of the same function, without the claim
		if problem := wantProblem(t, answer, text, http.StatusConflict, wire.CodeClaimLost); strings.Contains(problem.Detail, "HONEYPOT") {
			t.Error(text)
		}
	}
	table := access.NewTable()
	text, err := api.Specification()
	must(t, err)
	var spec specified
	must(t, json.Unmarshal(text, &spec))
	refused := 0
	for path, methods := range spec.Paths {
		for method, op := range methods {
			if len(table.Stages[op.OperationID]) > 0 || op.OperationID == "own-token" {
				continue
			}
			body := ""
			if method == "post" || method == "put" {
				body = "{}"
			}
			path := strings.NewReplacer("{id}", theirs.ID, "{name}", "none", "{n}", "1").Replace(path)
			answer, text := b.send(t, strings.ToUpper(method), "/api/v1"+path, body, "Authorization", "Bearer "+mine.secret)
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s is answered %d %s", op.OperationID, answer.StatusCode, text)
			}
			refused++
		}
	}
	if refused < 80 {
		t.Errorf("%d operations were tried", refused)
	}
	for name, stages := range protocol.Stages() {
		if len(stages) == 0 || stages[0] == registry.Run {
			continue
		}
		answer, text := mine.post(protocol.Path+name, `{}`)
		wantProblem(t, answer, text, http.StatusForbidden, wire.CodeForbidden)
	}
	for _, role := range []registry.Role{registry.RoleAdmin, registry.RoleOperator} {
		p := &program{t, b, string(role), tokenText(role)}
		answer, text := p.post(at(r, "settle"), acts["settle"])
		wantProblem(t, answer, text, http.StatusForbidden, wire.CodeForbidden)
	}
	tell[wire.TaskVerdict](mine, at(r, "settle"), `{"outcome":"done"}`, http.StatusOK)
	tell[wire.TaskVerdict](other, at(theirs, "settle"), `{"outcome":"done"}`, http.StatusOK)
}

// TestFunctions_Refusals checks that every fault of a request is named, and that nothing was done.
func TestFunctions_Refusals(t *testing.T) {
	b := newBench(t)
	p := b.program(t, "program", "a")
	for _, r := range []struct {
		path, body string
		status     int
		code       wire.Code
	}{
		{"/functions", `{"functions":[]}`, http.StatusUnprocessableEntity, wire.CodeInvalid},
		{"/functions", `{"functions":[{"name":"A b"}]}`, http.StatusUnprocessableEntity, wire.CodeInvalid},
		{"/functions", `{"functions":[{"name":"a","args":"nothing"}]}`, http.StatusUnprocessableEntity, wire.CodeInvalid},
		{"/functions", `{"functions":[{"name":"a","max_attempts":-1}]}`, http.StatusUnprocessableEntity, wire.CodeInvalid},
		{"/tasks/claim", `{"worker":"w","functions":["a"]}`, http.StatusNotFound, wire.CodeNotFound}, // not announced
		{"/tasks/claim", `{"functions":["a"]}`, http.StatusUnprocessableEntity, wire.CodeInvalid},
		{"/tasks/claim", `{"worker":"w","functions":["a"],"wait_seconds":600}`, http.StatusUnprocessableEntity, wire.CodeInvalid},
		{"/tasks/claim", `{"worker":"w","functions":["a"],"lease_seconds":1}`, http.StatusUnprocessableEntity, wire.CodeInvalid},
	} {
		answer, text := p.post(r.path, r.body)
		wantProblem(t, answer, text, r.status, r.code)
	}
	tell[any](p, "/functions", `{"functions":[{"name":"a"}]}`, http.StatusNoContent)
	b.submitTask(t, "a", `1`)
	r := p.claim("a")
	for body, location := range map[string]string{
		`{"outcome":"failed","error":"x"}`:                   "body.outcome",
		`{"outcome":"retry"}`:                                "body.error",
		`{"outcome":"fatal","error":"x","result":1}`:         "body.result",
		`{"outcome":"later","error":"x","delay_seconds":-1}`: "body.delay_seconds",
	} {
		answer, text := p.post(at(r, "settle"), body)
		if problem := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid); len(problem.Faults) != 1 || problem.Faults[0].Location != location {
			t.Errorf("%s: %s, want %s", body, text, location)
		}
	}
	if attempts, err := b.store.Attempts(t.Context(), r.ID); err != nil || len(attempts) != 1 || attempts[0].FinishedAt != nil {
		t.Errorf("a refused request changed it: %+v, %v", attempts, err)
	}
}
