package object

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

func changesCommand(a *cli.App) *cobra.Command {
	q := registry.FileChangesQuery{}
	limit := 0
	cmd := &cobra.Command{
		Use: "changes ID", Short: "List the files that differ between two versions of an object", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			q.ObjectID = args[0]
			if !cmd.Flags().Changed("since") {
				q.Since = -1
			}
			l := cli.Lister[registry.FileChange]{None: "no differences", Row: changeRow, Columns: []terminal.Column{
				{Name: "change"}, {Name: "size", Right: true}, {Name: "path"}, {Name: "other path", Flex: true},
			}}
			return l.Print(a, func(yield func(registry.FileChange) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, n int) (registry.Page[registry.FileChange], error) {
					q.After, q.Limit = after, n
					return c.FileChanges(ctx, q)
				}, yield)
			})
		},
	}
	cmd.Flags().IntVar(&q.Version, "version", 0, "the later version (default the newest)")
	cmd.Flags().IntVar(&q.Since, "since", 0, "the earlier version; 0 for none (default the one before)")
	cmd.Flags().StringVar(&q.Folder, "folder", "", "only files below this `FOLDER`, such as producer/")
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

func changeRow(c registry.FileChange) []string {
	f, other := c.After, ""
	if f == nil {
		f = c.Before
	}
	switch {
	case c.From != "":
		other = "from " + c.From
	case c.To != "":
		other = "to " + c.To
	}
	return []string{string(c.Change), terminal.SizeText(f.SizeBytes), c.Path, other}
}
