package collection

import (
	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/hold"
	"github.com/holdfast/holdfast/registry"
)

func holdCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "hold NAME --reason TEXT", Short: "Hold a collection: its batches and jobs do not start their next step", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return hold.Add(cmd.Context(), a, registry.Hold{Scope: registry.HoldCollection, Key: args[0], Reason: reason})
		},
	}
	cli.ReasonFlag(cmd, &reason)
	return a.ClientFlags(cmd)
}

func releaseCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "release NAME", Short: "Release a collection; with release_one_by_one each batch and job keeps its own hold", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return hold.Remove(cmd.Context(), a, registry.HoldCollection, args[0])
		},
	})
}
