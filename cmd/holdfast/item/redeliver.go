package item

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
)

func redeliverCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "redeliver ID...", Short: "Send a job's outcome or a batch's report again",
		Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			for _, id := range args {
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
	return a.ClientFlags(a.TakesIDs("", cmd))
}
