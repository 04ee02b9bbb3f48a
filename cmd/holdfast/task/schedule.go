package task

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// ScheduleCommand returns the command `holdfast schedule`.
func ScheduleCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("schedule", "Submit tasks at the times of a cron expression",
		scheduleListCommand(a), scheduleShowCommand(a), scheduleCreateCommand(a), scheduleEditCommand(a),
		schedulePauseCommand(a), onSchedule(a, "resume NAME", "Resume a schedule; times that passed are not caught up", (*client.Client).ResumeSchedule),
		scheduleRunCommand(a), scheduleDeleteCommand(a)))
}

func scheduleListCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List schedules, their next times and last firings", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Schedules(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Schedule]{None: "no schedules", Columns: []terminal.Column{
				{Name: "schedule"}, {Name: "cron"}, {Name: "zone", Spare: 2}, {Name: "submits", Spare: 1}, {Name: "next"}, {Name: "last", Flex: true},
			}, Row: func(s registry.Schedule) []string {
				return []string{s.Name, s.Cron, s.Zone, submitsText(s), nextText(s), lastText(s.Last)}
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func submitsText(s registry.Schedule) string {
	if s.Task == nil {
		return ""
	}
	return s.Task.Function
}

func nextText(s registry.Schedule) string {
	switch {
	case s.Paused != nil:
		return "paused"
	case len(s.Next) == 0:
		return "never"
	}
	return terminal.TimeText(s.Next[0])
}

func lastText(f *registry.Firing) string {
	if f == nil {
		return ""
	}
	return terminal.TimeText(f.Tick) + " " + firingText(*f)
}

// firingText says what became of a time.
func firingText(f registry.Firing) string {
	text := string(f.Outcome)
	if f.Missed > 1 {
		text += fmt.Sprintf(" %d times since %s", f.Missed, terminal.TimeText(*f.First))
	}
	if f.ItemID != "" {
		text += " " + f.ItemID
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

func scheduleShowCommand(a *cli.App) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a schedule, its next ten times and its past firings", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			s, err := c.Schedule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			past, err := c.Firings(cmd.Context(), args[0], "", limit)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(struct {
					registry.Schedule

					Firings []registry.Firing `json:"firings"`
				}{s, past.Rows})
			}
			return printSchedule(a, s, past.Rows)
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

func printSchedule(a *cli.App, s registry.Schedule, past []registry.Firing) error {
	if a.JSON {
		return a.PrintJSON(s)
	}
	var f terminal.Facts
	f.Add("schedule", s.Name)
	f.Add("cron", s.Cron)
	f.Add("zone", s.Zone)
	if s.Task != nil {
		f.Add("function", s.Task.Function)
		f.Add("args", string(s.Task.Args))
		f.Add("title", s.Task.Title)
		f.Add("subject", s.Task.Subject)
		f.Add("collection", s.Task.Collection)
	}
	if s.JitterSeconds > 0 {
		f.Add("jitter", (time.Duration(s.JitterSeconds) * time.Second).String())
	}
	f.Add("overlap", string(s.Overlap))
	f.Add("catch up", string(s.CatchUp))
	if s.Paused != nil {
		f.Add("paused", terminal.SinceText(s.Paused.At, s.Paused.Actor, s.Paused.Reason))
	}
	f.Add("made", terminal.TimeText(s.CreatedAt)+" by "+s.CreatedBy)
	if s.Version > 1 {
		f.Add("edited", terminal.TimeText(s.ChangedAt)+" by "+s.ChangedBy)
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil { // this machine does not know the zone
		zone = time.UTC
	}
	for _, at := range s.Next {
		f.Add("next", at.In(zone).Format(time.RFC3339))
	}
	for _, p := range past {
		f.Add("past", lastText(&p))
	}
	return f.Write(a.Out)
}

// scheduleFlags are the flags of create and edit.
type scheduleFlags struct {
	r        wire.ScheduleRequest
	args     string
	jitter   time.Duration
	priority int
	dryRun   bool
}

func (s *scheduleFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.r.Cron, "cron", "", "the `EXPRESSION`: minute hour day month weekday, or @daily")
	f.StringVar(&s.r.Zone, "zone", "", "the expression's time `ZONE`, such as Europe/Berlin (default UTC)")
	f.StringVar(&s.r.Task.Function, "function", "", "the `NAME` of the function to call")
	f.StringVar(&s.args, "args", "", "its arguments: `JSON`, @FILE, or - for standard input (default null)")
	f.StringVar(&s.r.Task.Title, "title", "", "a title for people (default the function's)")
	f.StringVar(&s.r.Task.Subject, "subject", "", "what it is about: an ARK, an address")
	f.StringVar(&s.r.Task.Collection, "collection", "", "the `NAME` of the collection whose people may see the tasks")
	f.IntVar(&s.priority, "priority", 0, "lower goes first")
	f.DurationVar(&s.jitter, "jitter", 0, "delay each task by a random time below this, such as 10m")
	f.BoolVar(&s.dryRun, "dry-run", false, "change nothing: print the schedule as it would be, with its next times")
	f.StringVar((*string)(&s.r.Overlap), "overlap", "", "while a task has not ended: skip or allow (default skip)")
	f.StringVar((*string)(&s.r.CatchUp), "catch-up", "", "after a downtime fire: once, skip or all (default once)")
}

// apply sets what the command line says in a request.
func (s *scheduleFlags) apply(a *cli.App, cmd *cobra.Command, r *wire.ScheduleRequest) (err error) {
	if s.jitter%time.Second != 0 {
		return exit.Usagef("--jitter %s: use whole seconds", s.jitter)
	}
	for flag, set := range map[string]func(){
		"cron": func() { r.Cron = s.r.Cron }, "zone": func() { r.Zone = s.r.Zone },
		"function": func() { r.Task.Function = s.r.Task.Function }, "title": func() { r.Task.Title = s.r.Task.Title },
		"subject": func() { r.Task.Subject = s.r.Task.Subject }, "collection": func() { r.Task.Collection = s.r.Task.Collection },
		"priority": func() { r.Task.Priority = &s.priority }, "jitter": func() { r.JitterSeconds = int64(s.jitter / time.Second) },
		"overlap": func() { r.Overlap = s.r.Overlap }, "catch-up": func() { r.CatchUp = s.r.CatchUp },
		"args": func() { r.Task.Args, err = cli.JSONValue(a, "--args", s.args) },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
	return err
}

// note says that nothing was changed.
func (s *scheduleFlags) note(a *cli.App) {
	if s.dryRun {
		a.Note("nothing was changed; this is the schedule as it would be")
	}
}

func scheduleCreateCommand(a *cli.App) *cobra.Command {
	var s scheduleFlags
	cmd := &cobra.Command{
		Use: "create NAME --cron EXPRESSION --function NAME", Short: "Create a schedule", Args: cli.Needs("NAME"),
		Example: `  holdfast schedule create nightly --cron "30 2 * * *" --zone Europe/Berlin --function harvest`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := wire.NewScheduleRequest{Name: args[0]}
			if err := s.apply(a, cmd, &r.ScheduleRequest); err != nil {
				return err
			}
			if r.Cron == "" || r.Task.Function == "" {
				return exit.Usagef("a schedule needs --cron and --function")
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			made, err := c.AddSchedule(cmd.Context(), r, s.dryRun)
			if err != nil {
				return err
			}
			s.note(a)
			return printSchedule(a, made, nil)
		},
	}
	s.add(cmd)
	return a.ClientFlags(cmd)
}

func scheduleEditCommand(a *cli.App) *cobra.Command {
	var s scheduleFlags
	cmd := &cobra.Command{
		Use: "edit NAME", Short: "Change what the flags name; the rest stays", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			have, err := c.Schedule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r := wire.ScheduleRequestOf(have)
			if err := s.apply(a, cmd, &r); err != nil {
				return err
			}
			edited, err := c.EditSchedule(cmd.Context(), args[0], r, s.dryRun)
			if err != nil {
				return err
			}
			s.note(a)
			return printSchedule(a, edited, nil)
		},
	}
	s.add(cmd)
	return a.ClientFlags(cmd)
}

// onSchedule returns a command that changes one schedule.
func onSchedule(a *cli.App, use, short string, change func(c *client.Client, ctx context.Context, name string) (registry.Schedule, error)) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: use, Short: short, Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			s, err := change(c, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printSchedule(a, s, nil)
		},
	})
}

func schedulePauseCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := onSchedule(a, "pause NAME --reason TEXT", "Pause a schedule; its times pass without effect",
		func(c *client.Client, ctx context.Context, name string) (registry.Schedule, error) {
			return c.PauseSchedule(ctx, name, reason)
		})
	cli.ReasonFlag(cmd, &reason)
	return cmd
}

func scheduleRunCommand(a *cli.App) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "run NAME", Short: "Submit the task now; the regular times stay", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			f, err := c.RunSchedule(cmd.Context(), args[0], key)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(f)
			}
			_, err = fmt.Fprintln(a.Out, f.ItemID)
			return err
		},
	}
	cmd.Flags().StringVar(&key, "idempotency-key", "", "an idempotency key; a repeat returns the first task")
	return a.ClientFlags(cmd)
}

func scheduleDeleteCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "delete NAME", Short: "Delete a schedule and its past firings; its tasks stay", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if err := c.RemoveSchedule(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Note("deleted: %s", args[0])
			return nil
		},
	})
}
