package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// Acts on failed items, by id and by query, with and without confirmation.
func TestActs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	var mended, down atomic.Bool
	down.Store(true)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/down") && down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case !strings.HasPrefix(r.URL.Path, "/down") && !mended.Load():
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("mended"))
	}))
	t.Cleanup(site.Close)
	dir := up(t)
	in := func(args ...string) clitest.Result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	state := func(id string) string {
		t.Helper()
		var it struct {
			State string `json:"state"`
		}
		if err := json.Unmarshal([]byte(in("item", "show", id, "--json").Wants(t, exit.OK).Out), &it); err != nil {
			t.Fatal(err)
		}
		return it.State
	}
	var batches, jobs []string
	for _, name := range []string{"a", "b", "c"} {
		s := in("submit", site.URL+"/"+name, "--type", "file", "--wait", "--json").Wants(t, exit.Content).Summary(t)
		batches, jobs = append(batches, s.BatchID), append(jobs, s.Jobs[0].ItemID)
	}

	t.Run("abandon is asked for one by one", func(t *testing.T) {
		in("item", "abandon", "--match", "state:failed", "--yes").Wants(t, exit.Usage).Says(t, "by itself")
	})
	t.Run("delete asks", func(t *testing.T) {
		in("batch", "delete", batches[2]).Wants(t, exit.Held).Says(t, "1 job is deleted", "--yes")
		if r := in("batch", "delete", batches[2], "--dry-run").Wants(t, exit.OK).Says(t, "1 job is deleted"); r.Out != batches[2]+" would be Deleted\n" {
			t.Errorf("a dry run prints %q", r.Out)
		}
		if got := state(batches[2]); got != "Failed" {
			t.Errorf("state %s", got)
		}
		in("item", "delete", jobs[2], "--yes", "--reason", "a test").Wants(t, exit.OK)
		in("item", "requeue", jobs[2]).Wants(t, exit.Refused).Says(t, "state change (Deleted -> Pending) is not allowed")
		in("batch", "delete", batches[2], "--yes").Wants(t, exit.OK)
	})
	t.Run("match asks", func(t *testing.T) {
		if r := in("item", "cancel", "--match", "status:failed,completed", "--dry-run").Wants(t, exit.OK); !strings.Contains(r.Out, "Failed: skipped, ") || !strings.Contains(r.Out, "cancel would change 0 of ") {
			t.Errorf("a dry run that skips all prints %q", r.Out)
		}
		r := in("item", "requeue", "--match", "state:failed action:ingest", "--dry-run").Wants(t, exit.OK)
		if r.Out != "       2 Failed\nrequeue would change 2 of 2 items\n" {
			t.Errorf("a dry run prints %q", r.Out)
		}
		if r := in("item", "requeue", "--match", "state:failed action:ingest", "--dry-run", "--json").Wants(t, exit.OK); !strings.Contains(r.Out, `"applies":2`) {
			t.Errorf("as JSON: %s", r.Out)
		}
		in("item", "requeue", "--match", "state:aborted", "--dry-run").Wants(t, exit.Nothing)
		in("item", "requeue", jobs[0], "--grace", "30s").Wants(t, exit.Usage).Says(t, "--match")
		for _, wrong := range []string{"-1s", "2h", "1500ms"} {
			in("item", "requeue", "--match", "state:failed", "--grace", wrong).Wants(t, exit.Usage).Says(t, "whole seconds")
		}
		in("item", "requeue", "--match", "state:failed action:ingest").Wants(t, exit.Held).Says(t, "2 Failed", "requeue 2 items?", "--yes")
		in("item", "requeue", "--match", "state:aborted").Wants(t, exit.Nothing).Says(t, "nothing matches")
		in("item", "requeue", "--match", "nonsense:x").Wants(t, exit.Usage)
		in("item", "requeue", "--match", "").Wants(t, exit.Usage)
		in("item", "requeue", "--match", "state:failed", jobs[0]).Wants(t, exit.Usage)
		if got := state(jobs[0]); got != "Failed" {
			t.Errorf("state %s", got)
		}
	})
	t.Run("match is withdrawn", func(t *testing.T) {
		r := in("item", "requeue", "--match", "state:failed action:ingest", "--yes", "--grace", "5m").Wants(t, exit.OK)
		bulk := strings.TrimSpace(r.Out)
		r.Says(t, "starts in 5m0s", "item cancel "+bulk, "withdraws it")
		in("item", "cancel", bulk).Wants(t, exit.OK)
		if got, job := state(bulk), state(jobs[0]); got != "Cancelled" || job != "Failed" {
			t.Errorf("withdrawn, the act is %s and a job %s", got, job)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		in("item", "priority", jobs[0]).Wants(t, exit.Usage).Says(t, "--to N is missing")
		in("item", "priority", jobs[0], "--to", "high").Wants(t, exit.Usage).Says(t, "whole number")
		in("item", "cancel", "").Wants(t, exit.Usage).Says(t, "an id is empty")
		in("item", "why", "").Wants(t, exit.Usage).Says(t, "ID is empty")
		in("batch", "cleanup", "--older", "3").Wants(t, exit.Usage).Says(t, "30d")
	})
	t.Run("what an act on a batch does not reach", func(t *testing.T) {
		in("item", "priority", batches[1], "--to", "3").Wants(t, exit.OK).Says(t, "the batch's report only", "item priority --match batch:"+batches[1]+" --to 3")
		helps := []string{"would only make another report", "item requeue --match 'batch:" + batches[1] + " state:failed'", "batch update-report " + batches[1] + " --dir "}
		in("item", "requeue", batches[1]).Wants(t, exit.Refused).Says(t, helps...)
		in("item", "requeue", batches[1], "--from", "report").Wants(t, exit.Refused).Says(t, helps...)
		helps[1] = strings.TrimSuffix(helps[1], " --dir ")
		bulk := strings.TrimSpace(in("item", "requeue", "--match", "id:"+batches[1], "--yes").Wants(t, exit.OK).Out)
		eventually(t, func() bool { return state(bulk) == "Completed" })
		if shown := in("item", "show", bulk).Wants(t, exit.OK).Out; !strings.Contains(strings.Join(strings.Fields(shown), " "), helps[1]) {
			t.Errorf("the bulk act does not say what helps:\n%s", shown)
		}
		if got := state(batches[1]); got != "Failed" {
			t.Errorf("the batch is %s after a requeue that was refused", got)
		}
	})
	t.Run("match acts", func(t *testing.T) {
		mended.Store(true)
		r := in("item", "requeue", "--match", "state:failed action:ingest", "--yes", "--reason", "the source was mended").Wants(t, exit.OK)
		bulk := strings.TrimSpace(r.Out)
		eventually(t, func() bool {
			return state(bulk) == "Completed" && state(jobs[0]) == "Completed" && state(jobs[1]) == "Completed"
		})
		in("batch", "update-report", batches[0], batches[1]).Wants(t, exit.OK)
		eventually(t, func() bool { return state(batches[0]) == "Completed" && state(batches[1]) == "Completed" })
	})
	t.Run("reports", func(t *testing.T) {
		report := func(args ...string) string {
			t.Helper()
			return in(append([]string{"batch", "report", batches[0]}, args...)...).Wants(t, exit.OK).Out
		}
		contains := func(text string, words ...string) {
			t.Helper()
			for _, w := range words {
				if !strings.Contains(text, w) {
					t.Errorf("without %q:\n%s", w, text)
				}
			}
		}
		contains(report(), "since report 1: 1 now completed, 0 still failed, 0 newly failed", "Completed since report 1\n", jobs[0])
		contains(report("--closing", "1"), "1 failed: 1 on ", "Not completed\n", jobs[0], "puts the file there, then an admin requeues the item")
		contains(report("--changed", "--csv"), "row,line,item_id,name,state", jobs[0], ",now-completed,")
		if out := report("--failed", "--csv"); strings.Count(out, "\n") != 1 {
			t.Errorf("nothing has failed any more:\n%s", out)
		}
		var lines []registry.BatchReport
		for line := range strings.Lines(report("--list", "--json")) {
			var r registry.BatchReport
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, r)
		}
		if len(lines) != 2 || lines[0].Closing != 2 || lines[0].Difference == nil || lines[1].Failed != 1 || lines[1].Difference != nil {
			t.Errorf("reports %+v", lines)
		}
		contains(report("--list"), "REPORT", "1 now completed")
		in("batch", "report", batches[0], "--closing", "1", "--changed").Wants(t, exit.Failed).Says(t, "leave out --changed")
		in("batch", "report", batches[0], "--failed", "--completed").Wants(t, exit.Usage).Says(t, "exclude each other")
		in("batch", "report", batches[0], "--list", "--csv").Wants(t, exit.Usage).Says(t, "takes no other option")
	})
	t.Run("retry now", func(t *testing.T) {
		slow := strings.TrimSpace(in("submit", site.URL+"/down", "--type", "file").Wants(t, exit.OK).Out)
		var job registry.WorkItem
		eventually(t, func() bool {
			out := in("item", "list", "delayed:yes", "batch:"+slow, "--json").Out
			return json.Unmarshal([]byte(out), &job) == nil && job.Tries == 1 // the next try is a minute away
		})
		if r := in("item", "why", job.ID).Wants(t, exit.OK); !strings.Contains(r.Out, "at once: retry item "+job.ID) {
			t.Errorf("why:\n%s", r.Out)
		}
		down.Store(false)
		in("item", "retry", job.ID).Wants(t, exit.OK)
		in("watch", slow).Wants(t, exit.OK)
		in("item", "retry", job.ID).Wants(t, exit.Refused).Says(t, "is not allowed")
		batches, jobs = append(batches, slow), append(jobs, job.ID)
	})
	t.Run("cleanup", func(t *testing.T) {
		in("batch", "cleanup", "--older", "30d").Wants(t, exit.Nothing)
		in("batch", "cleanup").Wants(t, exit.Held).Says(t, "3 completed batches", "1 deleted batches", "remove 6 items", "--yes")
		in("item", "show", batches[0]).Wants(t, exit.OK)
		in("batch", "cleanup", "--yes").Wants(t, exit.OK)
		for _, id := range append(batches, jobs...) {
			in("item", "show", id).Wants(t, exit.NotFound)
		}
	})
}

// eventually repeats a check until it succeeds.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	end := time.After(time.Minute)
	for !so() {
		select {
		case <-end:
			t.Fatal("it does not come to pass")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
