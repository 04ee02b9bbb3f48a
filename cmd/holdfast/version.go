package main

import (
	"embed"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(embed.FS{}, &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.Needs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "holdfast %s %s %s/%s\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	})
}
