package queue

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

func throughputCommand(a *cli.App) *cobra.Command {
	span := string(registry.ThroughputHour)
	cmd := &cobra.Command{
		Use: "throughput [--span SPAN]", Short: "Show what was preserved and failed, and how much waited, over time", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if step, _ := registry.ThroughputSpan(span).Intervals(); step == 0 {
				return exit.Usagef("--span is %q; want one of %v", span, registry.OneOf(registry.ThroughputSpans()))
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			t, err := c.Throughput(cmd.Context(), registry.ThroughputSpan(span))
			if err != nil {
				return err
			}
			l := cli.Lister[registry.ThroughputPoint]{None: "nothing is counted yet; the first minute must end", Row: throughputRow, Columns: []terminal.Column{
				{Name: "from"}, {Name: "preserved", Right: true}, {Name: "size", Right: true}, {Name: "failed", Right: true}, {Name: "waiting", Right: true}, {Name: "running", Right: true},
			}}
			return l.Print(a, cli.Whole(t.Rows))
		},
	}
	cmd.Flags().StringVar(&span, "span", span, "how far to go back: hour (by minutes), day (by quarters of an hour) or month (30 days, by quarters of a day)")
	return a.ClientFlags(cmd)
}

func throughputRow(p registry.ThroughputPoint) []string {
	return []string{terminal.TimeText(p.At), strconv.FormatInt(p.Preserved, 10), terminal.SizeText(p.Bytes), strconv.FormatInt(p.Failed, 10), known(p.Waiting), known(p.Running)}
}

// known formats a count that may be unknown.
func known(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}
