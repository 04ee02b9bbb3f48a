package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
)

func (a *app) storageCommand() *cobra.Command {
	return group("storage", "Prepare preservation storage", a.storageInitCommand(), a.storageAcceptCommand())
}

func (a *app) storageInitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "init ADDRESS", Short: "Create a storage root in an empty folder or bucket",
		Args: needs("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.storageInit(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, one object a line")
	return cmd
}

// initialized is what `storage init --json` prints.
type initialized struct {
	Layout string `json:"layout"`
	Made   bool   `json:"made"`
}

func (a *app) storageInit(ctx context.Context, address string) error {
	c, err := config.Load(config.Default())
	if err != nil {
		return err
	}
	layout, made, err := node.InitStorage(ctx, a.common(c), address)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(initialized{Layout: layout, Made: made})
	}
	text := "there is a storage root already; nothing to do: layout %s\n"
	if made {
		text = "storage root made: layout %s\n"
	}
	_, err = fmt.Fprintf(a.out, text, layout)
	return err
}

func (a *app) storageAcceptCommand() *cobra.Command {
	var registry string
	cmd := &cobra.Command{
		Use: "accept ADDRESS --registry NAME", Short: "Accept a storage with objects that this Registry does not know",
		Args: needs("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.storageAccept(cmd.Context(), args[0], registry)
		},
	}
	cmd.Flags().StringVar(&registry, "registry", "", "the Registry's name from its refusal to start: urn:uuid:...")
	return cmd
}

func (a *app) storageAccept(ctx context.Context, address, registry string) error {
	if registry == "" {
		return usage("--registry is missing: start the Registry, and it says what it is called")
	}
	c, err := config.Load(config.Default())
	if err != nil {
		return err
	}
	if err := node.AcceptStorage(ctx, a.common(c), address, registry); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "accepted: the Registry %s may work in this storage\n", registry)
	return err
}
