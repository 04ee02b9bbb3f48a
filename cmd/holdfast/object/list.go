package object

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

func listCommand(a *cli.App) *cobra.Command {
	var q registry.ObjectQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List objects, newest first", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l := cli.Lister[registry.Object]{None: "no objects", Row: objectRow, Columns: []terminal.Column{
				{Name: "object"},
				{Name: "version", Right: true},
				{Name: "files", Right: true},
				{Name: "size", Right: true},
				{Name: "collection", Spare: 1},
				{Name: "updated", Spare: 2},
				{Name: "title", Flex: true},
				{Name: "local ids", Flex: true},
			}}
			return l.Print(a, func(yield func(registry.Object) error) (bool, error) { return eachObject(cmd.Context(), a, q, yield) })
		},
	}
	cmd.Flags().StringVar(&q.Collection, "collection", "", "only objects of this collection")
	cmd.Flags().StringVar(&q.LocalID, "local-id", "", "only the object with this local id")
	cmd.Flags().StringVar(&q.Text, "text", "", "only objects with this text in ARK, title or creator")
	cli.LimitFlag(cmd, &q.Limit)
	return a.ClientFlags(cmd)
}

func eachObject(ctx context.Context, a *cli.App, q registry.ObjectQuery, yield func(registry.Object) error) (bool, error) {
	c, err := a.Connect()
	if err != nil {
		return false, err
	}
	return cli.EachRow(ctx, q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Object], error) {
		q.After, q.Limit = after, limit
		return c.Objects(ctx, q)
	}, yield)
}

func objectRow(o registry.Object) []string {
	head := strconv.Itoa(o.Head)
	if o.Gone != "" {
		head = string(o.Gone)
	}
	return []string{
		o.ID, head, registry.CountText(o.Files), terminal.SizeText(o.SizeBytes), o.Collection, terminal.TimeText(o.UpdatedAt), o.Title,
		strings.Join(o.LocalIDs, "; "),
	}
}
