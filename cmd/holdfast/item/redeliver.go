package item

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func redeliverCommand(a *cli.App) *cobra.Command {
	var reason string
	var jobs bool
	cmd := &cobra.Command{
		Use: "redeliver ID...", Short: "Send a job's outcome or a batch's report again",
		Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			for _, id := range args {
				if jobs {
					if err := redeliverJobs(cmd.Context(), a, c, id, reason); err != nil {
						return err
					}
					continue
				}
				it, err := c.Redeliver(cmd.Context(), id, reason, "")
				if err != nil {
					return fmt.Errorf("redeliver the outcome of %s: %w", id, err)
				}
				if a.JSON {
					err = a.PrintJSON(it)
				} else {
					_, err = fmt.Fprintf(a.Out, "%s: item %s sends it again; see: %s\n", id, it.ID, a.CommandLine("item show "+id))
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	cmd.Flags().BoolVar(&jobs, "jobs", false, "the outcomes of all jobs of a batch, not its report")
	return a.ClientFlags(a.TakesIDs("", cmd))
}

// redeliverJobs sends the outcomes of all jobs of a batch again.
func redeliverJobs(ctx context.Context, a *cli.App, c *client.Client, batchID, reason string) error {
	var all registry.Redelivered
	for more := true; more; more = all.Next != "" {
		done, err := c.RedeliverJobs(ctx, batchID, all.Next, reason, "")
		if err != nil {
			return fmt.Errorf("redeliver the outcomes of the jobs of %s, of which %d are queued: %w", batchID, all.Queued, err)
		}
		all.Queued, all.Next = all.Queued+done.Queued, done.Next
	}
	if a.JSON {
		return a.PrintJSON(all)
	}
	_, err := fmt.Fprintf(a.Out, "%s: %d outcomes are sent again; see: %s\n", batchID, all.Queued, a.CommandLine("item list action:deliver"))
	return err
}
