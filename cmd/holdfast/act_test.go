package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Acts on items that failed, by id and by query, with and without a yes.
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
	in := func(args ...string) result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	state := func(id string) string {
		t.Helper()
		var it struct {
			State string `json:"state"`
		}
		if err := json.Unmarshal([]byte(in("item", "show", id, "--json").wants(t, exitOK).out), &it); err != nil {
			t.Fatal(err)
		}
		return it.State
	}
	var batches, jobs []string
	for _, name := range []string{"a", "b", "c"} {
		s := in("submit", site.URL+"/"+name, "--type", "file", "--wait", "--json").wants(t, exitContent).summary(t)
		batches, jobs = append(batches, s.BatchID), append(jobs, s.Jobs[0].ItemID)
	}

	t.Run("abandon is asked for one by one", func(t *testing.T) {
		in("item", "abandon", "--match", "state:failed", "--yes").wants(t, exitUsage).says(t, "by itself")
	})
	t.Run("delete asks", func(t *testing.T) {
		in("batch", "delete", batches[2]).wants(t, exitHeld).says(t, "1 job is deleted", "--yes")
		if got := state(batches[2]); got != "Failed" {
			t.Errorf("state %s", got)
		}
		in("item", "delete", jobs[2], "--yes", "--reason", "a test").wants(t, exitOK)
		in("item", "requeue", jobs[2]).wants(t, exitRefused).says(t, "state change (Deleted -> Pending) is not allowed")
		in("batch", "delete", batches[2], "--yes").wants(t, exitOK)
	})
	t.Run("match asks", func(t *testing.T) {
		in("item", "requeue", "--match", "state:failed action:ingest").wants(t, exitHeld).says(t, "2 Failed", "requeue 2 items?", "--yes")
		in("item", "requeue", "--match", "state:aborted").wants(t, exitNothing).says(t, "nothing matches")
		in("item", "requeue", "--match", "nonsense:x").wants(t, exitUsage)
		in("item", "requeue", "--match", "").wants(t, exitUsage)
		in("item", "requeue", "--match", "state:failed", jobs[0]).wants(t, exitUsage)
		if got := state(jobs[0]); got != "Failed" {
			t.Errorf("state %s", got)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		in("item", "priority", jobs[0]).wants(t, exitUsage).says(t, "--to N is missing")
		in("item", "priority", jobs[0], "--to", "high").wants(t, exitUsage).says(t, "whole number")
		in("item", "cancel", "").wants(t, exitUsage).says(t, "an id is empty")
		in("item", "why", "").wants(t, exitUsage).says(t, "ID is empty")
		in("batch", "cleanup", "--older", "3").wants(t, exitUsage).says(t, "30d")
	})
	t.Run("what an act on a batch does not reach", func(t *testing.T) {
		in("item", "priority", batches[1], "--to", "3").wants(t, exitOK).says(t, "not of its jobs", "item priority --match batch:"+batches[1]+" --to 3")
		helps := []string{"would only make another report", "item requeue --match 'batch:" + batches[1] + " state:failed'", "batch update-report " + batches[1] + " --dir "}
		in("item", "requeue", batches[1]).wants(t, exitRefused).says(t, helps...)
		in("item", "requeue", batches[1], "--from", "report").wants(t, exitRefused).says(t, helps...)
		helps[1] = strings.TrimSuffix(helps[1], " --dir ")
		bulk := strings.TrimSpace(in("item", "requeue", "--match", "id:"+batches[1], "--yes").wants(t, exitOK).out)
		eventually(t, func() bool { return state(bulk) == "Completed" })
		if shown := in("item", "show", bulk).wants(t, exitOK).out; !strings.Contains(strings.Join(strings.Fields(shown), " "), helps[1]) {
			t.Errorf("the bulk act does not say what helps:\n%s", shown)
		}
		if got := state(batches[1]); got != "Failed" {
			t.Errorf("the batch is %s after a requeue that was refused", got)
		}
	})
	t.Run("match acts", func(t *testing.T) {
		mended.Store(true)
		r := in("item", "requeue", "--match", "state:failed action:ingest", "--yes", "--reason", "the source was mended").wants(t, exitOK)
		bulk := strings.TrimSpace(r.out)
		eventually(t, func() bool {
			return state(bulk) == "Completed" && state(jobs[0]) == "Completed" && state(jobs[1]) == "Completed"
		})
		in("batch", "update-report", batches[0], batches[1]).wants(t, exitOK)
		eventually(t, func() bool { return state(batches[0]) == "Completed" && state(batches[1]) == "Completed" })
	})
	t.Run("reports", func(t *testing.T) {
		report := func(args ...string) string {
			t.Helper()
			return in(append([]string{"batch", "report", batches[0]}, args...)...).wants(t, exitOK).out
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
		in("batch", "report", batches[0], "--closing", "1", "--changed").wants(t, exitFailed).says(t, "leave --changed away")
		in("batch", "report", batches[0], "--failed", "--completed").wants(t, exitUsage).says(t, "exclude each other")
		in("batch", "report", batches[0], "--list", "--csv").wants(t, exitUsage).says(t, "takes no other option")
	})
	t.Run("retry now", func(t *testing.T) {
		slow := strings.TrimSpace(in("submit", site.URL+"/down", "--type", "file").wants(t, exitOK).out)
		var job registry.WorkItem
		eventually(t, func() bool {
			out := in("item", "list", "delayed:yes", "batch:"+slow, "--json").out
			return json.Unmarshal([]byte(out), &job) == nil && job.Tries == 1 // the next try is a minute away
		})
		if r := in("item", "why", job.ID).wants(t, exitOK); !strings.Contains(r.out, "at once: retry item "+job.ID) {
			t.Errorf("why:\n%s", r.out)
		}
		down.Store(false)
		in("item", "retry", job.ID).wants(t, exitOK)
		in("watch", slow).wants(t, exitOK)
		in("item", "retry", job.ID).wants(t, exitRefused).says(t, "is not allowed")
		batches, jobs = append(batches, slow), append(jobs, job.ID)
	})
	t.Run("cleanup", func(t *testing.T) {
		in("batch", "cleanup", "--older", "30d").wants(t, exitNothing)
		in("batch", "cleanup").wants(t, exitHeld).says(t, "3 completed batches", "1 deleted batches", "remove 6 items", "--yes")
		in("item", "show", batches[0]).wants(t, exitOK)
		in("batch", "cleanup", "--yes").wants(t, exitOK)
		for _, id := range append(batches, jobs...) {
			in("item", "show", id).wants(t, exitNotFound)
		}
	})
}

// eventually looks again and again until it is so.
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
