package progress

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// watching is a program whose only command is `watch`.
var watching = clitest.Commands(func(a *cli.App) []*cobra.Command { return []*cobra.Command{WatchCommand(a)} })

// A short outage of the service does not end the waiting.
func TestWatch_OutlivesAnOutage(t *testing.T) {
	var polls atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/items/b1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, registry.WorkItem{ID: "b1", Action: registry.Batch})
	})
	mux.HandleFunc("GET /api/v1/batches/b1/progress", func(w http.ResponseWriter, _ *http.Request) {
		p := registry.BatchProgress{BatchID: "b1", State: registry.StateProcessing, Expanded: true, Jobs: 1, Open: 1}
		switch polls.Add(1) {
		case 1:
		case 2:
			answer(w, http.StatusServiceUnavailable, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable, "later"))
			return
		case 3:
			panic(http.ErrAbortHandler) // the connection breaks
		default:
			p.State, p.Settled, p.Open, p.Failed, p.Content = registry.StateFailed, true, 0, 1, 1
		}
		answer(w, http.StatusOK, p)
	})
	mux.HandleFunc("GET /api/v1/batches/b1/jobs", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, registry.Page[registry.JobResult]{Rows: []registry.JobResult{
			{ItemID: "j1", State: registry.StateFailed, Name: "a\x1b[2J", Error: "404", Class: registry.ContentFault},
		}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_URL", srv.URL)
	t.Setenv("HOLDFAST_TOKEN", "t")
	r := watching.Run(t, "", "watch", "b1").Wants(t, exit.Content)
	if !strings.Contains(r.Out, "content: 404") || strings.Contains(r.Out, "\x1b") {
		t.Errorf("result table:\n%q", r.Out)
	}
	polls.Store(0)
	lines := strings.Split(strings.TrimSpace(watching.Run(t, "", "watch", "b1", "--json").Wants(t, exit.Content).Out), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"message_type":"status"`) || !strings.Contains(lines[2], `"message_type":"summary"`) {
		t.Errorf("%d lines, want two of status and a summary:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	if status >= http.StatusBadRequest {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Ctrl-C prints how to continue, and does not report the service as unreachable.
func TestWatch_Interrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/items/b1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, registry.WorkItem{ID: "b1", Action: registry.Batch})
	})
	var polls atomic.Int64
	mux.HandleFunc("GET /api/v1/batches/b1/progress", func(w http.ResponseWriter, r *http.Request) {
		if polls.Add(1) > 1 {
			interrupt()
			<-r.Context().Done()
			return
		}
		answer(w, http.StatusOK, registry.BatchProgress{BatchID: "b1", State: registry.StateProcessing, Expanded: true, Jobs: 1, Open: 1})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_URL", srv.URL)
	t.Setenv("HOLDFAST_TOKEN", "t")
	var out, errs strings.Builder
	code := watching(ctx, []string{"watch", "b1"}, strings.NewReader(""), &out, &errs)
	if code != exit.Interrupted || !strings.Contains(errs.String(), "holdfast watch b1") || strings.Contains(errs.String(), "no answer") {
		t.Errorf("code=%d, want %d and the command to go on:\n%s", code, exit.Interrupted, errs.String())
	}
}
