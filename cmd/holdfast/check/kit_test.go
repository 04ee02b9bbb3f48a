package check

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
)

// runCheck runs a program whose only command is `check`.
func runCheck(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Commands(func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} }).Run(t, "", args...)
}
