package object

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// deletion has the flags of `object delete`.
type deletion struct {
	reason            string
	approve, withdraw bool
}

func deleteCommand(a *cli.App) *cobra.Command {
	var d deletion
	cmd := &cobra.Command{
		Use: "delete ID --reason TEXT|--approve|--withdraw", Short: "Delete an object for good (needs two people)",
		Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return deleteObject(cmd.Context(), a, args[0], d) },
	}
	cmd.Flags().StringVar(&d.reason, "reason", "", "request the deletion, with this reason, which is kept for ever")
	cmd.Flags().BoolVar(&d.approve, "approve", false, "approve another person's request; this cannot be undone")
	cmd.Flags().BoolVar(&d.withdraw, "withdraw", false, "withdraw the request")
	return a.ClientFlags(cmd)
}

func deleteObject(ctx context.Context, a *cli.App, id string, d deletion) error {
	asked := 0
	for _, is := range []bool{d.reason != "", d.approve, d.withdraw} {
		if is {
			asked++
		}
	}
	if asked != 1 {
		return exit.Usagef("give one of --reason TEXT, --approve and --withdraw")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	var done registry.Deletion
	switch {
	case d.approve:
		done, err = c.ApproveDeletion(ctx, id)
	case d.withdraw:
		done, err = c.WithdrawDeletion(ctx, id)
	default:
		done, err = c.AskDeletion(ctx, id, d.reason)
	}
	if errors.Is(err, registry.ErrSamePerson) {
		return exit.Fix(err, fmt.Sprintf("they run `holdfast object delete %s --approve`", id))
	} else if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(done)
	}
	switch {
	case done.ItemID != "":
		_, err = fmt.Fprintln(a.Out, done.ItemID)
		a.Note("%s is being deleted; `%s` shows the progress", done.ObjectID, a.CommandLine("watch", done.ItemID))
	case d.withdraw:
		a.Note("withdrawn: the request to delete %s", done.ObjectID)
	default:
		a.Note("requested to delete %s; another person can approve it until %s with `%s`", done.ObjectID, terminal.TimeText(done.ExpiresAt),
			a.CommandLine("object", "delete", done.ObjectID, "--approve"))
	}
	return err
}

func deletionsCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "deletions", Short: "List deletions that need a second person's approval", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Deletion]{None: "no deletion needs approval", Row: deletionRow, Columns: []terminal.Column{
				{Name: "object"}, {Name: "asked by"}, {Name: "asked"}, {Name: "until"}, {Name: "reason", Flex: true},
			}}
			return l.Print(a, func(yield func(registry.Deletion) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Deletion], error) {
					return c.Deletions(ctx, registry.DeletionQuery{After: after, Limit: limit})
				}, yield)
			})
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

func deletionRow(d registry.Deletion) []string {
	return []string{d.ObjectID, d.AskedBy, terminal.TimeText(d.AskedAt), terminal.TimeText(d.ExpiresAt), d.Reason}
}
