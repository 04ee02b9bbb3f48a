package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
)

// decided is the state of the processes of TestProcess.
type decided struct {
	Reviewer string `json:"reviewer"`
}

// curate waits for a decision. A decision that is not "accept" is an error.
func curate(_ context.Context, s *process.Step[decided]) error {
	switch s.Kind {
	case registry.StepInit:
		if err := s.Args(&s.State); err != nil {
			return err
		}
		s.SetMetadata(map[string]string{"title": "A map"})
		s.Event("asked " + s.State.Reviewer)
		s.Continue(time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC))
		s.Respond(map[string]string{"asked": s.State.Reviewer})
	case registry.StepCall:
		var decision string
		if err := s.Args(&decision); err != nil {
			return err
		}
		if decision != "accept" {
			return errors.New("the decision " + decision + " is not known")
		}
		s.Event("accepted by " + s.State.Reviewer)
		s.Respond("thank you")
	case registry.StepRepair:
		s.Respond("repaired")
	}
	return nil
}

// serveProcesses serves the namespace curation to the service in dir.
func serveProcesses(t *testing.T, dir string) {
	t.Helper()
	at, err := cli.New("test", strings.NewReader(""), io.Discard, io.Discard).ReadClientFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	var m task.Mux
	process.Handle(&m, "curation", curate, process.Title("Wait for a curator"))
	r := remote.Open(at.URL, at.Token)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- task.Serve(ctx, r, &m, task.Options{}) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, r.Close()); err != nil {
			t.Error(err)
		}
	})
	for !strings.Contains(holdfast(t, "process", "namespaces", "--dir", dir).Out, "curation") {
		time.Sleep(10 * time.Millisecond)
	}
}

// TestProcess leads a process through the commands.
func TestProcess(t *testing.T) {
	dir := up(t)
	const id = "ark:/99999/fk4x"
	run := func(args ...string) clitest.Result {
		return holdfast(t, append(append([]string{"process"}, args...), "--dir", dir)...)
	}
	run("namespaces").Wants(t, exit.OK).Says(t, "no namespaces")
	run("init", "curation", id).Wants(t, exit.NotFound).Says(t, `unknown namespace "curation"`)
	serveProcesses(t, dir)
	if out := run("namespaces").Wants(t, exit.OK).Out; !strings.Contains(out, "Wait for a curator") {
		t.Error(out)
	}
	run("list").Wants(t, exit.OK).Says(t, "no processes")
	run("init", "curatoin", id).Wants(t, exit.NotFound).Says(t, "did you mean curation?")
	for range 2 { // the second is a repeat
		if out := run("init", "curation", id, "--args", `{"reviewer": "ada"}`, "--idempotency-key", "k").Wants(t, exit.OK).Out; out != "{\"asked\":\"ada\"}\n" {
			t.Errorf("init printed %q", out)
		}
	}
	run("init", "curation", id).Wants(t, exit.Refused).Says(t, "exists already")
	shows := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
	}
	shows(run("show", "curation", id).Wants(t, exit.OK).Out, "curation "+id, "running since", "step at 2100-01-02", `{"title":"A map"}`, `{"reviewer":"ada"}`, "event 1", `"asked ada"`)
	if out := run("call", "curation", id, "--args", `"accept"`).Wants(t, exit.OK).Out; out != "\"thank you\"\n" {
		t.Errorf("call printed %q", out)
	}
	if failed := run("call", "curation", id, "--args", `"later"`).Wants(t, exit.Failed).Says(t, "the decision later is not known"); failed.Out != "" {
		t.Errorf("a failed call printed %q", failed.Out)
	}
	shows(run("show", "curation", id).Wants(t, exit.OK).Out, "error since", "the decision later is not known", "holdfast process repair curation "+id)
	shows(run("list", "--status", "error").Wants(t, exit.OK).Out, id, "the decision later is not known")
	run("call", "curation", id).Wants(t, exit.Refused).Says(t, "holdfast process repair curation "+id)
	if out := run("repair", "curation", id).Wants(t, exit.OK).Out; out != "\"repaired\"\n" {
		t.Errorf("repair printed %q", out)
	}
	run("call", "curation", id, "--args", `"never"`).Wants(t, exit.Failed)
	shows(run("retry", "curation", id, "--reason", "a typing error").Wants(t, exit.OK).Out, "running since")
	run("retry", "curation", id).Wants(t, exit.Refused).Says(t, "nothing to repair")
	shows(run("trace", "curation", id).Wants(t, exit.OK).Out, "init", "call", "repair", "cancelled", "completed", "failed", "the decision never is not known")
	var trace []registry.TracedStep
	for line := range strings.Lines(run("trace", "curation", id, "--json").Wants(t, exit.OK).Out) {
		var s registry.TracedStep
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		trace = append(trace, s)
	}
	if len(trace) != 6 || trace[0].Kind != registry.StepInit {
		t.Errorf("the trace as JSON: %+v", trace)
	}
	run("show", "curation", "nobody").Wants(t, exit.NotFound)
	run("call", "curation", id, "--args", "n=1").Wants(t, exit.Usage).Says(t, "not JSON")
	run("list", "--status", "dead").Wants(t, exit.Usage)
	run("remove", "curation", id).Wants(t, exit.Held).Says(t, "add --yes")
	run("remove", "curation", id, "--yes", "--reason", "a mistake").Wants(t, exit.OK).Says(t, "removed process curation/"+id)
	run("remove", "curation", id, "--yes").Wants(t, exit.NotFound)
}

// TestProcess_NoWait: without a program that serves it, a step waits, and the command says where.
func TestProcess_NoWait(t *testing.T) {
	dir := up(t)
	at, err := cli.New("test", strings.NewReader(""), io.Discard, io.Discard).ReadClientFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := remote.Open(at.URL, at.Token)
	if err := errors.Join(r.AnnounceNamespaces(t.Context(), []registry.Namespace{{Name: "curation"}}), r.Close()); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []string{"0", "10ms"} {
		got := holdfast(t, "process", "init", "curation", "a", "--wait", wait, "--idempotency-key", "k", "--dir", dir).Wants(t, exit.OK).Says(t, "no answer yet; `holdfast process trace curation a` shows the step")
		if len(strings.Fields(got.Out)) != 1 {
			t.Errorf("it printed %q, want the step's item", got.Out)
		}
	}
	if out := holdfast(t, "process", "show", "curation", "a", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, "init since") {
		t.Error(out)
	}
	holdfast(t, "process", "call", "curation", "a", "--dir", dir).Wants(t, exit.Refused).Says(t, "its first step has not ended")
}
