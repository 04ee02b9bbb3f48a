package item

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/hold"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

func batchColumns() []terminal.Column {
	return []terminal.Column{
		{Name: "id", ID: true},
		{Name: "state", Meaning: terminal.StateMeaning},
		{Name: "collection", Spare: 1},
		{Name: "updated", Spare: 2},
		{Name: "name", Flex: true},
		{Name: "note", Flex: true, Below: 2},
	}
}

func batchRow(it registry.WorkItem) []string {
	return []string{it.ID, it.StateText(time.Now()), it.Collection, terminal.TimeText(it.UpdatedAt), it.Heading(), noteText(it)}
}

func listCommand(a *cli.App) *cobra.Command {
	var q registry.ItemQuery
	var f Filter
	var view string
	const short = "List items, newest first; the jobs of a batch in row order"
	cmd := &cobra.Command{
		Use: "list [QUERY]", Short: short, Long: QueryHelp(), Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if view != "" {
				c, err := a.Connect()
				if err != nil {
					return err
				}
				v, err := viewNamed(cmd.Context(), c, view)
				if err != nil {
					return err
				}
				args, q.Oldest = append([]string{v.Query}, args...), v.Oldest
			}
			if q.Match, err = f.Query(args); err != nil {
				return err
			}
			return List(cmd.Context(), a, q, "no items")
		},
	}
	FilterFlags(cmd, &f, &q.Limit)
	f.flag(cmd, "batch", "batch", "only the jobs of this batch")
	f.flag(cmd, "action", "action", "only items of this action: ingest, batch, ...")
	f.flag(cmd, "stage", "stage", "only items at this stage")
	cmd.Flags().StringVar(&view, "view", "", "only what the saved view of this `NAME` or id selects, in its order")
	return a.ClientFlags(cmd)
}

// FilterFlags adds the flags that narrow lists of items and batches.
func FilterFlags(cmd *cobra.Command, f *Filter, limit *int) {
	f.flag(cmd, "collection", "collection", "only objects of this collection")
	f.flag(cmd, "status", "status", "only those of this status: pending, running, completed, failed, ...")
	f.flag(cmd, "text", "", "only those with this text in the name, the title or the note")
	cli.LimitFlag(cmd, limit)
}

// List prints items. If the query has no action, it adds a column for the action.
func List(ctx context.Context, a *cli.App, q registry.ItemQuery, none string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	l := cli.Lister[registry.WorkItem]{None: none, Row: itemRow, Columns: itemColumns()}
	if q.Action == registry.Batch {
		l.Row, l.Columns = batchRow, batchColumns()
	}
	return l.Print(a, func(yield func(registry.WorkItem) error) (bool, error) {
		return cli.EachRow(ctx, q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.WorkItem], error) {
			q.After, q.Limit = after, limit
			return c.Items(ctx, q)
		}, yield)
	})
}

func itemColumns() []terminal.Column {
	return []terminal.Column{
		{Name: "id", ID: true},
		{Name: "action", Spare: 1},
		{Name: "state", Meaning: terminal.StateMeaning},
		{Name: "collection", Spare: 2},
		{Name: "size", Right: true, Spare: 3},
		{Name: "updated", Spare: 4},
		{Name: "name", Flex: true},
		{Name: "note", Flex: true, Below: 2},
	}
}

func itemRow(it registry.WorkItem) []string {
	size := ""
	if it.Action != registry.Batch && it.Action != registry.Bulk { // their jobs have the sizes
		size = terminal.SizeText(it.SizeBytes)
	}
	return []string{
		it.ID, string(it.Action), it.StateText(time.Now()), it.Collection, size, terminal.TimeText(it.UpdatedAt), calledText(it), noteText(it),
	}
}

// calledText returns what an item is called, and in brackets its file's name if that is another text.
func calledText(it registry.WorkItem) string {
	if below := it.NameBelow(); below != "" {
		return it.Heading() + " (" + below + ")"
	}
	return it.Heading()
}

// noteText returns the hold that covers an item, else its note.
func noteText(it registry.WorkItem) string {
	if it.HeldBy != nil {
		return "held: " + hold.HeldText(it.HeldBy)
	}
	return progress.Classed(it.Note, it.ErrorClass)
}
