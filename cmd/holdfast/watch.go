package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) watchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch ID...",
		Short: "Follow batches or items until they are settled",
		Args:  needs("ID..."),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args) },
	}
	a.progressFlags(cmd)
	return a.clientFlags(a.takesIDs("", cmd))
}

func (a *app) watch(ctx context.Context, ids []string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	entries := make([]entry, len(ids))
	for i, id := range ids {
		t, err := targetOf(ctx, c, id)
		if err != nil {
			return err
		}
		entries[i] = entry{target: t}
	}
	return a.await(ctx, c, entries, nil)
}
