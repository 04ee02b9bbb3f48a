package item

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func failuresCommand(a *cli.App) *cobra.Command {
	var f Filter
	var limit int
	const short = "Group failed items by cause, with the command that requeues each group"
	cmd := &cobra.Command{
		Use: "failures [QUERY]", Short: short, Long: QueryHelp(), Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.Query(args)
			if err != nil {
				return err
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			return ShowFailures(cmd.Context(), a, c, "nothing has failed", limit, q)
		},
	}
	f.flag(cmd, "batch", "batch", "only the jobs of this batch")
	f.flag(cmd, "collection", "collection", "only objects of this collection")
	f.flag(cmd, "stage", "stage", "only failures at this stage")
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

// ShowFailures prints the groups of failures, then each group's remedy and the command that
// requeues it.
func ShowFailures(ctx context.Context, a *cli.App, c *client.Client, none string, limit int, queries ...registry.Query) error {
	l := cli.Lister[registry.FailureGroup]{None: none, Row: failureRow, Columns: failureColumns()}
	type found struct {
		registry.FailureGroup
		by registry.Query
	}
	var groups []found
	err := l.Print(a, func(yield func(registry.FailureGroup) error) (more bool, err error) {
		for _, q := range queries {
			left, err := cli.EachRow(ctx, limit, func(ctx context.Context, after string, size int) (registry.Page[registry.FailureGroup], error) {
				return c.Failures(ctx, registry.ItemQuery{Match: q, After: after, Limit: size})
			}, func(g registry.FailureGroup) error {
				groups = append(groups, found{g, q})
				return yield(g)
			})
			if more = more || left; err != nil {
				return more, err
			}
		}
		return more, nil
	})
	if err != nil || a.JSON {
		return err
	}
	for _, g := range groups {
		if err := showRemedy(a, g.FailureGroup, g.by); err != nil {
			return err
		}
	}
	return nil
}

func failureColumns() []terminal.Column {
	return []terminal.Column{
		{Name: "count", Right: true}, {Name: "stage"}, {Name: "class"}, {Name: "cause", Flex: true, Below: 4}, {Name: "since"}, {Name: "last", Spare: 1}, {Name: "example", ID: true},
	}
}

func failureRow(g registry.FailureGroup) []string {
	title := g.Title()
	if g.Fingerprint == "" {
		title = "cause not known yet; try again in a minute"
	}
	return []string{registry.CountText(g.Count), string(g.Stage), string(g.Class), title, terminal.TimeText(g.First), terminal.TimeText(g.Last), g.ItemID}
}

// within wraps text for a terminal and indents all lines but the first. Elsewhere it returns text
// unchanged.
func within(a *cli.App, text, indent string) string {
	if most := terminal.Width(a.Out); most > 0 {
		return strings.Join(terminal.Wrapped(text, most-len(indent), 0), "\n"+indent)
	}
	return text
}

// showRemedy prints a group's remedy, and the command that requeues it if a requeue helps.
func showRemedy(a *cli.App, g registry.FailureGroup, q registry.Query) error {
	_, err := fmt.Fprintf(a.Out, "\n%s\n", within(a, terminal.Plural(g.Count, "item", "items")+": "+terminal.Clean(g.Title()), ""))
	if err == nil && g.Name != "" && g.Name != g.ItemID {
		_, err = fmt.Fprintf(a.Out, "  for example: %s\n", within(a, terminal.Clean(g.Name), "  "))
	}
	if err == nil {
		_, err = fmt.Fprintf(a.Out, "  %s\n", within(a, terminal.Clean(g.Act), "  "))
	}
	if match, ok := g.Requeue(q); ok && err == nil {
		args := []string{"--match", node.ShellWord(match.String())}
		if g.From != "" {
			args = append(args, "--from", string(g.From))
		}
		_, err = fmt.Fprintf(a.Out, "  %s\n", a.CommandLine("item requeue", args...))
	}
	return err
}
