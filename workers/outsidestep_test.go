package workers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
)

// stepArgs are the arguments of the functions of these tests.
type stepArgs struct {
	Word string   `json:"word,omitempty"`
	Job  task.Job `json:"job"`
}

// TestOutsideSteps takes a deposit through the pipeline of a collection whose profile names
// functions of a program beside it: one that holds the job between record and notify, fails, and is
// requeued; one after process that is retried while the job goes on; and one that always runs.
func TestOutsideSteps(t *testing.T) {
	r := newRig(t, nil)
	var mended atomic.Bool
	var tried atomic.Int64
	held := make(chan struct{})
	var m task.Mux
	task.Handle(&m, "check", func(ctx context.Context, run *task.Run, args stepArgs) (string, error) {
		if !mended.Load() {
			return "", task.Invalid(errors.New("the tool is missing"))
		}
		o, err := r.registry.Object(ctx, args.Job.ARK)
		if err != nil {
			return "", err
		}
		run.Progress("files", "files").Add(args.Job.Files)
		return fmt.Sprintf("%s version %d, %s", o.ID, args.Job.Version, args.Word), nil
	})
	task.Handle(&m, "thumbnails", func(ctx context.Context, _ *task.Run, _ stepArgs) (string, error) {
		if tried.Add(1) == 1 {
			return "", errors.New("busy")
		}
		select {
		case <-held:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		return "made", nil
	}, task.Backoff(time.Millisecond, 1, time.Millisecond))
	task.Handle(&m, "tell", func(_ context.Context, _ *task.Run, args stepArgs) (bool, error) { return args.Job.Failed, nil })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- task.Serve(ctx, r.registry, &m, task.Options{}) }()
	defer func() {
		stop()
		must(t, <-ended)
	}()
	soon := func(is func() bool) {
		t.Helper()
		for limit := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("it never came to that")
			}
		}
	}
	soon(func() bool {
		all, err := r.registry.Functions(t.Context())
		return err == nil && len(all) == 3
	})
	r.profile("stepped", registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"},
		Steps: []registry.OutsideStep{
			{After: registry.Process, Function: "thumbnails"},
			{After: registry.Process, Function: "tell", On: registry.OnAlways},
			{After: registry.Record, Function: "check", Blocking: true, Args: []byte(`{"word":"sound"}`)},
		},
	})
	steps := func(job string) []registry.StepRun {
		t.Helper()
		all, err := r.registry.Steps(t.Context(), job)
		must(t, err)
		return all
	}

	batch := r.submitTo("stepped", registry.Spec{Type: registry.AutoType, URL: r.site.put("a.zip", zipOf(t, sample()))})
	job := r.expand(batch)[0].ID
	r.advance(job, registry.Notify)
	soon(func() bool { return len(steps(job)) == 3 && steps(job)[2].Status == registry.Failed })
	if it := r.item(job); it.Status != registry.Pending || it.BlockerCount != 1 || it.Commitment != registry.Preserved {
		t.Fatalf("the job is %s with %d open requirements, %s", it.Status, it.BlockerCount, it.Commitment)
	}
	if _, err := r.run(job); err == nil {
		t.Error("notify ran before its step")
	}
	if got := steps(job)[2]; got.Error != "the tool is missing" || got.Attempts != 1 || !got.Blocking {
		t.Errorf("the failed step is shown as %+v", got)
	}
	soon(func() bool { return steps(job)[0].Attempts == 2 && steps(job)[1].Status == registry.Completed })

	mended.Store(true)
	_, err := r.registry.Command(t.Context(), registry.Command{ItemID: steps(job)[2].TaskID, Act: registry.ActRequeue, Actor: "admin"})
	must(t, err)
	soon(func() bool { return steps(job)[2].Status == registry.Completed })
	o := r.complete(job)
	if got := string(r.item(steps(job)[2].TaskID).Results[registry.ResultReturned]); got != fmt.Sprintf(`"%s version 1, sound"`, o.ID) {
		t.Errorf("the step returned %s", got)
	}
	if v, err := r.run(batch); err != nil || v.Status != registry.Completed { // thumbnails still runs
		t.Fatalf("report: %+v %v", v, err)
	}
	if got := steps(job)[0]; got.Status != registry.Running {
		t.Errorf("the step that does not block is %s", got.Status)
	}
	close(held)
	soon(func() bool { return steps(job)[0].Status == registry.Completed })

	bad := r.expand(r.submitTo("stepped", registry.Spec{Type: registry.ContainerType, URL: r.site.put("bad.zip", "no zip")}))[0].ID
	if it := r.fails(bad); it.Stage != registry.Process {
		t.Fatalf("it failed at %s: %s", it.Stage, it.Note)
	}
	soon(func() bool { return len(steps(bad)) == 1 && steps(bad)[0].Status == registry.Completed })
	if got := steps(bad)[0]; got.Function != "tell" || string(r.item(got.TaskID).Results[registry.ResultReturned]) != "true" {
		t.Errorf("after the failure ran %+v", got)
	}
	must(t, r.registry.Ping(t.Context()))
	if !slices.Contains(r.item(bad).AllowedActs, registry.ActRequeue) {
		t.Errorf("the failed job allows %v", r.item(bad).AllowedActs)
	}
}
