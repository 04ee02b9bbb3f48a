package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// gate is a source that answers nobody before it is opened.
type gate struct {
	*httptest.Server
	asked chan struct{} // closed at the first request
	open  func()
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{asked: make(chan struct{})}
	opened := make(chan struct{})
	g.open = sync.OnceFunc(func() { close(opened) })
	asked := sync.OnceFunc(func() { close(g.asked) })
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked()
		select {
		case <-opened:
			_, _ = w.Write([]byte("content"))
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		g.open()
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

// The whole queue from the command line: a step that runs is waited for, whatever ends the waiting leaves the queue paused.
func TestQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	source := newGate(t)
	dir := up(t)
	in := func(args ...string) result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	batch := strings.TrimSpace(in("submit", source.URL+"/slow.txt", "--type", "file").wants(t, exitOK).out)
	<-source.asked

	in("queue", "drain", "--timeout", "200ms", "--reason", "storage moves").wants(t, exitTemporary).
		says(t, "1 item is still running", "stays paused", "holdfast queue resume --dir "+dir)
	interruptedDrain(t, dir)
	status := func() (q registry.QueueStatus) {
		t.Helper()
		if err := json.Unmarshal([]byte(in("queue", "status", "--json").wants(t, exitOK).out), &q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := status(); q.Paused == nil || q.Paused.Reason != "storage moves again" || q.Running != 1 {
		t.Errorf("queue %+v, want it paused with one running", q)
	}
	if r := in("queue", "status").wants(t, exitOK); !strings.Contains(r.out, "paused since ") || !strings.Contains(r.out, "storage moves again") || !strings.Contains(r.out, "OLDEST READY") {
		t.Errorf("status:\n%s", r.out)
	}
	source.open()
	in("queue", "drain", "--reason", "storage moves").wants(t, exitOK).says(t, "drained", "queue resume")
	if q := status(); q.Paused == nil || q.Running != 0 {
		t.Errorf("queue %+v, want it drained and paused", q)
	}
	in("watch", batch).wants(t, exitHeld)
	if r := in("item", "list", "--batch", batch).wants(t, exitOK); !strings.Contains(r.out, "held: all (storage moves), since ") {
		t.Errorf("list:\n%s", r.out)
	}
	if r := in("item", "list", "--batch", batch, "--json").wants(t, exitOK); !strings.Contains(r.out, `"held_by":{"scope":"all"`) {
		t.Errorf("list as JSON:\n%s", r.out)
	}
	in("queue", "resume").wants(t, exitOK)
	in("queue", "resume").wants(t, exitNotFound)
	in("watch", batch).wants(t, exitOK)
	in("queue", "drain", "--reason", "nothing runs").wants(t, exitOK)
	in("queue", "resume").wants(t, exitOK)
	in("queue", "pause").wants(t, exitUsage).says(t, "body.reason")

	pausedForDeposits(t, in)
	notAccepting(t, in)
	holdsByName(t, in)
}

// pausedForDeposits: while the queue and a collection are held, an act on many items is carried out; only --all keeps that, too.
func pausedForDeposits(t *testing.T, in func(...string) result) {
	t.Helper()
	file := writeFile(t, filepath.Join(t.TempDir(), "paused.txt"), "paused")
	in("queue", "pause", "--reason", "look first").wants(t, exitOK)
	in("collection", "hold", "default", "--reason", "look first").wants(t, exitOK)
	batch := strings.TrimSpace(in("submit", file).wants(t, exitOK).out)
	in("watch", batch).wants(t, exitHeld)
	cancel := strings.TrimSpace(in("item", "cancel", "--match", "id:"+batch, "--yes").wants(t, exitOK).out)
	in("watch", cancel).wants(t, exitOK)
	if r := in("item", "show", batch, "--json").wants(t, exitOK); !strings.Contains(r.out, `"state":"Cancelled"`) {
		t.Errorf("cancelled while the queue is paused:\n%s", r.out)
	}
	in("queue", "pause", "--all", "--reason", "everything").wants(t, exitOK)
	if r := in("queue", "status").wants(t, exitOK); !strings.Contains(r.out, "everything paused since ") {
		t.Errorf("status:\n%s", r.out)
	}
	requeue := strings.TrimSpace(in("item", "requeue", "--match", "id:"+batch, "--yes").wants(t, exitOK).out)
	in("watch", requeue).wants(t, exitHeld)
	in("queue", "resume").wants(t, exitOK).says(t, "released: all", "released: ingest")
	in("watch", requeue).wants(t, exitOK)
	in("queue", "resume").wants(t, exitNotFound).says(t, "the queue is not paused")
	in("collection", "release", "default").wants(t, exitOK)
	in("watch", batch).wants(t, exitOK)
}

// interruptedDrain: Ctrl-C ends the waiting and not the pause.
func interruptedDrain(t *testing.T, dir string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	errs, over := newBuffer(), make(chan int, 1)
	go func() {
		over <- run(ctx, []string{"queue", "drain", "--reason", "storage moves again", "--dir", dir}, strings.NewReader(""), newBuffer(), errs)
	}()
	for !strings.Contains(errs.String(), "1 item is running") {
		<-errs.grew
	}
	interrupt()
	if code := <-over; code != int(exitInterrupted) || !strings.Contains(errs.String(), "the queue stays paused") ||
		!strings.Contains(errs.String(), "holdfast queue resume --dir "+dir) {
		t.Errorf("exit code %d, want %d and what to do:\n%s", code, exitInterrupted, errs)
	}
}

func notAccepting(t *testing.T, in func(...string) result) {
	t.Helper()
	file := writeFile(t, filepath.Join(t.TempDir(), "late.txt"), "late")
	in("queue", "accept", "perhaps", "--reason", "r").wants(t, exitUsage).says(t, "neither on nor off")
	in("queue", "accept", "off").wants(t, exitUsage).says(t, "body.reason")
	in("queue", "accept", "off", "--reason", "stock-taking").wants(t, exitOK)
	before := in("batch", "list", "--json", "--limit", "0").wants(t, exitOK).out
	in("submit", file).wants(t, exitTemporary).says(t, "stock-taking", "try again later")
	if r := in("queue", "status").wants(t, exitOK); !strings.Contains(r.out, "no, since ") || !strings.Contains(r.out, "stock-taking") {
		t.Errorf("status:\n%s", r.out)
	}
	if after := in("batch", "list", "--json", "--limit", "0").wants(t, exitOK).out; after != before {
		t.Errorf("a batch came in:\n%s", after)
	}
	in("queue", "accept", "ON", "--reason", "done").wants(t, exitOK)
	in("submit", file, "--wait").wants(t, exitOK)
}

// holdsByName: collections, batches and items are held and released by their names.
func holdsByName(t *testing.T, in func(...string) result) {
	t.Helper()
	in("hold", "add", "--scope", "stage", "--key", "process", "--reason", "look first").wants(t, exitOK)
	s := in("submit", writeFile(t, filepath.Join(t.TempDir(), "a.txt"), "a"), "--wait", "--json").wants(t, exitHeld).summary(t)
	batch, job := s.BatchID, s.Jobs[0].ItemID
	in("batch", "hold", batch, "nothing", "--reason", "a question").wants(t, exitPartly)
	in("batch", "hold", job, "--reason", "a question").wants(t, exitNotFound).says(t, "is no batch")
	in("item", "hold", job, "--reason", "another").wants(t, exitOK)
	in("collection", "hold", "default", "--reason", "a third").wants(t, exitOK)
	in("hold", "remove", "--scope", "stage", "--key", "process").wants(t, exitOK)
	for _, step := range []struct {
		reason  string
		release []string
	}{
		{"a question", []string{"batch", "release", batch}},
		{"another", []string{"item", "release", job}},
		{"a third", []string{"collection", "release", "default"}},
	} {
		if r := in("item", "show", job).wants(t, exitOK); !strings.Contains(r.out, "held by") || !strings.Contains(r.out, step.reason) {
			t.Errorf("want it held because of %q:\n%s", step.reason, r.out)
		}
		in("watch", batch).wants(t, exitHeld)
		in(step.release...).wants(t, exitOK)
		in(step.release...).wants(t, exitNotFound)
	}
	in("watch", batch).wants(t, exitOK)
}

// TestQueueStatus_WorkersAway: what waits and what NSQ was sent stand side by side, and it is said why they differ.
func TestQueueStatus_WorkersAway(t *testing.T) {
	out := newBuffer()
	a := &app{out: out, err: newBuffer()}
	err := a.printQueue(registry.QueueStatus{Accepting: registry.Accepting{On: true}, Stages: []registry.StageQueue{
		{Stage: registry.Download, Ready: 5000, Rung: 2},
		{Stage: registry.Process, Ready: 3, Rung: 2, Capacity: 4, Free: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"RUNG", "download: 5,000 items are ready, and no worker serves this stage", "NSQ has 2 messages for them", "holdfast worker download"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the status does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "process:") {
		t.Errorf("a stage that has workers is explained:\n%s", out)
	}
	for line := range strings.Lines(out.String()) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}
