package queue

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

func limitCommand(a *cli.App) *cobra.Command {
	return cli.Group("limit", "Limit how many items run at once", listLimitsCommand(a), setLimitCommand(a), removeLimitCommand(a))
}

func listLimitsCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List the limits", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Limits(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Limit]{None: "nothing is limited", Row: limitRow, Columns: []terminal.Column{
				{Name: "scope"}, {Name: "key", Flex: true}, {Name: "most", Right: true}, {Name: "weight", Right: true}, {Name: "since"}, {Name: "by", Flex: true},
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func limitRow(l registry.Limit) []string {
	most, weight, by := "any", "", l.Actor
	if n := l.AtOnce(); n > 0 {
		most = strconv.Itoa(n)
	}
	if by == "" {
		by = "its program"
	}
	if l.Weight > 0 {
		weight = strconv.Itoa(l.Weight)
	}
	return []string{string(l.Scope), l.Key, most, weight, terminal.TimeText(l.At), by}
}

// limitFlags adds --scope and --key.
func limitFlags(cmd *cobra.Command, l *registry.Limit) {
	cmd.Flags().StringVar((*string)(&l.Scope), "scope", "", "what is limited: stage or collection")
	cmd.Flags().StringVar(&l.Key, "key", "", "the stage (of a function: run:NAME) or the collection")
}

func setLimitCommand(a *cli.App) *cobra.Command {
	var l registry.Limit
	cmd := &cobra.Command{
		Use: "set --scope SCOPE --key KEY [--most N] [--weight N]", Short: "Set the limit of a stage or collection, in place of an earlier one", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if err := c.SetLimit(cmd.Context(), l); err != nil {
				return err
			}
			a.Note("limited: %s %s", l.Scope, l.Key)
			return nil
		},
	}
	limitFlags(cmd, &l)
	cmd.Flags().IntVar(&l.Most, "most", 0, "how many items may run at once (default any number)")
	cmd.Flags().IntVar(&l.Weight, "weight", 0, "how many items of the collection start in a row (default 1)")
	return a.ClientFlags(cmd)
}

func removeLimitCommand(a *cli.App) *cobra.Command {
	var l registry.Limit
	cmd := &cobra.Command{
		Use: "remove --scope SCOPE --key KEY", Short: "Remove the limit of a stage or collection", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if err := c.RemoveLimit(cmd.Context(), l.Scope, l.Key); err != nil {
				return err
			}
			a.Note("removed: the limit of %s %s", l.Scope, l.Key)
			return nil
		},
	}
	limitFlags(cmd, &l)
	return a.ClientFlags(cmd)
}
