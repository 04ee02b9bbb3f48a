// Package process has the command `holdfast process`: long-lived processes, which programs serve by
// steps. Package role has the commands that run Holdfast's own roles.
package process

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast process`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("process", "Start, call, repair and show processes, which programs serve step by step",
		namespacesCommand(a), listCommand(a), showCommand(a), traceCommand(a), initCommand(a), callCommand(a), repairCommand(a), retryCommand(a), removeCommand(a)))
}

func namespacesCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "namespaces", Short: "List the namespaces of processes", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Namespaces(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[wire.Namespace]{None: "no namespaces; a program announces its namespaces when it starts", Columns: []terminal.Column{
				{Name: "namespace"}, {Name: "announced", Spare: 1}, {Name: "title", Flex: true},
			}, Row: func(n wire.Namespace) []string { return []string{n.Name, terminal.TimeText(n.SeenAt), n.Title} }}
			return l.Print(a, cli.Whole(wire.Each(all, wire.NamespaceOf)))
		},
	})
}

func listCommand(a *cli.App) *cobra.Command {
	var q registry.ProcessQuery
	var status string
	cmd := &cobra.Command{
		Use: "list", Short: "List processes, newest first", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Status = registry.ProcessStatus(status)
			c, err := a.Connect()
			if err != nil {
				return err
			}
			limit := q.Limit
			l := cli.Lister[registry.ProcessInfo]{None: "no processes", Row: processRow, Columns: []terminal.Column{
				{Name: "namespace"}, {Name: "process", Flex: true}, {Name: "status"}, {Name: "since", Spare: 1}, {Name: "next", Spare: 2}, {Name: "error", Flex: true},
			}}
			return l.Print(a, func(yield func(registry.ProcessInfo) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, size int) (registry.Page[registry.ProcessInfo], error) {
					page := q
					page.After, page.Limit = after, size
					return c.Processes(ctx, page)
				}, yield)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Namespace, "namespace", "", "only processes of the namespace `NAME`")
	f.StringVar(&status, "status", "", "only processes that are init, running, error or done")
	f.StringVar(&q.Text, "text", "", "only processes with this `TEXT` in their error")
	f.IntVar(&q.Limit, "limit", 50, "list at most this many; 0 lists all")
	return a.ClientFlags(cmd)
}

func processRow(p registry.ProcessInfo) []string {
	return []string{p.Namespace, p.ProcessID, string(p.Status), terminal.TimeText(p.StatusChangedAt), timerText(p.Timer), p.Detail}
}

// timerText says what a process does next by itself.
func timerText(t *registry.ProcessTimer) string {
	if t == nil {
		return ""
	}
	what := "step"
	if t.Kind == registry.StepRemove {
		what = "removal"
	}
	return what + " at " + terminal.TimeText(t.At)
}

func showCommand(a *cli.App) *cobra.Command {
	r := registry.HistoryRange{Backward: true}
	cmd := &cobra.Command{
		Use: "show NAMESPACE PROCESS", Short: "Show a process and the end of its history", Args: cli.Needs("NAMESPACE", "PROCESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
			defer cancel()
			p, err := c.Process(ctx, keyOf(args), r)
			if err != nil {
				return err
			}
			return printProcess(a, p)
		},
	}
	cmd.Flags().IntVar(&r.Limit, "events", 10, "show at most this many events, newest first")
	cmd.Flags().Int64Var(&r.Offset, "before", 0, "show only events before the one with this number")
	return a.ClientFlags(cmd)
}

func keyOf(args []string) registry.ProcessKey {
	return registry.ProcessKey{Namespace: args[0], ProcessID: args[1]}
}

func printProcess(a *cli.App, p registry.ProcessInfo) error {
	if a.JSON {
		return a.PrintJSON(p)
	}
	var f terminal.Facts
	f.Add("process", p.Namespace+" "+p.ProcessID)
	f.Add("status", string(p.Status)+" since "+terminal.TimeText(p.StatusChangedAt))
	f.Add("error", p.Detail)
	f.Add("failed step", p.CorruptedBy)
	if p.Status == registry.ProcessFailed && p.Timer == nil { // with a timer it is being tried again
		f.Add("what helps", "holdfast process repair "+p.Namespace+" "+p.ProcessID)
	}
	f.Add("next", timerText(p.Timer))
	f.Add("collection", p.Collection)
	f.Add("metadata", string(p.Metadata))
	f.Add("state", string(p.State))
	f.Add("made", strings.TrimSuffix(terminal.TimeText(p.CreatedAt)+" by "+p.CreatedBy, " by "))
	f.Add("events", strconv.FormatInt(p.LastEventID, 10))
	for _, e := range p.History {
		f.Add("event "+strconv.FormatInt(e.ID, 10), terminal.TimeText(e.At)+" "+string(e.Payload))
	}
	return f.Write(a.Out)
}

func traceCommand(a *cli.App) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "trace NAMESPACE PROCESS", Short: "List the steps of a process, oldest first", Args: cli.Needs("NAMESPACE", "PROCESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[registry.TracedStep]{None: "no steps; the process was imported", Row: stepRow, Columns: []terminal.Column{
				{Name: "step"}, {Name: "kind"}, {Name: "status"}, {Name: "created", Spare: 1}, {Name: "tries", Right: true, Spare: 2}, {Name: "events", Right: true}, {Name: "answer or error", Flex: true},
			}}
			return l.Print(a, func(yield func(registry.TracedStep) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, size int) (registry.Page[registry.TracedStep], error) {
					return c.TraceProcess(ctx, registry.TraceQuery{ProcessKey: keyOf(args), After: after, Limit: size})
				}, yield)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "list at most this many; 0 lists all")
	return a.ClientFlags(cmd)
}

func stepRow(s registry.TracedStep) []string {
	said := s.Error
	if said == "" {
		said = string(s.Response)
	}
	return []string{s.ItemID, string(s.Kind), string(s.Status), terminal.TimeText(s.CreatedAt), strconv.FormatInt(s.Attempts, 10), strconv.Itoa(len(s.Events)), said}
}

// asking are the flags of the commands that add a step.
type asking struct {
	args, context, key, collection string
	wait                           time.Duration
}

func (s *asking) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.args, "args", "", "the arguments: `JSON`, @FILE, or - for standard input (default null)")
	f.StringVar(&s.context, "context", "", "`JSON` or @FILE that the step and its timers can read")
	f.StringVar(&s.key, "idempotency-key", "", "an idempotency key; a repeat returns the first answer")
	f.DurationVar(&s.wait, "wait", time.Minute, "wait at most this long for the answer; 0: not at all")
}

// step adds a step and prints its answer.
func (s *asking) step(ctx context.Context, a *cli.App, add func(c *client.Client, args, about json.RawMessage, key string) (registry.Answer, error)) error {
	args, err := cli.JSONValue(a, "--args", s.args)
	if err != nil {
		return err
	}
	about, err := cli.JSONValue(a, "--context", s.context)
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if s.key == "" {
		s.key = uuid.NewString() // an unanswered request may be repeated
	}
	got, err := add(c, args, about, s.key)
	if err != nil {
		return err
	}
	if s.wait > 0 && !got.Status.Settled() {
		waiting, cancel := context.WithTimeout(ctx, s.wait)
		defer cancel()
		if got, err = c.AwaitAnswer(waiting, got.ItemID); err != nil {
			return err
		}
	}
	return printAnswer(a, got)
}

// printAnswer prints the answer of a step. A failed step is an error.
func printAnswer(a *cli.App, got registry.Answer) error {
	switch {
	case a.JSON:
		if err := a.PrintJSON(got); err != nil {
			return err
		}
	case got.Status == registry.Completed:
		if _, err := fmt.Fprintln(a.Out, string(got.Response)); err != nil {
			return err
		}
	case !got.Status.Settled():
		if _, err := fmt.Fprintln(a.Out, got.ItemID); err != nil {
			return err
		}
		a.Note("no answer yet; `holdfast process trace %s %s` shows the step", got.Namespace, got.ProcessID)
	}
	if got.Status.Settled() && got.Status != registry.Completed {
		a.Note("step %s is %s: %s", got.ItemID, got.Status, got.Error)
		return exit.Failed
	}
	return nil
}

func initCommand(a *cli.App) *cobra.Command {
	var s asking
	cmd := &cobra.Command{
		Use: "init NAMESPACE PROCESS", Short: "Create a process and print the answer of its first step", Args: cli.Needs("NAMESPACE", "PROCESS"),
		Example: `  holdfast process init curation ark:/99999/fk4x --args '{"reviewer": "ada"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.step(cmd.Context(), a, func(c *client.Client, in, about json.RawMessage, key string) (registry.Answer, error) {
				return c.InitProcess(cmd.Context(), registry.NewProcess{ProcessKey: keyOf(args), Collection: s.collection, Args: in, Context: about, IdempotencyKey: key})
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&s.collection, "collection", "", "the `NAME` of the collection whose people may see the process (default none)")
	return a.ClientFlags(cmd)
}

func callCommand(a *cli.App) *cobra.Command {
	var s asking
	cmd := &cobra.Command{
		Use: "call NAMESPACE PROCESS", Short: "Call a process and print its answer", Args: cli.Needs("NAMESPACE", "PROCESS"),
		Example: `  holdfast process call curation ark:/99999/fk4x --args '{"decision": "accept"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.step(cmd.Context(), a, func(c *client.Client, in, about json.RawMessage, key string) (registry.Answer, error) {
				return c.CallProcess(cmd.Context(), registry.NewCall{ProcessKey: keyOf(args), Args: in, Context: about, IdempotencyKey: key})
			})
		},
	}
	s.flags(cmd)
	return a.ClientFlags(cmd)
}

func repairCommand(a *cli.App) *cobra.Command {
	var s asking
	cmd := &cobra.Command{
		Use: "repair NAMESPACE PROCESS", Short: "Repair a process in error by a step, and print its answer", Args: cli.Needs("NAMESPACE", "PROCESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.step(cmd.Context(), a, func(c *client.Client, in, about json.RawMessage, key string) (registry.Answer, error) {
				return c.RepairProcess(cmd.Context(), registry.NewCall{ProcessKey: keyOf(args), Args: in, Context: about, IdempotencyKey: key})
			})
		},
	}
	s.flags(cmd)
	return a.ClientFlags(cmd)
}

func retryCommand(a *cli.App) *cobra.Command {
	act := registry.ProcessAct{}
	cmd := &cobra.Command{
		Use: "retry NAMESPACE PROCESS", Short: "Let a process in error go on without a repair", Args: cli.Needs("NAMESPACE", "PROCESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			act.ProcessKey = keyOf(args)
			p, err := c.RetryProcess(cmd.Context(), act)
			if err != nil {
				return err
			}
			return printProcess(a, p)
		},
	}
	cmd.Flags().StringVar(&act.Reason, "reason", "", "the `TEXT` that the record of the act has")
	return a.ClientFlags(cmd)
}

func removeCommand(a *cli.App) *cobra.Command {
	act, yes := registry.ProcessAct{}, false
	cmd := &cobra.Command{
		Use: "remove NAMESPACE PROCESS", Short: "Remove a process with its state and history", Args: cli.Needs("NAMESPACE", "PROCESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			act.ProcessKey = keyOf(args)
			if err := a.Decide("Remove process "+act.String()+" with its state and history?", yes); err != nil {
				return err
			}
			if err := c.RemoveProcess(cmd.Context(), act); err != nil {
				return err
			}
			a.Note("removed process %s", act.ProcessKey)
			return nil
		},
	}
	cmd.Flags().StringVar(&act.Reason, "reason", "", "the `TEXT` that the record of the act has")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return a.ClientFlags(cmd)
}
