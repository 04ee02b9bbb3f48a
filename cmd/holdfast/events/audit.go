package events

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// AuditCommand returns the command `holdfast audit`.
func AuditCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("audit", "List what people did and were refused", auditListCommand(a)))
}

func auditListCommand(a *cli.App) *cobra.Command {
	var q registry.AuditQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List people's acts and refused requests, newest first", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Event]{None: "no entries", Row: auditRow, Columns: []terminal.Column{
				{Name: "time"}, {Name: "by"}, {Name: "act"}, {Name: "on"}, {Name: "what"},
			}}
			return l.Print(a, func(yield func(registry.Event) error) (bool, error) {
				return cli.EachRow(cmd.Context(), q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Event], error) {
					page := q
					page.After, page.Limit = after, limit
					return c.Audit(ctx, page)
				}, yield)
			})
		},
	}
	cmd.Flags().StringVar(&q.Actor, "actor", "", "only acts and refusals of the token with this name")
	cmd.Flags().StringSliceVar(&q.Types, "types", nil, "only these acts: submit, cancel, hold, refused, token-created, ...")
	cli.LimitFlag(cmd, &q.Limit)
	return a.ClientFlags(cmd)
}

func auditRow(e registry.Event) []string {
	return []string{terminal.TimeText(e.At), cmp.Or(e.Actor, "-"), e.Type, cmp.Or(e.ItemID, "-"), DetailsText(e)}
}
