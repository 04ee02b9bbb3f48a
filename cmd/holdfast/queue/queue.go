// Package queue has the command `holdfast queue`: operators see what waits and runs, pause, drain,
// refuse submissions, and search for orphaned data.
//
// This is the Registry's queue. Package queue of the module root carries wake-ups over NSQ.
package queue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/feed"
	"github.com/holdfast/holdfast/cmd/holdfast/hold"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast queue`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("queue", "Manage the whole queue: pause, drain, refuse submissions, find orphaned data",
		statusCommand(a), throughputCommand(a), pauseCommand(a), resumeCommand(a), drainCommand(a), limitCommand(a), acceptCommand(a), orphansCommand(a)))
}

func statusCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "status", Short: "Show what waits and runs in each stage", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			q, err := c.QueueStatus(cmd.Context())
			if err != nil {
				return err
			}
			s := status{QueueStatus: q}
			if kept, err := c.Holdings(cmd.Context()); err == nil {
				s.Holdings = &kept
			} else if of := exit.Of(err); of != exit.Refused && of != exit.NotFound { // tokens of some collections see the queue only
				return err
			}
			if storages, err := c.Storages(cmd.Context()); err == nil {
				s.addCopies(storages.StorageReport)
			} else if of := exit.Of(err); of != exit.Refused && of != exit.NotFound {
				return err
			}
			if a.JSON {
				return a.PrintJSON(s)
			}
			workers, err := c.Workers(cmd.Context())
			versions := versionsText(workers)
			if exit.Of(err) == exit.Refused {
				versions = "" // depositors see the queue, but not the workers
			} else if err != nil {
				return err
			}
			return printQueue(a, s, versions)
		},
	})
}

// status is what `queue status` shows. In JSON it is the state of the queue, with what is kept.
type status struct {
	registry.QueueStatus

	Holdings *wire.Holdings `json:"holdings,omitempty"` // as GET /queue/holdings answers; nil: the token may not see it
	// Of what GET /storages answers, the collections with too few copies, and the storages on their way.
	Short    []registry.CollectionCopies `json:"short,omitempty"`
	Changing []registry.Storage          `json:"changing_storages,omitempty"`
}

// addCopies adds where there are too few copies, and which storages are filled or retired.
func (s *status) addCopies(r registry.StorageReport) {
	for _, c := range r.Collections {
		if c.Short.Objects > 0 {
			s.Short = append(s.Short, c)
		}
	}
	for _, storage := range r.Storages {
		if storage.Changing() {
			s.Changing = append(s.Changing, storage)
		}
	}
}

// tell says both.
func (s *status) tell(f *terminal.Facts) {
	var short int64
	for _, c := range s.Short {
		short += c.Short.Objects
	}
	if short > 0 {
		f.Add("TOO FEW COPIES", terminal.Plural(short, "object has", "objects have")+" fewer than the profile says.")
		f.Add("", "See: holdfast storage objects")
	}
	for _, c := range s.Changing {
		what := "to be copied there"
		if c.State == registry.StorageRetiring {
			what = "without their copies elsewhere"
		}
		f.Add("storages", fmt.Sprintf("%s is %s; %s %s", c.Name, c.State, terminal.Plural(c.Left().Objects, "object", "objects"), what))
	}
}

// versionsText says how many live workers have which version, and what to do about several.
func versionsText(workers []registry.WorkerInfo) string {
	if len(workers) == 0 {
		return "none"
	}
	count := map[string]int64{}
	for _, w := range workers {
		count[w.Version]++
	}
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s of version %s", registry.CountText(count[version]), version))
	}
	if len(parts) > 1 {
		parts = append(parts, "finish the upgrade")
	}
	return strings.Join(parts, "; ")
}

// printQueue prints a status. versions is left out if empty.
func printQueue(a *cli.App, q status, versions string) error {
	var f terminal.Facts
	state := "running"
	if p := q.Paused; p != nil {
		state = "paused " + terminal.SinceText(p.CreatedAt, p.Actor, p.Reason)
		if p.Scope == registry.HoldAll {
			state = "everything " + state
		}
	}
	f.Add("queue", state)
	if d := q.Drain; d != nil {
		f.Add("drain", drainText(*d))
	}
	accepting := "yes"
	if !q.Accepting.On {
		accepting = "no, " + terminal.SinceText(q.Accepting.Since, q.Accepting.Actor, q.Accepting.Reason)
	}
	f.Add("accepting submissions", accepting)
	f.Add("running", registry.CountText(q.Running))
	f.Add("holds", registry.CountText(int64(q.Holds)))
	if versions != "" {
		f.Add("workers", versions)
	}
	if h := q.Holdings; h != nil {
		addCoverage(&f, h.Holdings)
	}
	if r := q.Restored; r != nil {
		f.Add("RESTORED", "from a backup of "+r.BackupAt.UTC().Format(time.RFC3339)+"; record and storages may differ.")
		f.Add("", "Stop the service and run: holdfast reconcile")
	}
	if q.Damaged > 0 {
		f.Add("DAMAGED", terminal.Plural(q.Damaged, "stored file", "stored files")+"; see: holdfast item list action:fixity state:failed")
	}
	if q.Strays != "" {
		f.Add("FOREIGN FILES", "in storages, in no object; see: holdfast item show "+q.Strays)
	}
	if q.OneCopy > 0 {
		f.Add("NO SECOND COPY", terminal.Plural(q.OneCopy, "collection has", "collections have")+" one storage only.")
		f.Add("", "Damaged files there cannot be mended. To add one, set")
		f.Add("", "HOLDFAST_STORAGE_URL and the collection's storages.")
	}
	q.tell(&f)
	for _, s := range q.Failing {
		f.Add("SUBSCRIPTION", s.Name+" "+feed.FailingText(s)+"; see: holdfast feed show "+s.Name)
	}
	if err := f.Write(a.Out); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	l := cli.Lister[registry.StageQueue]{Row: stageRow, Columns: []terminal.Column{
		{Name: "stage"},
		{Name: "ready", Right: true, Meaning: terminal.Counted(terminal.Plain)},
		{Name: "waiting", Right: true, Meaning: terminal.Counted(terminal.Waiting)},
		{Name: "held", Right: true, Meaning: terminal.Counted(terminal.Waiting)},
		{Name: "running", Right: true, Meaning: terminal.Counted(terminal.Busy)},
		{Name: "rung", Right: true},
		{Name: "free", Right: true},
		{Name: "oldest ready"},
	}}
	if err := l.Print(a, cli.Whole(q.Stages)); err != nil {
		return err
	}
	for _, s := range q.Stages {
		if s.Ready == 0 || s.Capacity > 0 {
			continue
		}
		if _, err := fmt.Fprintf(a.Out, "\n%s: %s ready, and no worker serves this stage.\n%s", s.Stage, terminal.Plural(s.Ready, "item is", "items are"), away(s)); err != nil {
			return err
		}
	}
	return nil
}

// addCoverage says what share of the stored files was checked within which time.
func addCoverage(f *terminal.Facts, h registry.Holdings) {
	if h.Files == 0 {
		f.Add("fixity checks", "no file is stored yet")
		return
	}
	f.Add("stored files", registry.CountText(h.Files)+", counted "+terminal.TimeText(h.At))
	name := "fixity checks"
	for _, c := range h.Checked {
		f.Add(name, fmt.Sprintf("%d %% of the files within %d days", h.Percent(c.Files), c.Days))
		name = ""
	}
	if h.Late > 0 {
		f.Add("", terminal.Plural(h.Late, "file is", "files are")+fmt.Sprintf(" late: not checked for %g days and a tenth", h.FixityDays))
	}
}

// away explains what becomes of ready items without a worker.
func away(s registry.StageQueue) string {
	if name := s.Stage.Function(); name != "" {
		return fmt.Sprintf("Start the program that serves %s; it asks the Registry for items.\n", name)
	}
	return fmt.Sprintf("The Registry has sent %s to NSQ and sends more when these are\n"+
		"answered. So the depth of a topic is not the number of waiting items.\nTo start a worker: holdfast worker %s\n",
		terminal.Plural(s.Rung, "message", "messages"), s.Stage)
}

func stageRow(s registry.StageQueue) []string {
	oldest := ""
	if s.OldestReady != nil {
		oldest = terminal.TimeText(*s.OldestReady)
	}
	running := registry.CountText(s.Running)
	if s.Limit > 0 {
		running += " of " + registry.CountText(int64(s.Limit))
	}
	return []string{
		string(s.Stage), registry.CountText(s.Ready), registry.CountText(s.Waiting), registry.CountText(s.Held), running, registry.CountText(s.Rung),
		fmt.Sprintf("%d of %d", s.Free, s.Capacity), oldest,
	}
}

func pauseCommand(a *cli.App) *cobra.Command {
	var reason string
	var all bool
	cmd := &cobra.Command{
		Use: "pause [--all] --reason TEXT", Short: "Pause: no deposit starts its next step; running steps finish", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h := registry.Hold{Scope: registry.HoldIngest, Reason: reason}
			if all {
				h.Scope = registry.HoldAll
			}
			return hold.Add(cmd.Context(), a, h)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "pause everything, including admin acts, messages and housekeeping")
	cli.ReasonFlag(cmd, &reason)
	return a.ClientFlags(cmd)
}

func resumeCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "resume", Short: "Resume the queue after pause or drain", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return resume(cmd.Context(), a) },
	})
}

// resume removes both kinds of pause.
func resume(ctx context.Context, a *cli.App) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	released := 0
	for _, scope := range []registry.HoldScope{registry.HoldAll, registry.HoldIngest} {
		err := c.RemoveHold(ctx, scope, "")
		switch {
		case err == nil:
			released++
			a.Note("released: %s", scope)
		case !errors.Is(err, registry.ErrNotFound):
			return err
		}
	}
	if released == 0 {
		a.Note("the queue is not paused")
		return exit.NotFound
	}
	return nil
}

func drainCommand(a *cli.App) *cobra.Command {
	var reason string
	var timeout, stop time.Duration
	cmd := &cobra.Command{
		Use: "drain --reason TEXT [--stop TIME]", Short: "Pause, and wait until nothing runs", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			begin := func(c *client.Client) error {
				return c.AddHold(cmd.Context(), registry.Hold{Scope: registry.HoldAll, Reason: reason})
			}
			if cmd.Flags().Changed("stop") {
				begin = func(c *client.Client) error { return c.Drain(cmd.Context(), reason, stop) }
			}
			return drain(cmd.Context(), a, begin, timeout)
		},
	}
	cli.ReasonFlag(cmd, &reason)
	cmd.Flags().DurationVar(&stop, "stop", 0, "stop running steps at safe points, and after this time in any case")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "the longest time to wait, such as 30m (default no limit)")
	return a.ClientFlags(cmd)
}

// drain pauses the queue and waits until nothing runs. The queue stays paused in any case.
func drain(ctx context.Context, a *cli.App, begin func(*client.Client) error, timeout time.Duration) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if err := begin(c); err != nil {
		return err
	}
	a.Note("paused; waiting until nothing runs")
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		waiting, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	running, err := untilIdle(waiting, a, c)
	resume := a.CommandLine("queue resume")
	switch {
	case err == nil:
		a.Note("drained: nothing runs; the queue stays paused until %s", resume)
		return nil
	case ctx.Err() != nil:
		a.Note("interrupted; the queue stays paused, and running steps finish. To resume: %s", resume)
		return exit.Interrupted
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		a.Note("%s still running after %s; the queue stays paused. To resume: %s", terminal.Plural(running, "item is", "items are"), timeout, resume)
		return exit.Temporary
	}
	return fmt.Errorf("%w; the queue stays paused", err)
}

// untilIdle waits until nothing runs, and prints the number of running items. It retries while the
// service is away.
func untilIdle(ctx context.Context, a *cli.App, c *client.Client) (running int64, err error) {
	printed := ""
	heard := time.Now()
	for wait := progress.PollFirst; ; wait = min(wait*5/4, progress.PollMost) {
		q, err := c.QueueStatus(ctx)
		switch {
		case err == nil:
			running, heard = q.Running, time.Now()
			if running == 0 {
				return 0, nil
			}
			text := terminal.Plural(running, "item is", "items are") + " running"
			if q.Drain != nil {
				text = drainText(*q.Drain)
			}
			if text != printed {
				printed = text
				a.Note("%s", text)
			}
		case ctx.Err() != nil || exit.Of(err) != exit.Temporary || time.Since(heard) > progress.Patience:
			return running, err
		}
		select {
		case <-ctx.Done():
			return running, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// drainText says how many items still run, and until when.
func drainText(d registry.Drain) string {
	text := terminal.Plural(d.Left, "item is", "items are") + " running"
	switch {
	case d.Left == 0:
		return "done"
	case d.Done == nil:
		return text + "; when the last one ends is not known"
	}
	return text + ", until about " + terminal.TimeText(*d.Done)
}

func acceptCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "accept on|off [--reason TEXT]", Short: "Accept or refuse new submissions; accepted ones continue", Args: cli.Needs("on|off"),
		RunE: func(cmd *cobra.Command, args []string) error {
			on := strings.EqualFold(args[0], "on")
			if !on && !strings.EqualFold(args[0], "off") {
				return exit.Usagef("expected on or off, not %q", args[0])
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if err := c.SetAccepting(cmd.Context(), registry.Accepting{On: on, Reason: reason}); err != nil {
				return err
			}
			a.Note("accepting submissions: %s", strings.ToLower(args[0]))
			return nil
		},
	}
	cli.ReasonFlag(cmd, &reason)
	return a.ClientFlags(cmd)
}
