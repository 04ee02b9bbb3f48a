package task

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func callCommand(a *cli.App) *cobra.Command {
	var r wire.TaskRequest
	var s flags
	cmd := &cobra.Command{
		Use: "call FUNCTION", Short: "Call a function and print what it returns", Args: cli.Needs("FUNCTION"),
		Example: `  holdfast task call count-files --args '{"object": "ark:/99999/fk4x"}' | jq .files`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Function = args[0]
			if cmd.Flags().Changed("priority") {
				r.Priority = &s.priority
			}
			return call(cmd.Context(), a, r, s)
		},
	}
	taskFlags(cmd, &r, &s)
	progress.Flags(a, cmd)
	return a.ClientFlags(cmd)
}

// call submits a task, waits for its end, and prints what its function returned. The exit code is the
// outcome.
func call(ctx context.Context, a *cli.App, r wire.TaskRequest, s flags) error {
	c, it, err := submitted(ctx, a, r, s)
	if err != nil {
		return err
	}
	it, code, err := ended(ctx, a, c, it.ID)
	if err != nil {
		return err
	}
	if it.Status != registry.Completed {
		a.Note("task %s is %s: %s", it.ID, it.State, cmp.Or(it.Note, "no reason was recorded"))
		return code.Err()
	}
	if a.JSON {
		return a.PrintJSON(it)
	}
	_, err = fmt.Fprintln(a.Out, cmp.Or(string(it.Results[registry.ResultReturned]), "null"))
	return err
}

// ended shows a task's progress until it has ended, and returns it with the exit code of its outcome.
func ended(ctx context.Context, a *cli.App, c *client.Client, id string) (it registry.WorkItem, code exit.Code, err error) {
	seen, err := progress.Follow(ctx, a, c, []progress.Target{{ID: id, Job: true}})
	if err != nil {
		if exit.Of(err) == exit.Temporary || ctx.Err() != nil {
			a.Note("the task continues. To follow it again: %s; what it returned: %s", a.CommandLine("watch", id), a.CommandLine("task show", id))
		}
		return it, code, err
	}
	it, err = c.Item(ctx, id)
	return it, progress.CodeOf(seen[0]), err
}

// submitted submits a task.
func submitted(ctx context.Context, a *cli.App, r wire.TaskRequest, s flags) (c *client.Client, it registry.WorkItem, err error) {
	if r, err = request(r, s, a); err != nil {
		return nil, it, err
	}
	if c, err = a.Connect(); err != nil {
		return nil, it, err
	}
	for i, needed := range r.Requires {
		if r.Requires[i].ItemID, err = a.WholeID(ctx, "", needed.ItemID); err != nil {
			return nil, it, err
		}
	}
	it, err = c.SubmitTask(ctx, r, s.key)
	return c, it, err
}
