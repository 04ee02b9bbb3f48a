package item

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/events"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func historyCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history ID", Short: "List an item's events, oldest first", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Event]{None: "nothing yet", Row: eventRow, Columns: []terminal.Column{
				{Name: "time"}, {Name: "event"}, {Name: "attempt", Right: true}, {Name: "by", Spare: 1}, {Name: "what", Below: 3},
			}}
			return l.Print(a, func(yield func(registry.Event) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, historyPage(c, args[0]), yield)
			})
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(a.TakesIDs("", cmd))
}

func eventRow(e registry.Event) []string {
	attempt := ""
	if e.Attempt > 0 {
		attempt = strconv.FormatInt(e.Attempt, 10)
	}
	return []string{terminal.TimeText(e.At), e.Type, attempt, e.Actor, events.DetailsText(e)}
}

func historyPage(c *client.Client, item string) cli.Fetch[registry.Event] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.Event], error) {
		seq, err := cli.Cursor(after)
		if err != nil {
			return registry.Page[registry.Event]{}, err
		}
		rows, err := c.Events(ctx, item, seq, limit)
		return cli.PageOf(rows, err, limit, func(e registry.Event) string { return strconv.FormatInt(e.Seq, 10) })
	}
}
