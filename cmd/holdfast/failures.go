package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) itemFailuresCommand() *cobra.Command {
	var f filter
	var limit int
	const short = "Group failed items by what made them fail, and show how to requeue each group"
	cmd := &cobra.Command{
		Use: "failures [QUERY]", Short: short, Long: queryHelp(), Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.query(args)
			if err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			return a.showFailures(cmd.Context(), c, "nothing has failed", limit, q)
		},
	}
	f.flag(cmd, "batch", "batch", "only the jobs of this batch")
	f.flag(cmd, "collection", "collection", "only objects of this collection")
	f.flag(cmd, "stage", "stage", "only what failed at this stage")
	limitFlag(cmd, &limit)
	return a.clientFlags(cmd)
}

func (a *app) batchFailuresCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "failures ID", Short: "Group a batch's failed jobs by cause, with the command that requeues each group", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			batch, err := c.Batch(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			queries := []registry.Query{{Terms: []registry.Term{{Field: "batch", Value: batch.ID}}}}
			if batch.FailedItself() {
				queries = append([]registry.Query{{Terms: []registry.Term{{Field: "id", Value: batch.ID}}}}, queries...)
			}
			none := "nothing has failed"
			if why, coming := registry.NoReport(batch); !coming {
				none += "; " + why
			}
			return a.showFailures(cmd.Context(), c, none, limit, queries...)
		},
	}
	limitFlag(cmd, &limit)
	return a.clientFlags(a.takesIDs(registry.Batch, cmd))
}

// showFailures prints the groups, and below them what puts each right and the command that requeues it.
func (a *app) showFailures(ctx context.Context, c *client.Client, none string, limit int, queries ...registry.Query) error {
	l := lister[registry.FailureGroup]{none: none, row: failureRow, columns: failureColumns()}
	type found struct {
		registry.FailureGroup
		by registry.Query
	}
	var groups []found
	err := l.print(a, func(yield func(registry.FailureGroup) error) (more bool, err error) {
		for _, q := range queries {
			left, err := eachRow(ctx, limit, func(ctx context.Context, after string, size int) (registry.Page[registry.FailureGroup], error) {
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
	if err != nil || a.json {
		return err
	}
	for _, g := range groups {
		if err := a.showRemedy(g.FailureGroup, g.by); err != nil {
			return err
		}
	}
	return nil
}

func failureColumns() []column {
	return []column{
		{name: "count", right: true}, {name: "stage"}, {name: "class"}, {name: "cause", flex: true, below: 4}, {name: "since"}, {name: "last", spare: 1}, {name: "example", id: true},
	}
}

func failureRow(g registry.FailureGroup) []string {
	title := g.Title()
	if g.Fingerprint == "" {
		title = "not looked at yet; ask again in a minute"
	}
	return []string{registry.CountText(g.Count), string(g.Stage), string(g.Class), title, timeText(g.First), timeText(g.Last), g.ItemID}
}

// within is text in lines that a terminal has room for, all but the first indented. What is no terminal gets one line.
func (a *app) within(text, indent string) string {
	if most := width(a.out); most > 0 {
		return strings.Join(wrapped(text, most-len(indent), 0), "\n"+indent)
	}
	return text
}

// showRemedy says what puts a group right, and how it is sent again where it can be.
func (a *app) showRemedy(g registry.FailureGroup, q registry.Query) error {
	_, err := fmt.Fprintf(a.out, "\n%s\n  %s\n", a.within(plural(g.Count, "item", "items")+": "+clean(g.Title()), ""), a.within(clean(g.Act), "  "))
	if match, ok := g.Requeue(q); ok && err == nil {
		args := []string{"--match", node.ShellWord(match.String())}
		if g.From != "" {
			args = append(args, "--from", string(g.From))
		}
		_, err = fmt.Fprintf(a.out, "  %s\n", a.commandLine("item requeue", args...))
	}
	return err
}
