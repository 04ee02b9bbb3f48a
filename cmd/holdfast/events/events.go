// Package events has the commands `holdfast events`, which lists and follows the events of all
// items, and `holdfast audit`, which lists people's acts and refused requests. It also formats
// events for the histories of items.
package events

import (
	"bufio"
	"cmp"
	"context"
	"embed"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast events`.
func Command(a *cli.App) *cobra.Command {
	q := registry.FeedQuery{After: client.FromNow}
	var follow bool
	cmd := &cobra.Command{
		Use: "events", Short: "List and follow the events of all items, oldest first", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.After < client.FromNow {
				return exit.Usagef("--after must be the number of an event, or 0 for all")
			}
			whole, err := a.WholeID(cmd.Context(), "", q.ItemID)
			if err != nil {
				return err
			}
			q.ItemID = whole
			if follow {
				return followEvents(cmd.Context(), a, q)
			}
			q.After = max(q.After, 0)
			return listEvents(cmd.Context(), a, q)
		},
	}
	cmd.Flags().Int64Var(&q.After, "after", client.FromNow, "only events after this number (default all; with --follow new ones)")
	cmd.Flags().StringSliceVar(&q.Types, "types", nil, "only events of these types: submit, fail, complete, requeue, ...")
	cmd.Flags().StringVar(&q.ItemID, "item", "", "only events of this item")
	cmd.Flags().BoolVar(&follow, "follow", false, "keep printing new events until interrupted")
	cli.LimitFlag(cmd, &q.Limit)
	return cli.WithHelp(helpTexts, a.ClientFlags(cmd))
}

func listEvents(ctx context.Context, a *cli.App, q registry.FeedQuery) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	l := cli.Lister[registry.Event]{None: "no events", Row: feedRow, Columns: []terminal.Column{
		{Name: "no", Right: true}, {Name: "time"}, {Name: "event"}, {Name: "item", ID: true}, {Name: "by", Spare: 1}, {Name: "what", Below: 3},
	}}
	return l.Print(a, func(yield func(registry.Event) error) (bool, error) {
		return cli.EachRow(ctx, q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Event], error) {
			page := q
			seq, err := cli.Cursor(after)
			if err != nil {
				return registry.Page[registry.Event]{}, err
			}
			page.After, page.Limit = max(q.After, seq), limit
			rows, err := c.Feed(ctx, page)
			return cli.PageOf(rows, err, limit, func(e registry.Event) string { return strconv.FormatInt(e.Seq, 10) })
		}, yield)
	})
}

func feedRow(e registry.Event) []string {
	return []string{
		strconv.FormatInt(e.Seq, 10), terminal.TimeText(e.At), e.Type, cmp.Or(e.ItemID, "-"), cmp.Or(e.Actor, "-"), DetailsText(e),
	}
}

// followEvents prints events as they come, one on each line. When it is interrupted, it prints the
// command that continues without a gap.
func followEvents(ctx context.Context, a *cli.App, q registry.FeedQuery) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	last := q.After
	err = c.FollowEvents(ctx, q, func(e registry.Event) error {
		last = e.Seq
		if a.JSON {
			return a.PrintJSON(e)
		}
		row := feedRow(e)
		for i, cell := range row {
			row[i] = terminal.Clean(cell)
		}
		w := bufio.NewWriter(a.Out)
		_, _ = w.WriteString(strings.Join(row, "  ") + "\n") // Flush returns its error
		return w.Flush()
	})
	if ctx.Err() == nil {
		return err
	}
	args := []string{"--follow"}
	if last >= 0 {
		args = append(args, "--after", strconv.FormatInt(last, 10))
	}
	if len(q.Types) > 0 {
		args = append(args, "--types", node.ShellWord(strings.Join(q.Types, ",")))
	}
	if q.ItemID != "" {
		args = append(args, "--item", node.ShellWord(q.ItemID))
	}
	a.Note("interrupted; to continue with the next event: %s", a.CommandLine("events", args...))
	return exit.Interrupted
}

// DetailsText returns an event's data on one line.
func DetailsText(e registry.Event) string { return strings.Join(e.Details(), ", ") }
