package role

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
)

// healthTimeout is how long the service may take to answer.
const healthTimeout = 5 * time.Second

// HealthCommand returns the command `holdfast health`.
func HealthCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, a.ClientFlags(&cobra.Command{
		Use:   "health",
		Short: "Check whether a service is healthy; exit code 0 or 5",
		Args:  cli.Needs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return askHealth(cmd.Context(), a) },
	}))
}

func askHealth(ctx context.Context, a *cli.App) error {
	address, trust, err := a.HealthAddress(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	h, err := node.AskHealth(ctx, address, trust)
	if err != nil {
		a.Complain(fmt.Errorf("ask %s: %w", address, err))
		return exit.Temporary
	}
	if a.JSON {
		if err := a.PrintJSON(h); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(a.Out, strings.TrimSpace(h.Status+" "+h.Version)); err != nil {
		return err
	}
	if h.Status != "ok" {
		return exit.Temporary
	}
	return nil
}
