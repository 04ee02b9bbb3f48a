package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
)

// deletion is what is to be decided about an object.
type deletion struct {
	reason            string
	approve, withdraw bool
}

func (a *app) objectDeleteCommand() *cobra.Command {
	var d deletion
	cmd := &cobra.Command{
		Use: "delete ID --reason TEXT|--approve|--withdraw", Short: "Delete an object for good (needs two people)",
		Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.deleteObject(cmd.Context(), args[0], d) },
	}
	cmd.Flags().StringVar(&d.reason, "reason", "", "make the request, with this reason; it is kept for ever")
	cmd.Flags().BoolVar(&d.approve, "approve", false, "approve another person's request; it cannot be undone")
	cmd.Flags().BoolVar(&d.withdraw, "withdraw", false, "withdraw the request")
	return a.clientFlags(cmd)
}

func (a *app) deleteObject(ctx context.Context, id string, d deletion) error {
	asked := 0
	for _, is := range []bool{d.reason != "", d.approve, d.withdraw} {
		if is {
			asked++
		}
	}
	if asked != 1 {
		return usage("give one of --reason TEXT, --approve and --withdraw")
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	var done registry.Deletion
	switch {
	case d.approve:
		done, err = c.ApproveDeletion(ctx, id, "")
	case d.withdraw:
		done, err = c.WithdrawDeletion(ctx, id, "")
	default:
		done, err = c.AskDeletion(ctx, id, d.reason, "")
	}
	if errors.Is(err, registry.ErrSamePerson) {
		return fix(err, fmt.Sprintf("`holdfast object delete %s --approve` is for another person, with a token of their own", id))
	} else if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(done)
	}
	switch {
	case done.ItemID != "":
		_, err = fmt.Fprintln(a.out, done.ItemID)
		a.note("%s is being deleted; `%s` shows how far it is", done.ObjectID, a.commandLine("watch", done.ItemID))
	case d.withdraw:
		a.note("nobody asks to delete %s any more", done.ObjectID)
	default:
		a.note("asked to delete %s; somebody else has until %s to approve it by `%s`", done.ObjectID, timeText(done.ExpiresAt),
			a.commandLine("object", "delete", done.ObjectID, "--approve"))
	}
	return err
}

func (a *app) objectDeletionsCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "deletions", Short: "List deletions that need a second person's approval", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			l := lister[registry.Deletion]{none: "no deletion waits for anybody", row: deletionRow, columns: []column{
				{name: "object"}, {name: "asked by"}, {name: "asked"}, {name: "until"}, {name: "reason", flex: true},
			}}
			return l.print(a, func(yield func(registry.Deletion) error) (bool, error) {
				return eachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Deletion], error) {
					return c.Deletions(ctx, registry.DeletionQuery{After: after, Limit: limit})
				}, yield)
			})
		},
	}
	limitFlag(cmd, &limit)
	return a.clientFlags(cmd)
}

func deletionRow(d registry.Deletion) []string {
	return []string{d.ObjectID, d.AskedBy, timeText(d.AskedAt), timeText(d.ExpiresAt), d.Reason}
}
