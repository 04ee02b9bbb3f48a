package progress

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
)

// WatchCommand returns the command `holdfast watch`.
func WatchCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch ID...",
		Short: "Follow batches or items until they are settled",
		Args:  cli.Needs("ID..."),
		RunE:  func(cmd *cobra.Command, args []string) error { return watch(cmd.Context(), a, args) },
	}
	Flags(a, cmd)
	return cli.WithHelp(helpTexts, a.ClientFlags(a.TakesIDs("", cmd)))
}

func watch(ctx context.Context, a *cli.App, ids []string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	entries := make([]Entry, len(ids))
	for i, id := range ids {
		t, err := targetOf(ctx, c, id)
		if err != nil {
			return err
		}
		entries[i] = Entry{Target: t}
	}
	return Await(ctx, a, c, entries, nil)
}
