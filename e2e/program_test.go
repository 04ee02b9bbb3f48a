package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast/holdfast/web/wire"
)

// program serves functions over the public protocol (docs/functions-protocol.md), as a program in
// any language does.
type program struct {
	h      *holdfast
	secret string
	claims int
}

// send sends one request. Its error says that no answer came.
func send(ctx context.Context, secret, method, url string, body, out any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err == nil && out != nil && answer.StatusCode/100 == 2 {
		err = json.Unmarshal(text, out)
	}
	return answer.StatusCode, err
}

// ask sends a request until it is answered by something else than a fault of the server.
func (p *program) ask(method, path string, body, out any) (status int) {
	p.h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		status, err := send(p.h.t.Context(), p.secret, method, p.h.url()+"/api/v1"+path, body, out)
		if err == nil && status < http.StatusInternalServerError {
			return status
		}
		if time.Now().After(deadline) {
			p.h.t.Fatalf("%s %s was answered with %d, %v", method, path, status, err)
		}
	}
}

// good is ask for a request that must be carried out.
func (p *program) good(method, path string, body, out any) {
	p.h.t.Helper()
	if status := p.ask(method, path, body, out); status != http.StatusOK && status != http.StatusNoContent {
		p.h.t.Fatalf("%s %s was answered with %d", method, path, status)
	}
}

// claim waits for a task of the functions.
func (p *program) claim(functions ...string) (run wire.TaskRun) {
	p.h.t.Helper()
	for deadline := time.Now().Add(patience); run.ID == ""; {
		p.claims++
		p.good(http.MethodPost, "/tasks/claim", wire.TaskClaim{
			Worker: "program", Functions: functions, RequestID: strconv.Itoa(p.claims), WaitSeconds: 10, LeaseSeconds: 600,
		}, &run)
		if time.Now().After(deadline) {
			p.h.t.Fatalf("no task of %v", functions)
		}
	}
	return run
}

func attemptPath(run wire.TaskRun, what string) string {
	return "/tasks/" + run.ID + "/attempts/" + strconv.FormatInt(run.Attempt, 10) + "/" + what
}

func (p *program) settle(run wire.TaskRun, s wire.TaskSettlement) (v wire.TaskVerdict) {
	p.h.t.Helper()
	p.good(http.MethodPost, attemptPath(run, "settle"), s, &v)
	return v
}

func text(t *testing.T, v any) json.RawMessage {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
