package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) queueCommand() *cobra.Command {
	return group("queue", "Show, pause, resume and drain the whole queue, stop accepting submissions, and find what belongs to nobody",
		a.queueStatusCommand(), a.queuePauseCommand(), a.queueResumeCommand(), a.queueDrainCommand(), a.queueAcceptCommand(), a.queueOrphansCommand())
}

func (a *app) queueStatusCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "status", Short: "Show what waits and runs in each stage", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			q, err := c.QueueStatus(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(q)
			}
			return a.printQueue(q)
		},
	})
}

func (a *app) printQueue(q registry.QueueStatus) error {
	var f facts
	state := "running"
	if p := q.Paused; p != nil {
		state = "paused " + sinceText(p.CreatedAt, p.Actor, p.Reason)
		if p.Scope == registry.HoldAll {
			state = "everything " + state
		}
	}
	f.add("queue", state)
	accepting := "yes"
	if !q.Accepting.On {
		accepting = "no, " + sinceText(q.Accepting.Since, q.Accepting.Actor, q.Accepting.Reason)
	}
	f.add("accepting submissions", accepting)
	f.add("running", registry.CountText(q.Running))
	f.add("holds", registry.CountText(int64(q.Holds)))
	if q.Damaged > 0 {
		f.add("DAMAGED", plural(q.Damaged, "stored file", "stored files")+"; see: holdfast item list action:fixity state:failed")
	}
	if q.Strays != "" {
		f.add("FOREIGN FILES", "in storages, of no object; see: holdfast item show "+q.Strays)
	}
	if q.OneCopy > 0 {
		f.add("NO SECOND COPY", plural(q.OneCopy, "collection has", "collections have")+" one storage only.")
		f.add("", "What is lost there cannot be mended. To add one:")
		f.add("", "HOLDFAST_STORAGE_URL, and the collection's storages")
	}
	for _, s := range q.Failing {
		f.add("SUBSCRIPTION", s.Name+" "+failingText(s)+"; see: holdfast feed show "+s.Name)
	}
	if err := f.write(a.out); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	l := lister[registry.StageQueue]{row: stageRow, columns: []column{
		{name: "stage"},
		{name: "ready", right: true},
		{name: "waiting", right: true},
		{name: "held", right: true},
		{name: "running", right: true},
		{name: "rung", right: true},
		{name: "free", right: true},
		{name: "oldest ready"},
	}}
	if err := l.print(a, whole(q.Stages)); err != nil {
		return err
	}
	for _, s := range q.Stages {
		if s.Ready == 0 || s.Capacity > 0 {
			continue
		}
		if _, err := fmt.Fprintf(a.out, "\n%s: %s ready, and no worker serves this stage.\nThey wait in the Registry. NSQ has %s for them, and gets the next when\n"+
			"these are answered: the depth of a topic is not the number of items that wait.\nTo serve them: holdfast worker %s\n",
			s.Stage, plural(s.Ready, "item is", "items are"), plural(s.Rung, "message", "messages"), s.Stage); err != nil {
			return err
		}
	}
	return nil
}

// sinceText is since when somebody has stopped something, and why.
func sinceText(at time.Time, actor, reason string) string {
	return fmt.Sprintf("since %s by %s (%s)", timeText(at), actor, reason)
}

func stageRow(s registry.StageQueue) []string {
	oldest := ""
	if s.OldestReady != nil {
		oldest = timeText(*s.OldestReady)
	}
	return []string{
		string(s.Stage), registry.CountText(s.Ready), registry.CountText(s.Waiting), registry.CountText(s.Held), registry.CountText(s.Running), registry.CountText(s.Rung),
		fmt.Sprintf("%d of %d", s.Free, s.Capacity), oldest,
	}
}

func (a *app) queuePauseCommand() *cobra.Command {
	var reason string
	var all bool
	cmd := &cobra.Command{
		Use: "pause [--all] --reason TEXT", Short: "Pause: no deposit starts its next step; running steps finish", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h := registry.Hold{Scope: registry.HoldIngest, Reason: reason}
			if all {
				h.Scope = registry.HoldAll
			}
			return a.addHold(cmd.Context(), h)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "pause everything, also admin acts, messages and housekeeping")
	reasonFlag(cmd, &reason)
	return a.clientFlags(cmd)
}

// reasonFlag adds the reason of what keeps others waiting: they are shown it.
func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "the reason, shown to those who wait")
}

func (a *app) queueResumeCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "resume", Short: "Resume the queue after pause or drain", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.resume(cmd.Context()) },
	})
}

// resume takes both kinds of pause away.
func (a *app) resume(ctx context.Context) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	released := 0
	for _, scope := range []registry.HoldScope{registry.HoldAll, registry.HoldIngest} {
		err := c.RemoveHold(ctx, scope, "", "")
		switch {
		case err == nil:
			released++
			a.note("released: %s", scope)
		case !errors.Is(err, registry.ErrNotFound):
			return err
		}
	}
	if released == 0 {
		a.note("the queue is not paused")
		return exitNotFound
	}
	return nil
}

func (a *app) queueDrainCommand() *cobra.Command {
	var reason string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "drain --reason TEXT", Short: "Pause, and wait until nothing runs", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.drain(cmd.Context(), reason, timeout) },
	}
	reasonFlag(cmd, &reason)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait at most, such as 30m (default no limit)")
	return a.clientFlags(cmd)
}

// drain pauses the queue and waits until nothing runs. However the waiting ends, the queue stays paused.
func (a *app) drain(ctx context.Context, reason string, timeout time.Duration) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	if err := c.AddHold(ctx, registry.Hold{Scope: registry.HoldAll, Reason: reason}); err != nil {
		return err
	}
	a.note("paused; waiting until nothing runs")
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		waiting, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	running, err := a.untilIdle(waiting, c)
	resume := a.commandLine("queue resume")
	switch {
	case err == nil:
		a.note("drained: nothing runs; the queue stays paused until %s", resume)
		return nil
	case ctx.Err() != nil:
		a.note("interrupted; the queue stays paused, and what runs goes on. To let it go on: %s", resume)
		return exitInterrupted
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		a.note("%s still running after %s; the queue stays paused. To let it go on: %s", plural(running, "item is", "items are"), timeout, resume)
		return exitTemporary
	}
	return fmt.Errorf("%w; the queue stays paused", err)
}

// untilIdle waits until nothing runs, telling how much does. A service that is away for a while is asked again.
func (a *app) untilIdle(ctx context.Context, c *client.Client) (running int64, err error) {
	told := int64(-1)
	heard := time.Now()
	for wait := pollFirst; ; wait = min(wait*5/4, pollMost) {
		q, err := c.QueueStatus(ctx)
		switch {
		case err == nil:
			running, heard = q.Running, time.Now()
			if running == 0 {
				return 0, nil
			}
			if running != told {
				told = running
				a.note("%s running", plural(running, "item is", "items are"))
			}
		case ctx.Err() != nil || outcome(codeOf(err)) != exitTemporary || time.Since(heard) > patience:
			return running, err
		}
		select {
		case <-ctx.Done():
			return running, ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (a *app) queueAcceptCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "accept on|off --reason TEXT", Short: "Accept submissions, or refuse them for now; accepted ones go on", Args: needs("on|off"),
		RunE: func(cmd *cobra.Command, args []string) error {
			on := strings.EqualFold(args[0], "on")
			if !on && !strings.EqualFold(args[0], "off") {
				return &usageError{fmt.Errorf("%q is neither on nor off", args[0])}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.SetAccepting(cmd.Context(), registry.Accepting{On: on, Reason: reason}); err != nil {
				return err
			}
			a.note("accepting submissions: %s", strings.ToLower(args[0]))
			return nil
		},
	}
	reasonFlag(cmd, &reason)
	return a.clientFlags(cmd)
}
