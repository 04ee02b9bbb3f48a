// Package task has the command `holdfast task`: functions, and tasks, which call them. Package item
// lists, shows and controls tasks, which are items.
package task

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/item"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast task`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("task", "Submit, list and show tasks: calls of functions that programs serve",
		functionsCommand(a), submitCommand(a), callCommand(a), listCommand(a), item.ShowCommand(a, registry.Task, "Show a task: arguments, result, attempts, what it waits for"), graphCommand(a)))
}

func functionsCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "functions", Short: "List the functions that tasks can call", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Functions(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[wire.Function]{None: "no functions; a program announces its functions when it starts", Columns: []terminal.Column{
				{Name: "function"}, {Name: "announced", Spare: 1}, {Name: "title", Flex: true},
			}, Row: func(f wire.Function) []string { return []string{f.Name, terminal.TimeText(f.SeenAt), f.Title} }}
			return l.Print(a, cli.Whole(wire.Each(all, wire.FunctionOf)))
		},
	})
}

func listCommand(a *cli.App) *cobra.Command {
	q := registry.ItemQuery{Action: registry.Task}
	var f item.Filter
	cmd := &cobra.Command{
		Use: "list [QUERY]", Short: "List tasks, newest first", Long: item.QueryHelp(), Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Match, err = f.Query(args); err != nil {
				return err
			}
			return item.List(cmd.Context(), a, q, "no tasks")
		},
	}
	item.FilterFlags(cmd, &f, &q.Limit)
	return a.ClientFlags(cmd)
}

// flags are those of `task submit` that need parsing.
type flags struct {
	args, notBefore, key string
	requires             []string
	priority             int
	wait                 bool
}

func submitCommand(a *cli.App) *cobra.Command {
	var r wire.TaskRequest
	var s flags
	cmd := &cobra.Command{
		Use: "submit FUNCTION", Short: "Submit a task", Args: cli.Needs("FUNCTION"),
		Example: `  holdfast task submit count-files --args '{"object": "ark:/99999/fk4x"}' --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Function = args[0]
			if cmd.Flags().Changed("priority") {
				r.Priority = &s.priority
			}
			return submit(cmd.Context(), a, r, s)
		},
	}
	taskFlags(cmd, &r, &s)
	cmd.Flags().BoolVar(&s.wait, "wait", false, "show progress until the task has ended; the exit code is the outcome")
	progress.Flags(a, cmd)
	return a.ClientFlags(cmd)
}

// taskFlags adds the flags that say what the task is.
func taskFlags(cmd *cobra.Command, r *wire.TaskRequest, s *flags) {
	f := cmd.Flags()
	f.StringVar(&s.args, "args", "", "the arguments: `JSON`, @FILE, or - for standard input (default null)")
	f.StringVar(&r.Title, "title", "", "a title for people (default the function's)")
	f.StringVar(&r.Subject, "subject", "", "what it is about: an ARK, an item's id, an address")
	f.StringVar(&r.Collection, "collection", "", "the `NAME` of the collection whose people may see the task (default none)")
	f.IntVar(&s.priority, "priority", 0, "lower goes first")
	f.StringVar(&s.notBefore, "not-before", "", "start no earlier than `TIME`, such as 2026-12-01T08:00:00Z")
	f.StringSliceVar(&s.requires, "requires", nil, "start once the item `ID[:settled]` has completed (:settled: ended in any way); repeatable")
	f.StringVar(&s.key, "idempotency-key", "", "an idempotency key; a repeat returns the first task")
}

// request returns the request of a task with what flags say in text.
func request(r wire.TaskRequest, s flags, a *cli.App) (_ wire.TaskRequest, err error) {
	if r.Args, err = cli.JSONValue(a, "--args", s.args); err != nil {
		return r, err
	}
	if s.notBefore != "" {
		at, err := time.Parse(time.RFC3339, s.notBefore)
		if err != nil {
			return r, exit.Usagef("--not-before %s: expected a time such as 2026-12-01T08:00:00Z", s.notBefore)
		}
		r.NotBefore = &at
	}
	r.Requires, err = cli.Requirements("--requires", s.requires)
	return r, err
}

func submit(ctx context.Context, a *cli.App, r wire.TaskRequest, s flags) error {
	c, it, err := submitted(ctx, a, r, s)
	if err != nil {
		return err
	}
	switch {
	case !a.JSON:
		_, err = fmt.Fprintln(a.Out, it.ID)
	case !s.wait:
		err = a.PrintJSON(it)
	}
	if err != nil || !s.wait {
		return err
	}
	it, code, err := ended(ctx, a, c, it.ID)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(it)
	} else {
		err = printOutcome(a, r.Function, it)
	}
	return cmp.Or(err, code.Err())
}

// printOutcome prints what became of a task: its state, and what its function returned or said last.
func printOutcome(a *cli.App, function string, it registry.WorkItem) error {
	t := terminal.NewTable(a.Out, terminal.Width(a.Out),
		terminal.Column{Name: "item", ID: true}, terminal.Column{Name: "state", Meaning: terminal.StateMeaning}, terminal.Column{Name: "function"},
		terminal.Column{Name: "returned", Flex: true}, terminal.Column{Name: "error", Flex: true, Below: 8})
	note := it.Note
	if it.Status == registry.Completed {
		note = ""
	}
	row := []string{it.ID, string(it.State), function, string(it.Results[registry.ResultReturned]), progress.Classed(note, it.ErrorClass)}
	if err := t.Row(row...); err != nil {
		return err
	}
	return t.End()
}
