package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) redeliverCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "redeliver ID...", Short: "Send a job's outcome, or a batch's report, again",
		Args: needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			for _, id := range args {
				it, err := c.Redeliver(cmd.Context(), id, reason)
				if err != nil {
					return fmt.Errorf("deliver again what became of %s: %w", id, err)
				}
				if a.json {
					err = a.printJSON(it)
				} else {
					_, err = fmt.Fprintf(a.out, "%s: told again by item %s; see: %s\n", id, it.ID, a.commandLine("item show "+id))
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	return a.clientFlags(a.takesIDs("", cmd))
}
