package item

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func logCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "log ID", Short: "List the lines that an item's attempts logged", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[registry.LogLine]{None: "nothing was logged", Row: logRow, Columns: logColumns}
			return l.Print(a, func(yield func(registry.LogLine) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.LogLine], error) {
					return c.Log(ctx, registry.LogQuery{ItemID: args[0], After: after, Limit: limit})
				}, yield)
			})
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(a.TakesIDs("", cmd))
}

var logColumns = []terminal.Column{
	{Name: "logged"}, {Name: "attempt", Right: true}, {Name: "level"}, {Name: "line", Flex: true},
}

func logRow(l registry.LogLine) []string {
	text := l.Text
	if l.Dropped > 0 {
		text = fmt.Sprintf("(%s dropped) %s", terminal.Plural(l.Dropped, "line", "lines"), text)
	}
	return []string{terminal.TimeText(l.At), strconv.FormatInt(l.N, 10), l.Level, text}
}

// newestLog returns the newest lines that an item's attempts logged, oldest first.
func newestLog(ctx context.Context, c *client.Client, id string) ([]registry.LogLine, error) {
	const shown = 20
	p, err := c.Log(ctx, registry.LogQuery{ItemID: id, Newest: true, Limit: shown})
	slices.Reverse(p.Rows)
	return p.Rows, err
}
