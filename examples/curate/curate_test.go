package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task/tasktest"
	"github.com/holdfast/holdfast/web/client"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server is a Registry with its API. It returns a client for a curator.
func server(t *testing.T) (url string, curator *client.Client) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLite(t)})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	must(t, store.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: registry.Profile{Owner: "ark:/99999/o"}}, "test"))
	a := tasktest.NewAPI(t, store)
	for _, token := range []registry.Token{
		{Name: "program", Role: registry.RoleWorker, Stages: []registry.Stage{registry.ProcessStep.Of(Namespace)}},
		{Name: "submitter", Role: registry.RoleDepositor, Collections: []string{"maps"}},
	} {
		a.Token(token)
	}
	return a.URL, a.Client(registry.Token{Name: "curator", Role: registry.RoleOperator})
}

func key(ark string) registry.ProcessKey {
	return registry.ProcessKey{Namespace: Namespace, ProcessID: ark}
}

// decide calls a process and returns its answer.
func decide(t *testing.T, c *client.Client, ark, args string) (out Answer) {
	t.Helper()
	a, err := c.CallProcess(t.Context(), registry.NewCall{ProcessKey: key(ark), Args: json.RawMessage(args)})
	must(t, err)
	a, err = c.AwaitAnswer(t.Context(), a.ItemID)
	must(t, err)
	if a.Status != registry.Completed {
		t.Fatalf("answer %+v", a)
	}
	must(t, json.Unmarshal(a.Response, &out))
	return out
}

// until waits until the history of a process has an event, and returns the events.
func until(t *testing.T, c *client.Client, ark, what string) (events []Event) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		p, err := c.Process(t.Context(), key(ark), registry.HistoryRange{})
		must(t, err)
		events = nil
		for _, e := range p.History {
			var is Event
			must(t, json.Unmarshal(e.Payload, &is))
			events = append(events, is)
		}
		if slices.ContainsFunc(events, func(e Event) bool { return e.What == what }) {
			return events
		}
		if time.Now().After(limit) {
			t.Fatalf("%s has the events %+v, no %s", ark, events, what)
		}
	}
}

// TestCurate runs the program against a server: one object is accepted after a reminder, and one is
// rejected.
func TestCurate(t *testing.T) {
	url, c := server(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-url", url, "-token", "hf_secret_of_program", "-submit-token", "hf_secret_of_submitter", "-remind", "1s"}, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	ask := func(ark string) error {
		_, err := c.InitProcess(t.Context(), registry.NewProcess{
			ProcessKey: key(ark), Collection: "maps", Args: json.RawMessage(`{"url": "https://example.org/atlas.zip", "collection": "maps", "title": "Atlas", "curator": "ada"}`),
		})
		return err
	}
	const good, bad = "ark:/99999/fk4good", "ark:/99999/fk4bad"
	for limit := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // until the namespace is announced
		err := ask(good)
		if err == nil {
			break
		}
		if !errors.Is(err, registry.ErrNotFound) || time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	must(t, ask(bad))
	until(t, c, bad, "asked")
	if a := decide(t, c, bad, `{"decision": "perhaps"}`); a.Taken || !strings.Contains(a.Message, "accept or reject") {
		t.Errorf("answer %+v", a)
	}
	if a := decide(t, c, bad, `{"decision": "reject", "note": "blurred"}`); !a.Taken {
		t.Errorf("answer %+v", a)
	}
	if p, err := c.Process(t.Context(), key(bad), registry.HistoryRange{}); err != nil || p.Status != registry.ProcessDone || p.Timer != nil {
		t.Errorf("process %+v, %v", p, err)
	}
	until(t, c, good, "reminded")
	if a := decide(t, c, good, `{"decision": "accept"}`); !a.Taken {
		t.Errorf("answer %+v", a)
	}
	events := until(t, c, good, "submitted")
	it, err := c.Item(t.Context(), events[len(events)-1].Batch)
	must(t, err)
	if spec := string(it.Spec); it.Collection != "maps" || it.CreatedBy != "submitter" || !strings.Contains(spec, good) || !strings.Contains(spec, "atlas.zip") {
		t.Errorf("batch %+v: %s", it, spec)
	}
}

// TestStep_WithoutARegistry calls a step as a function.
func TestStep_WithoutARegistry(t *testing.T) {
	p := &Program{Every: time.Hour}
	s, err := process.Test[State](registry.StepInit, registry.ProcessInfo{ProcessKey: key("ark:/99999/fk4")}, Request{URL: "https://example.org/a"})
	must(t, err)
	if err := p.step(t.Context(), s); err == nil || !strings.Contains(err.Error(), "url and curator") {
		t.Errorf("a request without a curator: %v", err)
	}
	s, err = process.Test[State](registry.StepCall, registry.ProcessInfo{ProcessKey: key("ark:/99999/fk4")}, Decision{Decision: "accept"})
	must(t, err)
	must(t, p.step(t.Context(), s))
	if r, err := s.Result(); err != nil || len(r.Events) > 0 || !strings.Contains(string(r.Response), "nothing was asked for") || r.Then.Do != registry.ThenKeep {
		t.Errorf("a decision without a request: %+v, %v", r, err)
	}
	s, err = process.Test[State](registry.StepRepair, registry.ProcessInfo{ProcessKey: key("ark:/99999/fk4")}, Request{URL: "https://example.org/a", Curator: "ada"})
	must(t, err)
	must(t, p.step(t.Context(), s))
	if r, err := s.Result(); err != nil || len(r.Events) != 1 || s.State.Request.Curator != "ada" || r.Then.Do != registry.ThenContinue {
		t.Errorf("a repair with the whole request: %+v, %v", r, err)
	}
	s, err = process.Test[State](registry.StepCall, registry.ProcessInfo{ProcessKey: key("ark:/99999/fk4"), State: json.RawMessage(`{"request": {"url": "https://example.org/a"}, "accepted": true}`)}, Decision{Decision: "reject"})
	must(t, err)
	must(t, p.step(t.Context(), s))
	r, err := s.Result()
	if err != nil || len(r.Events) > 0 || !strings.Contains(string(r.Response), "accepted already") || r.Then.Do != registry.ThenKeep {
		t.Errorf("result %+v, %v", r, err)
	}
}
