package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) eventsCommand() *cobra.Command {
	q := registry.FeedQuery{After: client.FromNow}
	var follow bool
	cmd := &cobra.Command{
		Use: "events", Short: "List and follow the events of all items, oldest first", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.After < client.FromNow {
				return &usageError{errors.New("--after must be the number of an event, or 0 for all")}
			}
			whole, err := a.wholeID(cmd.Context(), "", q.ItemID)
			if err != nil {
				return err
			}
			q.ItemID = whole
			if follow {
				return a.followEvents(cmd.Context(), q)
			}
			q.After = max(q.After, 0)
			return a.listEvents(cmd.Context(), q)
		},
	}
	cmd.Flags().Int64Var(&q.After, "after", client.FromNow, "only events after this number (default all; with --follow new ones)")
	cmd.Flags().StringSliceVar(&q.Types, "types", nil, "only events of these types: submit, fail, complete, requeue, ...")
	cmd.Flags().StringVar(&q.ItemID, "item", "", "only events of this item")
	cmd.Flags().BoolVar(&follow, "follow", false, "keep printing new events until interrupted")
	limitFlag(cmd, &q.Limit)
	return a.clientFlags(cmd)
}

func (a *app) listEvents(ctx context.Context, q registry.FeedQuery) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	l := lister[registry.Event]{none: "no events", row: feedRow, columns: []column{
		{name: "no", right: true}, {name: "time"}, {name: "event"}, {name: "item", id: true}, {name: "by", spare: 1}, {name: "what", below: 3},
	}}
	return l.print(a, func(yield func(registry.Event) error) (bool, error) {
		return eachRow(ctx, q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Event], error) {
			page := q
			seq, err := cursor(after)
			if err != nil {
				return registry.Page[registry.Event]{}, err
			}
			page.After, page.Limit = max(q.After, seq), limit
			rows, err := c.Feed(ctx, page)
			return full(rows, err, limit, func(e registry.Event) string { return strconv.FormatInt(e.Seq, 10) })
		}, yield)
	})
}

func feedRow(e registry.Event) []string {
	return []string{
		strconv.FormatInt(e.Seq, 10), timeText(e.At), e.Type, cmp.Or(e.ItemID, "-"), cmp.Or(e.Actor, "-"), detailsText(e.Data),
	}
}

// followEvents prints events as they come, a line each. Interrupted, it says how to go on without a gap.
func (a *app) followEvents(ctx context.Context, q registry.FeedQuery) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	last := q.After
	err = c.FollowEvents(ctx, q, func(e registry.Event) error {
		last = e.Seq
		if a.json {
			return a.printJSON(e)
		}
		row := feedRow(e)
		for i, cell := range row {
			row[i] = clean(cell)
		}
		w := bufio.NewWriter(a.out)
		_, _ = w.WriteString(strings.Join(row, "  ") + "\n") // Flush has its error
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
	a.note("interrupted; to go on with the next event: %s", a.commandLine("events", args...))
	return exitInterrupted
}

func (a *app) auditCommand() *cobra.Command {
	return group("audit", "List what people did and were refused", a.auditListCommand())
}

func (a *app) auditListCommand() *cobra.Command {
	var q registry.AuditQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List the audit log: people's acts and refusals, newest first", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			l := lister[registry.Event]{none: "no entries", row: auditRow, columns: []column{
				{name: "time"}, {name: "by"}, {name: "act"}, {name: "on"}, {name: "what"},
			}}
			return l.print(a, func(yield func(registry.Event) error) (bool, error) {
				return eachRow(cmd.Context(), q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Event], error) {
					page := q
					page.After, page.Limit = after, limit
					return c.Audit(ctx, page)
				}, yield)
			})
		},
	}
	cmd.Flags().StringVar(&q.Actor, "actor", "", "only acts and refusals of the token with this name")
	cmd.Flags().StringSliceVar(&q.Types, "types", nil, "only these acts: submit, cancel, hold, refused, token-created, ...")
	limitFlag(cmd, &q.Limit)
	return a.clientFlags(cmd)
}

func auditRow(e registry.Event) []string {
	return []string{timeText(e.At), cmp.Or(e.Actor, "-"), e.Type, cmp.Or(e.ItemID, "-"), detailsText(e.Data)}
}
