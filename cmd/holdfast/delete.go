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
		Use: "delete ID --reason TEXT|--approve|--withdraw", Short: "Delete an object for good, which takes two people",
		Long: "Delete an object with all its versions from every storage. One person asks for it with --reason, another approves it with\n" +
			"--approve within 30 days, and only then it is deleted. --withdraw ends the asking. What it was, who deleted it and why stays.",
		Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.deleteObject(cmd.Context(), args[0], d) },
	}
	cmd.Flags().StringVar(&d.reason, "reason", "", "ask for it, and say why: it is kept for ever")
	cmd.Flags().BoolVar(&d.approve, "approve", false, "approve what somebody else has asked for: it cannot be undone")
	cmd.Flags().BoolVar(&d.withdraw, "withdraw", false, "ask for it no longer")
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
