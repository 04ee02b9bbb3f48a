package batch

import (
	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/item"
	"github.com/holdfast/holdfast/registry"
)

func failuresCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "failures ID", Short: "Group a batch's failed jobs by cause, with the command that requeues each group", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			batch, err := c.Batch(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			queries := []registry.Query{{Terms: []registry.Term{{Field: "batch", Value: batch.ID}}}}
			if batch.FailedItself() {
				queries = append([]registry.Query{{Terms: []registry.Term{{Field: "id", Value: batch.ID}}}}, queries...)
			}
			none := "nothing has failed"
			if why, coming := registry.NoReport(batch); !coming {
				none += "; " + why
			}
			return item.ShowFailures(cmd.Context(), a, c, none, limit, queries...)
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(a.TakesIDs(registry.Batch, cmd))
}
