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

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// gate is a source that answers only after it is opened.
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

// TestQueue: drain waits for a running step, and leaves the queue paused however it ends.
func TestQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	source := newGate(t)
	dir := up(t)
	in := func(args ...string) clitest.Result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	batch := strings.TrimSpace(in("submit", source.URL+"/slow.txt", "--type", "file").Wants(t, exit.OK).Out)
	<-source.asked

	in("queue", "drain", "--timeout", "200ms", "--reason", "storage moves").Wants(t, exit.Temporary).
		Says(t, "1 item is still running", "stays paused", "holdfast queue resume --dir "+dir)
	interruptedDrain(t, dir)
	status := func() (q registry.QueueStatus) {
		t.Helper()
		if err := json.Unmarshal([]byte(in("queue", "status", "--json").Wants(t, exit.OK).Out), &q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := status(); q.Paused == nil || q.Paused.Reason != "storage moves again" || q.Running != 1 {
		t.Errorf("queue %+v, want it paused with one running", q)
	}
	if r := in("queue", "status").Wants(t, exit.OK); !strings.Contains(r.Out, "paused since ") || !strings.Contains(r.Out, "storage moves again") || !strings.Contains(r.Out, "OLDEST READY") {
		t.Errorf("status:\n%s", r.Out)
	}
	source.open()
	in("queue", "drain", "--reason", "storage moves").Wants(t, exit.OK).Says(t, "drained", "queue resume")
	if q := status(); q.Paused == nil || q.Running != 0 {
		t.Errorf("queue %+v, want it drained and paused", q)
	}
	in("watch", batch).Wants(t, exit.Held)
	if r := in("item", "list", "--batch", batch).Wants(t, exit.OK); !strings.Contains(r.Out, "held: all (storage moves), since ") {
		t.Errorf("list:\n%s", r.Out)
	}
	if r := in("item", "list", "--batch", batch, "--json").Wants(t, exit.OK); !strings.Contains(r.Out, `"held_by":{"scope":"all"`) {
		t.Errorf("list as JSON:\n%s", r.Out)
	}
	in("queue", "resume").Wants(t, exit.OK)
	in("queue", "resume").Wants(t, exit.NotFound)
	in("watch", batch).Wants(t, exit.OK)
	in("queue", "drain", "--reason", "nothing runs").Wants(t, exit.OK)
	in("queue", "resume").Wants(t, exit.OK)
	in("queue", "pause").Wants(t, exit.Usage).Says(t, "  --reason: missing")

	pausedForDeposits(t, in)
	notAccepting(t, in)
	holdsByName(t, in)
}

// pausedForDeposits: while the queue and a collection are held, a bulk act is carried out, unless
// --all paused it, too.
func pausedForDeposits(t *testing.T, in func(...string) clitest.Result) {
	t.Helper()
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "paused.txt"), "paused")
	in("queue", "pause", "--reason", "look first").Wants(t, exit.OK)
	in("collection", "hold", "default", "--reason", "look first").Wants(t, exit.OK)
	batch := strings.TrimSpace(in("submit", file).Wants(t, exit.OK).Out)
	in("watch", batch).Wants(t, exit.Held)
	cancel := strings.TrimSpace(in("item", "cancel", "--match", "id:"+batch, "--yes").Wants(t, exit.OK).Out)
	in("watch", cancel).Wants(t, exit.OK)
	if r := in("item", "show", batch, "--json").Wants(t, exit.OK); !strings.Contains(r.Out, `"state":"Cancelled"`) {
		t.Errorf("cancelled while the queue is paused:\n%s", r.Out)
	}
	in("queue", "pause", "--all", "--reason", "everything").Wants(t, exit.OK)
	if r := in("queue", "status").Wants(t, exit.OK); !strings.Contains(r.Out, "everything paused since ") {
		t.Errorf("status:\n%s", r.Out)
	}
	requeue := strings.TrimSpace(in("item", "requeue", "--match", "id:"+batch, "--yes").Wants(t, exit.OK).Out)
	in("watch", requeue).Wants(t, exit.Held)
	in("queue", "resume").Wants(t, exit.OK).Says(t, "released: all", "released: ingest")
	in("watch", requeue).Wants(t, exit.OK)
	in("queue", "resume").Wants(t, exit.NotFound).Says(t, "the queue is not paused")
	in("collection", "release", "default").Wants(t, exit.OK)
	in("watch", batch).Wants(t, exit.OK)
}

// interruptedDrain: Ctrl-C ends the waiting, not the pause.
func interruptedDrain(t *testing.T, dir string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	errs, over := newBuffer(), make(chan exit.Code, 1)
	go func() {
		over <- execute(ctx, []string{"queue", "drain", "--reason", "storage moves again", "--dir", dir}, strings.NewReader(""), newBuffer(), errs)
	}()
	for !strings.Contains(errs.String(), "1 item is running") {
		<-errs.grew
	}
	interrupt()
	if code := <-over; code != exit.Interrupted || !strings.Contains(errs.String(), "the queue stays paused") ||
		!strings.Contains(errs.String(), "holdfast queue resume --dir "+dir) {
		t.Errorf("exit code %d, want %d and what to do:\n%s", code, exit.Interrupted, errs)
	}
}

func notAccepting(t *testing.T, in func(...string) clitest.Result) {
	t.Helper()
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "late.txt"), "late")
	in("queue", "accept", "perhaps", "--reason", "r").Wants(t, exit.Usage).Says(t, "expected on or off")
	in("queue", "accept", "off").Wants(t, exit.Usage).Says(t, "  --reason: missing")
	in("queue", "accept", "off", "--reason", "stock-taking").Wants(t, exit.OK)
	before := in("batch", "list", "--json", "--limit", "0").Wants(t, exit.OK).Out
	in("submit", file).Wants(t, exit.Temporary).Says(t, "stock-taking", "try again later")
	if r := in("queue", "status").Wants(t, exit.OK); !strings.Contains(r.Out, "no, since ") || !strings.Contains(r.Out, "stock-taking") {
		t.Errorf("status:\n%s", r.Out)
	}
	if after := in("batch", "list", "--json", "--limit", "0").Wants(t, exit.OK).Out; after != before {
		t.Errorf("a batch came in:\n%s", after)
	}
	in("queue", "accept", "ON").Wants(t, exit.OK)
	in("submit", file, "--wait").Wants(t, exit.OK)
}

// holdsByName: collections, batches and items are held and released by name.
func holdsByName(t *testing.T, in func(...string) clitest.Result) {
	t.Helper()
	in("hold", "add", "--scope", "stage", "--key", "process", "--reason", "look first").Wants(t, exit.OK)
	s := in("submit", clitest.WriteFile(t, filepath.Join(t.TempDir(), "a.txt"), "a"), "--wait", "--json").Wants(t, exit.Held).Summary(t)
	batch, job := s.BatchID, s.Jobs[0].ItemID
	in("batch", "hold", batch, "nothing", "--reason", "a question").Wants(t, exit.Partly)
	in("batch", "hold", job, "--reason", "a question").Wants(t, exit.NotFound).Says(t, "is not a batch")
	in("item", "hold", job, "--reason", "another").Wants(t, exit.OK)
	in("collection", "hold", "default", "--reason", "a third").Wants(t, exit.OK)
	in("hold", "remove", "--scope", "stage", "--key", "process").Wants(t, exit.OK)
	for _, step := range []struct {
		reason  string
		release []string
	}{
		{"a question", []string{"batch", "release", batch}},
		{"another", []string{"item", "release", job}},
		{"a third", []string{"collection", "release", "default"}},
	} {
		if r := in("item", "show", job).Wants(t, exit.OK); !strings.Contains(r.Out, "held by") || !strings.Contains(r.Out, step.reason) {
			t.Errorf("want it held because of %q:\n%s", step.reason, r.Out)
		}
		in("watch", batch).Wants(t, exit.Held)
		in(step.release...).Wants(t, exit.OK)
		in(step.release...).Wants(t, exit.NotFound)
	}
	in("watch", batch).Wants(t, exit.OK)
}
