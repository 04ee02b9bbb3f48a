package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// target is something whose progress can be followed: a batch, or one of its jobs.
type target struct {
	id  string
	job bool
}

// How often progress is asked for: soon at first, because small deposits are done in no time.
const (
	pollFirst = 100 * time.Millisecond
	pollMost  = time.Second
)

// patience is how long the service may be away (started again, moved) before following it is given up. The work goes on
// without us.
const patience = time.Minute

// follow shows how far the targets are until nothing more will happen to them by itself: each is settled, or all that is
// left of it is held. It returns the last that was seen of each, and an error when ctx ended or the service stayed away.
func (a *app) follow(ctx context.Context, c *client.Client, targets []target) ([]registry.BatchProgress, error) {
	begun := time.Now()
	screen := a.display()
	last := make([]registry.BatchProgress, len(targets))
	over := make([]bool, len(targets))
	var meter meter
	var v view
	wait, heard := pollFirst, begun
	for {
		err := a.poll(ctx, c, targets, last, over)
		now := time.Now()
		if err == nil {
			heard = now
			v = viewOf(last, now.Sub(begun), &meter, now)
		} else if ctx.Err() == nil { // else it is we who stopped asking
			v.elapsed, v.rate, v.waiting = now.Sub(begun), 0, "no answer, trying again"
		}
		screen.show(now, v.picture())
		switch {
		case ctx.Err() != nil:
			screen.done(now, v.picture())
			return last, a.interrupted(targets)
		case err != nil && (outcome(codeOf(err)) != exitTemporary || now.Sub(heard) > patience):
			screen.done(now, v.picture())
			return last, err
		case err == nil && all(over):
			screen.done(now, v.picture())
			return last, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(wait*5/4, pollMost)
		}
	}
}

// poll asks for the progress of every target that may still change.
func (a *app) poll(ctx context.Context, c *client.Client, targets []target, last []registry.BatchProgress, over []bool) error {
	for i, t := range targets {
		if over[i] {
			continue
		}
		p, err := progressOf(ctx, c, t)
		if err != nil {
			return err
		}
		changed := !reflect.DeepEqual(p, last[i])
		last[i], over[i] = p, p.Settled || p.Held
		if a.json && changed {
			if err := a.status(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// progressOf asks how far a batch is; a job is shown as if it were a batch of one.
func progressOf(ctx context.Context, c *client.Client, t target) (registry.BatchProgress, error) {
	if !t.job {
		return c.BatchProgress(ctx, t.id)
	}
	item, err := c.Item(ctx, t.id)
	if err != nil {
		return registry.BatchProgress{}, err
	}
	p := registry.BatchProgress{
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
	return p, nil
}

// interrupted says how to go on following, and that nothing is lost.
func (a *app) interrupted(targets []target) error {
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.id
	}
	a.note("interrupted; the work goes on. To follow it again: %s", a.commandLine("watch", ids...))
	return exitInterrupted
}

// commandLine is a command for the person to type, about the same Holdfast.
func (a *app) commandLine(command string, args ...string) string {
	words := append([]string{"holdfast", command}, args...)
	if a.dir != "" {
		words = append(words, "--dir", node.ShellWord(a.dir))
	}
	return strings.Join(words, " ")
}

// display chooses how progress is shown: not at all, redrawn in place, or by lines.
func (a *app) display() display {
	switch {
	case a.quiet || a.json:
		return silent{}
	case isTerminal(a.err) && os.Getenv("TERM") != "dumb":
		return &block{w: a.err, width: func() int { return width(a.err) }, color: os.Getenv("NO_COLOR") == ""}
	}
	return &plain{w: a.err}
}

// codeOfProgress is the exit code of what was waited for (docs/exit-codes.md).
func codeOfProgress(p registry.BatchProgress) outcome {
	other := p.Jobs - p.Open - p.Completed - p.Preserved - p.Failed // cancelled, deleted
	switch {
	case !p.Settled && p.Held:
		return exitHeld
	case !p.Settled:
		return exitTemporary
	case p.State == registry.StateCompleted:
		return exitOK
	case p.Jobs == 0 && p.Class == registry.ContentFault:
		return exitContent
	case p.Completed+p.Preserved > 0:
		return exitPartly
	case p.Failed > 0 && p.Content == p.Failed && other == 0:
		return exitContent
	case p.Content > 0:
		return exitPartly
	}
	return exitFailed
}

// together is the exit code of several: their common one, or that they are mixed. What is held comes first, because it
// still needs somebody.
func together(codes []outcome) outcome {
	if len(codes) == 0 {
		return exitOK
	}
	for _, c := range codes {
		if c == exitHeld {
			return exitHeld
		}
	}
	for _, c := range codes[1:] {
		if c != codes[0] {
			return exitPartly
		}
	}
	return codes[0]
}

func all(over []bool) bool {
	for _, o := range over {
		if !o {
			return false
		}
	}
	return true
}

// targetOf finds out what an id belongs to.
func targetOf(ctx context.Context, c *client.Client, id string) (target, error) {
	item, err := c.Item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return target{}, fix(fmt.Errorf("no batch or item %s: %w", id, err), "`holdfast batch list` shows what there is")
	} else if err != nil {
		return target{}, err
	}
	return target{id: item.ID, job: item.Action != registry.Batch}, nil
}
