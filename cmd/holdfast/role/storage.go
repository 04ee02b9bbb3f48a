package role

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/storage/open"
)

// StorageCommand returns the command `holdfast storage`, with more subcommands.
func StorageCommand(a *cli.App, more ...*cobra.Command) *cobra.Command {
	own := cli.WithHelp(helpTexts, cli.Group("storage", "", storageInitCommand(a), storageAcceptCommand(a))).Commands()
	return cli.Group("storage", "Add, fill, retire and prepare preservation storages", append(more, own...)...)
}

func storageInitCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "init ADDRESS", Short: "Create a storage root in an empty folder or bucket",
		Args: cli.Needs("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error { return storageInit(cmd.Context(), a, args[0]) },
	}
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cmd
}

// initialized is the output of `storage init --json`.
type initialized struct {
	Layout string `json:"layout"`
	Made   bool   `json:"made"`
}

func storageInit(ctx context.Context, a *cli.App, address string) error {
	c, err := a.Settings(ctx, config.Default())
	if err != nil {
		return err
	}
	layout, made, err := node.InitStorage(ctx, common(a, c), address)
	if errors.Is(err, open.ErrAddress) {
		return exit.Usagef("%w", err)
	} else if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(initialized{Layout: layout, Made: made})
	}
	text := "the storage root exists already, nothing was changed: layout %s\n"
	if made {
		text = "storage root made: layout %s\n"
	}
	_, err = fmt.Fprintf(a.Out, text, layout)
	return err
}

func storageAcceptCommand(a *cli.App) *cobra.Command {
	var registry string
	cmd := &cobra.Command{
		Use: "accept ADDRESS --registry NAME", Short: "Accept a storage with objects that this Registry does not know",
		Args: cli.Needs("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return storageAccept(cmd.Context(), a, args[0], registry)
		},
	}
	cmd.Flags().StringVar(&registry, "registry", "", "the Registry's name from its refusal to start: urn:uuid:...")
	return cmd
}

func storageAccept(ctx context.Context, a *cli.App, address, registry string) error {
	if registry == "" {
		return exit.Usagef("--registry is missing: the Registry prints its name when it refuses to start")
	}
	c, err := a.Settings(ctx, config.Default())
	if err != nil {
		return err
	}
	if err := node.AcceptStorage(ctx, common(a, c), address, registry); errors.Is(err, open.ErrAddress) {
		return exit.Usagef("%w", err)
	} else if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "accepted: the Registry %s may use this storage\n", registry)
	return err
}
