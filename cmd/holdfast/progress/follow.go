// Package progress follows batches, jobs and uploads, shows their progress, and prints their
// outcomes. It has the command `holdfast watch`.
//
// Following only reads: if it is interrupted, or the service is away for longer than Patience, the
// work continues without it.
package progress

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/web/client"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Target is a batch or job to follow.
type Target struct {
	ID  string
	Job bool
}

// The interval between two requests grows, because small deposits finish within moments.
const (
	PollFirst = 100 * time.Millisecond
	PollMost  = time.Second
)

// Patience is how long the service may be away, for instance to restart, before Follow gives up.
// The work continues.
const Patience = time.Minute

// Follow shows the progress of targets until each is settled or the rest of it is held. It returns
// the last progress of each. It returns an error if ctx ends or the service stays away.
func Follow(ctx context.Context, a *cli.App, c *client.Client, targets []Target) ([]registry.BatchProgress, error) {
	begun := time.Now()
	screen := terminal.NewDisplay(a.Err, a.Quiet || a.JSON)
	last := make([]registry.BatchProgress, len(targets))
	over := make([]bool, len(targets))
	tasks := make([]string, len(targets))
	var meter meter
	var v view
	wait, heard := PollFirst, begun
	for {
		err := poll(ctx, a, c, targets, last, tasks, over)
		now := time.Now()
		if err == nil {
			heard = now
			v = viewOf(last, now.Sub(begun), &meter, now)
			if !slices.Contains(tasks, "") {
				v.tasks = tasks
			}
			if len(v.current) == 0 && slices.Contains(over, false) {
				if text, cause := nextTry(ctx, c, targets, over, now); text != "" {
					v.waiting, v.cause = text, cause
				}
			}
		} else if ctx.Err() == nil { // otherwise the request was cancelled here
			v.elapsed, v.rate, v.waiting, v.cause = now.Sub(begun), 0, "no answer, retrying", ""
		}
		screen.Show(now, v.picture())
		switch {
		case ctx.Err() != nil:
			screen.Done(now, v.picture())
			return last, Interrupted(a, targets)
		case err != nil && (exit.Of(err) != exit.Temporary || now.Sub(heard) > Patience):
			screen.Done(now, v.picture())
			return last, err
		case err == nil && all(over):
			screen.Done(now, v.picture())
			return last, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(wait*5/4, PollMost)
		}
	}
}

// nextTry says when the first of the targets that waits for its next try has it and which try that is,
// and the cause: what failed before; "" if none waits. It is for display only, so it ignores errors.
func nextTry(ctx context.Context, c *client.Client, targets []Target, over []bool, now time.Time) (text, cause string) {
	for i, t := range targets {
		if over[i] {
			continue
		}
		item, err := c.Item(ctx, t.ID)
		if err == nil && item.NextTry == nil && !t.Job {
			var jobs registry.Page[registry.WorkItem]
			if jobs, err = c.Items(ctx, registry.ItemQuery{ParentID: t.ID, Status: registry.Pending, Limit: 1}); err == nil && len(jobs.Rows) > 0 {
				item = jobs.Rows[0]
			}
		}
		if err == nil && item.NextTry != nil {
			return registry.StateText(item.State, item.NextTry, now), item.Note
		}
	}
	return "", ""
}

// poll reads the progress of each target that may still change, and describes those that are tasks.
func poll(ctx context.Context, a *cli.App, c *client.Client, targets []Target, last []registry.BatchProgress, tasks []string, over []bool) error {
	for i, t := range targets {
		if over[i] {
			continue
		}
		p, task, err := progressOf(ctx, c, t)
		if err != nil {
			return err
		}
		changed := !reflect.DeepEqual(p, last[i])
		last[i], tasks[i], over[i] = p, task, p.Settled || p.Held
		if a.JSON && changed {
			if err := status(a, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// progressOf reads the progress of a batch. A job is shown as a batch of one. A task is described, too.
func progressOf(ctx context.Context, c *client.Client, t Target) (p registry.BatchProgress, task string, err error) {
	if !t.Job {
		p, err = c.BatchProgress(ctx, t.ID)
		return p, "", err
	}
	item, err := c.Item(ctx, t.ID)
	if err != nil {
		return p, "", err
	}
	if task, err = taskText(ctx, c, item); err != nil {
		return p, "", err
	}
	p = registry.BatchProgress{
		BatchID: item.ParentID, State: item.State, Settled: item.Status.Settled(), Expanded: true, Jobs: 1,
		Held: item.State == registry.StateHeld, Files: item.Files, DoneFiles: item.DoneFiles,
		Bytes: item.SizeBytes, DoneBytes: item.DoneBytes, SizeKnown: item.SizeBytes >= 0 && item.Files >= 0,
		Error: item.Note, Class: item.ErrorClass,
	}
	switch item.Status {
	case registry.Completed:
		p.Completed = 1
	case registry.Failed:
		if item.Commitment == registry.Preserved {
			p.Preserved = 1
			break
		}
		p.Failed = 1
		if item.ErrorClass == registry.ContentFault {
			p.Content = 1
		}
	case registry.Running:
		p.Open, p.Current = 1, []string{item.Name}
	case registry.Prepare, registry.Pending:
		p.Open = 1
	case registry.Cancelled, registry.Aborted, registry.Deleted:
	}
	return p, task, nil
}

// taskText describes a task, or a step of a process, by its state and the progress of its attempt. It
// is empty for other items.
func taskText(ctx context.Context, c *client.Client, item registry.WorkItem) (string, error) {
	if item.Action != registry.Task && item.Action != registry.StepProcess {
		return "", nil
	}
	text := item.StateText(time.Now())
	if item.Status != registry.Running {
		return text, nil
	}
	all, err := c.Attempts(ctx, item.ID)
	if err != nil {
		return "", err
	}
	if len(all) > 0 {
		if done := graphview.ProgressText(all[len(all)-1].Progress); done != "" {
			text += ": " + terminal.Clean(done)
		}
	}
	return text, nil
}

// Interrupted prints the command that continues to follow, and returns exit.Interrupted.
func Interrupted(a *cli.App, targets []Target) error {
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.ID
	}
	a.Note("interrupted; the work continues. To follow it again: %s", a.CommandLine("watch", ids...))
	return exit.Interrupted
}

// CodeOf returns the exit code of an outcome (docs/exit-codes.md).
func CodeOf(p registry.BatchProgress) exit.Code {
	other := p.Jobs - p.Open - p.Completed - p.Preserved - p.Failed // cancelled, deleted
	switch {
	case !p.Settled && p.Held:
		return exit.Held
	case !p.Settled:
		return exit.Temporary
	case p.State == registry.StateCompleted:
		return exit.OK
	case p.Jobs == 0 && p.Class == registry.ContentFault:
		return exit.Content
	case p.Completed+p.Preserved > 0:
		return exit.Partly
	case p.Failed > 0 && p.Content == p.Failed && other == 0:
		return exit.Content
	case p.Content > 0:
		return exit.Partly
	}
	return exit.Failed
}

func all(over []bool) bool {
	for _, o := range over {
		if !o {
			return false
		}
	}
	return true
}

// targetOf returns the batch or job with an id.
func targetOf(ctx context.Context, c *client.Client, id string) (Target, error) {
	item, err := c.Item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return Target{}, exit.Fix(fmt.Errorf("no batch or item %s: %w", id, err), "`holdfast batch list` lists batches")
	} else if err != nil {
		return Target{}, err
	}
	return Target{ID: item.ID, Job: item.Action != registry.Batch}, nil
}

// Flags adds the flags of commands that show progress.
func Flags(a *cli.App, cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&a.Quiet, "quiet", "q", false, "show no progress")
	cmd.Flags().BoolVar(&a.Quiet, "no-progress", false, "the same as --quiet")
}
