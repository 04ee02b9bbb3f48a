package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestOutsideSteps runs deposits of a collection whose profile names functions, while a program serves
// these over the public protocol: it reads what was stored, is retried, fails and is requeued, and
// holdfast is killed before, while and after it settles.
func TestOutsideSteps(t *testing.T) {
	t.Parallel()
	source := serveAny(t, 5)
	h := upAt(t, freeAddress(t))
	secret, _ := h.token("--name", "tools", "--role", "worker", "--stage", "run:migrate", "--stage", "run:tell")
	p := &program{h: h, secret: secret}
	p.good(http.MethodPost, "/functions", wire.FunctionsRequest{Functions: []wire.FunctionRequest{
		{Name: "migrate", Args: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"job":{"type":"object"}},"required":["to","job"]}`)},
		{Name: "tell"},
	}}, nil)
	h.collection("stepped", `"steps": [{"after": "process", "function": "tell", "on": "always"},
		{"after": "record", "function": "migrate", "blocking": true, "args": {"to": "pdf-a"}}]`)
	reader, _ := h.token("--name", "tools-read", "--role", "depositor", "--collection", "stepped")
	batch := h.begin(source+"/batch.checkm", "--collection", "stepped")

	type arguments struct {
		To  string
		Job registry.StepJob
	}
	args := func(run wire.TaskRun) (a arguments) {
		t.Helper()
		if err := json.Unmarshal(run.Args, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	jobs := map[string]wire.TaskRun{} // the migrations by the job's name
	for range 5 {
		run := p.claim("migrate")
		a := args(run)
		jobs[a.Job.Name] = run
		if a.To != "pdf-a" || a.Job.ARK == "" || a.Job.Version != 1 || a.Job.Files != 1 || a.Job.Batch != batch || a.Job.Collection != "stepped" || a.Job.Failed {
			t.Errorf("the arguments are %+v", a)
		}
		// The program reads the file with its second token.
		object := h.url() + "/api/v1/objects/" + url.QueryEscape(a.Job.ARK)
		var stored registry.Page[registry.File]
		if status, err := send(t.Context(), reader, http.MethodGet, object+"/files?version=1", nil, &stored); err != nil || status != http.StatusOK {
			t.Fatalf("files of %s: %d, %v", a.Job.ARK, status, err)
		}
		found := false
		for _, f := range stored.Rows {
			found = found || f.Path == "producer/"+a.Job.Name
		}
		if !found {
			t.Errorf("%s has the files %+v", a.Job.Name, stored.Rows)
		}
		p.good(http.MethodPost, attemptPath(run, "renew"), wire.TaskBeat{Worker: "program", Progress: []wire.TaskProgress{{Title: "pages", Unit: "pages", Position: 3}}}, nil)
	}
	for range 5 {
		if run := p.claim("tell"); args(run).Job.Failed {
			t.Errorf("a good job is told as %s", run.Args)
		} else {
			p.settle(run, wire.TaskSettlement{Outcome: wire.TaskDone})
		}
	}
	shown := func(name string) (step registry.StepRun, job item) {
		t.Helper()
		job = h.item(args(jobs[name]).Job.ID)
		for _, s := range rows[struct {
			Steps []registry.StepRun `json:"steps"`
		}](h, "item", "show", job.ID)[0].Steps {
			if s.Function == "migrate" {
				step = s
			}
		}
		return step, job
	}
	for name := range jobs {
		step, job := shown(name)
		if step.Status != registry.Running || !step.Blocking || len(step.Progress) != 1 || step.Progress[0].Position != 3 || job.Stage != "notify" || job.FinishedAt != nil {
			t.Errorf("%s with the step %+v", job.Name, step)
		}
		w := rows[why](h, "item", "why", job.ID)[0]
		if w.Reason != "blocked" || !strings.Contains(w.Sentence, jobs[name].ID) {
			t.Errorf("why: %+v", w)
		}
	}

	f0 := args(jobs["f0.txt"]).Job.ID
	says(t, "the graph of a job with its steps", h.must(0, "task", "graph", f0).stdout, "migrate", "pages 3", "f0.txt")
	says(t, "the graph of the ingest", h.must(0, "task", "graph", batch).stdout, "waits for migrate after record of f0.txt", "f4.txt", "batch.checkm")

	done := func(name string) wire.TaskSettlement {
		return wire.TaskSettlement{Outcome: wire.TaskDone, Result: text(t, name+" is migrated")}
	}
	completed := func(name string, v wire.TaskVerdict, attempts int64) {
		t.Helper()
		if step, _ := shown(name); v.Status != registry.Completed || step.Status != registry.Completed || step.Attempts != attempts {
			t.Errorf("%s: %+v, %+v", name, v, step)
		}
		result := rows[struct {
			Results map[string]json.RawMessage `json:"results"`
		}](h, "item", "show", jobs[name].ID)[0].Results[registry.ResultReturned]
		if want := string(text(t, name+" is migrated")); string(result) != want {
			t.Errorf("%s returned %s, want %s", name, result, want)
		}
	}

	// A retry, and its success.
	again := 0
	if v := p.settle(jobs["f0.txt"], wire.TaskSettlement{Outcome: wire.TaskRetry, Error: "the tool is busy", DelaySeconds: &again}); v.Status != registry.Pending || v.Failures != 1 {
		t.Errorf("a retry is %+v", v)
	}
	completed("f0.txt", p.settle(p.claim("migrate"), done("f0.txt")), 2)

	// A failure, which a person mends.
	if v := p.settle(jobs["f1.txt"], wire.TaskSettlement{Outcome: wire.TaskFatal, Error: "the tool is missing"}); v.Status != registry.Failed {
		t.Errorf("a failure is %+v", v)
	}
	if step, job := shown("f1.txt"); step.Error != "the tool is missing" || job.FinishedAt != nil {
		t.Errorf("%s with the step %+v", job.Name, step)
	}
	says(t, "the list of failures", h.must(0, "item", "failures", "action:task").stdout, "the tool is missing", "run:migrate")
	h.must(0, "item", "requeue", "--match", "action:task status:failed", "--yes")
	completed("f1.txt", p.settle(p.claim("migrate"), done("f1.txt")), 2)

	// Kills around settlements: a repeat gets the first one's verdict, and nothing is done twice.
	kill := func() {
		t.Helper()
		if err := h.signal(syscall.SIGKILL); err == nil {
			t.Error("holdfast ended cleanly when it was killed")
		}
	}
	kill()
	h.start()
	completed("f2.txt", p.settle(jobs["f2.txt"], done("f2.txt")), 1)
	sent := make(chan struct{})
	path := h.url() + "/api/v1" + attemptPath(jobs["f3.txt"], "settle")
	go func() {
		defer close(sent)
		_, _ = send(t.Context(), secret, http.MethodPost, path, done("f3.txt"), nil)
	}()
	kill()
	<-sent
	h.start()
	completed("f3.txt", p.settle(jobs["f3.txt"], done("f3.txt")), 1)
	p.settle(jobs["f4.txt"], done("f4.txt"))
	kill()
	h.start()
	completed("f4.txt", p.settle(jobs["f4.txt"], done("f4.txt")), 1)
	h.watch(batch)
	if n := len(h.list("action:task", "stage:run:migrate")); n != 5 {
		t.Errorf("there are %d migrations", n)
	}

	// A job that fails is told, too.
	if s, code := h.submit("--type", "container", source+"/no.zip", "--collection", "stepped"); code == 0 || s.Failed != 1 {
		t.Errorf("a broken container ended with %d: %+v", code, s)
	}
	run := p.claim("tell")
	if a := args(run); !a.Job.Failed || a.Job.Error == "" {
		t.Errorf("a failed job is told as %s", run.Args)
	}
	p.settle(run, wire.TaskSettlement{Outcome: wire.TaskDone})
}
