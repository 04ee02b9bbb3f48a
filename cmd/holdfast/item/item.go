// Package item has the command `holdfast item`, which lists, shows and controls items. Package
// batch uses its parts for batches.
//
// An act on several ids is requested one by one, and a refusal does not stop the rest. An act on
// all matches of a query is one bulk item of the service, which continues without the command. The
// service decides which acts are allowed.
package item

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/hold"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast item`.
func Command(a *cli.App) *cobra.Command {
	below := append([]*cobra.Command{listCommand(a), ShowCommand(a, "", "Show an item and its attempts"), historyCommand(a), logCommand(a), whyCommand(a), failuresCommand(a), redeliverCommand(a)}, actCommands(a)...)
	return cli.WithHelp(helpTexts, cli.Group("item", "List, show and control items: jobs, batches and other work",
		append(below, hold.Commands(a, registry.HoldItem)...)...))
}

// actCommands returns the commands that act on items.
func actCommands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		ActCommand(a, "requeue", "Requeue failed or cancelled items", registry.ActRequeue, func(cmd *cobra.Command, c *registry.Command) {
			cmd.Flags().StringVar((*string)(&c.From), "from", "", "the stage to start from (default where it failed)")
		}),
		ActCommand(a, "retry", "Retry waiting items at once", registry.ActRetryNow, nil),
		ActCommand(a, "cancel", "Cancel items, even running ones; they can be requeued", registry.ActCancel, nil),
		ActCommand(a, "abort", "End items for good, and the items that wait for their success", registry.ActAbort, nil),
		ActCommand(a, "delete", "Delete failed, cancelled or held items; preserved objects stay", registry.ActDelete, nil),
		ActCommand(a, "give-up", "Complete preserved jobs without notifying their receiver", registry.ActGiveUp, nil),
		ActCommand(a, "abandon", "Abandon the announced version of failed jobs (needs two people)", registry.ActAbandon, func(cmd *cobra.Command, c *registry.Command) {
			cmd.Use, cmd.Long = "abandon ID... | -", ""
			for _, name := range []string{"match", "grace"} {
				_ = cmd.Flags().MarkHidden(name) // its use has its own error
			}
			cmd.Flags().StringVar(&c.AgreesTo, "agrees-to", "", "with --yes: approve this `REQUEST` of another admin, as the command showed it")
		}),
		ActCommand(a, "priority", "Change the priority of items", registry.ActPriority, func(cmd *cobra.Command, c *registry.Command) {
			cmd.Flags().Func("to", "the new priority `N`, lower first; below 0 goes before everything else", func(text string) error {
				n, err := strconv.Atoi(text)
				if err != nil {
					return errors.New("it must be a whole number")
				}
				c.Priority = &n
				return nil
			})
			cmd.PreRunE = func(*cobra.Command, []string) error {
				if c.Priority == nil {
					return exit.Usagef("--to N is missing: the new priority, lower first")
				}
				return nil
			}
		}),
	}
}

// Apply requests the same act for several items. A refusal does not stop the others.
func Apply(ctx context.Context, a *cli.App, args []string, command registry.Command) error {
	ids, err := a.IDs(ctx, "", args)
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	codes := make([]exit.Code, 0, len(ids))
	for _, id := range ids {
		command.ItemID = id
		it, err := confirmed(ctx, a, c, command)
		codes = append(codes, exit.Of(err))
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			if !exit.As[*wire.Problem](err) && !exit.As[*exit.UndecidedError](err) { // these name the act and the item themselves
				err = fmt.Errorf("%s %s: %w", command.Act, id, err)
			}
			a.Complain(err)
			continue
		case a.JSON:
			err = a.PrintJSON(it)
		case command.DryRun:
			_, err = fmt.Fprintf(a.Out, "%s would be %s\n", it.ID, it.State)
		default:
			state := string(it.State)
			if command.Act == registry.ActPurge {
				state = "removed"
			}
			_, err = fmt.Fprintf(a.Out, "%s %s\n", it.ID, state)
			if it.Action == registry.Batch {
				reached(a, it, command.Act)
			}
			if command.Act == registry.ActAbandon && it.Status == registry.Failed {
				a.Note("requested; another admin approves it with: %s", a.CommandLine("item abandon "+it.ID))
			}
		}
		if err != nil {
			return err
		}
	}
	return exit.Together(codes).Err()
}

// reached prints which jobs of a batch an act did not change, and the command that changes them.
func reached(a *cli.App, batch registry.WorkItem, act registry.Act) {
	switch {
	case act == registry.ActPriority && batch.Stage == registry.Expand:
		a.Note("jobs that the batch makes from now on get this priority; for existing jobs: %s", a.CommandLine(fmt.Sprintf("item priority --match batch:%s --to %d", batch.ID, batch.Priority)))
	case act == registry.ActPriority:
		a.Note("this changed the priority of the batch's report only; for its jobs: %s", a.CommandLine(fmt.Sprintf("item priority --match batch:%s --to %d", batch.ID, batch.Priority)))
	}
}
