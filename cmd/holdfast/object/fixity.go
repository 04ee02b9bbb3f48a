package object

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
)

func fixityCommand(a *cli.App) *cobra.Command {
	var reason string
	var whole bool
	cmd := &cobra.Command{
		Use: "fixity ID...|--all", Short: "Check objects' stored files in every storage, and replace damaged ones with good copies",
		Args: someOrAll(&whole),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			return eachOf(cmd.Context(), a, args, whole, func(id string) error {
				o, err := c.CheckObject(cmd.Context(), id, reason, "")
				if err != nil {
					return fmt.Errorf("request a check of %s: %w", id, err)
				}
				if a.JSON {
					return a.PrintJSON(o)
				}
				_, err = fmt.Fprintf(a.Out, "%s: the check of its files is started; see: holdfast object show %s\n", o.ID, o.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	cmd.Flags().BoolVar(&whole, "all", false, "check every object")
	return a.ClientFlags(cmd)
}
