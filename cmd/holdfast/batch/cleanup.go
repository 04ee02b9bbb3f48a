package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/item"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

func cleanupCommand(a *cli.App) *cobra.Command {
	var older time.Duration
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use: "cleanup [ID...]", Short: "Remove finished batches and their jobs from the queue; events and objects stay",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			command := registry.Command{Act: registry.ActPurge, Reason: reason}
			if len(args) > 0 {
				return item.Apply(cmd.Context(), a, args, command)
			}
			ids, err := purgeable(cmd.Context(), a, older)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				a.Note("nothing has been completed or deleted for that long")
				return exit.Nothing
			}
			if err := a.Decide(fmt.Sprintf("remove %s from the queue?", terminal.Plural(int64(len(ids)), "item", "items")), yes); err != nil {
				return err
			}
			return item.Apply(cmd.Context(), a, ids, command)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "without ids: skip the question")
	cmd.Flags().Func("older", "without ids: all that ended longer than this `AGE` ago, such as 12h or 30d", func(text string) (err error) {
		if older, err = query.Age(strings.ToLower(text)); err != nil {
			return errors.New("it must be a whole number and s, m, h, d or w, such as 30d")
		}
		return nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	return a.ClientFlags(cmd)
}

// purgeable returns the finished batches and items that ended longer ago than older, and prints
// their numbers. Batches come last, because their messages are removed with them.
func purgeable(ctx context.Context, a *cli.App, older time.Duration) (ids []string, err error) {
	c, err := a.Connect()
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(-older)
	queries := []registry.ItemQuery{
		{Action: registry.Bulk, Status: registry.Completed},
		{Action: registry.Tidy, Status: registry.Completed},
		{Action: registry.DeliverMessage, Status: registry.Completed},
	}
	for _, action := range registry.ObjectActions() {
		queries = append(queries, registry.ItemQuery{Action: action, Status: registry.Completed})
	}
	queries = append(queries, registry.ItemQuery{Action: registry.Batch, Status: registry.Completed}, registry.ItemQuery{Action: registry.Batch, Status: registry.Deleted})
	for _, q := range queries {
		before := len(ids)
		_, err := cli.EachRow(ctx, 0, func(ctx context.Context, after string, limit int) (registry.Page[registry.WorkItem], error) {
			q.After, q.Limit = after, limit
			return c.Items(ctx, q)
		}, func(it registry.WorkItem) error {
			if it.FinishedAt != nil && !it.FinishedAt.After(until) {
				ids = append(ids, it.ID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if n := len(ids) - before; n > 0 {
			a.Note("%8s %s %s", registry.CountText(int64(n)), q.Status, kindText(q.Action))
		}
	}
	return ids, nil
}

// kindText returns the plural name of an action's items, for people.
func kindText(a registry.Action) string {
	switch a {
	case registry.Batch:
		return "batches"
	case registry.Bulk:
		return "acts on many items"
	case registry.Tidy:
		return "tidyings"
	case registry.DeliverMessage:
		return "mails and messages"
	default:
		return "items that " + string(a) + " objects"
	}
}
