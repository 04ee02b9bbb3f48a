package role

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// ConfigCommand returns the command `holdfast config`.
func ConfigCommand(a *cli.App) *cobra.Command {
	var user string
	var changed bool
	users := []string{"registry", "worker", "up", "broker", "migrate", "commands"}
	for _, s := range registry.Stages() {
		users = append(users, string(s))
	}
	cmd := &cobra.Command{
		Use: "config", Short: "Show the settings in force, and where each comes from",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if user != "" && !slices.Contains(users, user) {
				return exit.Usagef("--for %s: unknown; roles and stages: %s", user, strings.Join(users, ", "))
			}
			return showConfig(cmd.Context(), a, user, changed)
		},
	}
	f := cmd.Flags()
	f.StringVar(&user, "for", "", "only the settings of this `ROLE` or stage, and what it lacks")
	f.BoolVar(&changed, "changed", false, "only settings that do not have their default")
	f.BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(users, cobra.ShellCompDirectiveNoFileComp))
	return cli.WithHelp(helpTexts, cmd)
}

// showConfig prints the settings of a user, or all. It prints them although some are faulty; then its
// error has all faults.
func showConfig(ctx context.Context, a *cli.App, user string, changed bool) error {
	defaults := config.Default()
	if user == "up" {
		defaults = config.DefaultUp()
	}
	settings, c, faults := config.InForce(ctx, defaults)
	switch {
	case user == "registry":
		faults = errors.Join(faults, c.Require(user, config.RegistryNeeds...))
	case user == "worker" || slices.Contains(registry.Stages(), registry.Stage(user)):
		faults = errors.Join(faults, c.Require("worker", config.WorkerNeeds...))
	}
	settings = slices.DeleteFunc(settings, func(s config.Setting) bool {
		return user != "" && !s.UsedBy(user) || changed && s.From == config.FromDefault
	})
	l := cli.Lister[config.Setting]{
		None: "every setting has its default", Columns: []terminal.Column{{Name: "setting"}, {Name: "value", Flex: true}, {Name: "from", Flex: true}},
		Row: func(s config.Setting) []string {
			value := s.Value
			switch {
			case s.Unknown:
				value = "(unknown, no effect)"
			case s.Secret && s.From != config.FromDefault:
				value = config.Hidden
			}
			return []string{s.Name, value, s.From}
		},
	}
	if err := l.Print(a, cli.Whole(settings)); err != nil {
		return errors.Join(err, faults)
	}
	for _, u := range c.Unknown {
		a.Note("warning: %s", u)
	}
	if faults != nil {
		return fmt.Errorf("a process would not start with these settings (docs/configuration.md describes each):\n%w", faults)
	}
	return nil
}
