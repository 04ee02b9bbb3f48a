package account

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// SessionCommand returns the command `holdfast session`.
func SessionCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("session", "List and end browser sessions", sessionListCommand(a), sessionRevokeCommand(a)))
}

func sessionListCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List your browser sessions, last used first (as an admin: all)", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Sessions(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Session]{None: "no sessions", Row: sessionRow, Columns: []terminal.Column{
				{Name: "id"},
				{Name: "role"},
				{Name: "used"},
				{Name: "began", Spare: 3},
				{Name: "ends", Spare: 2},
				{Name: "by", Spare: 2},
				{Name: "from", Spare: 1},
				{Name: "browser", Flex: true, Spare: 1},
				{Name: "name", Flex: true},
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func sessionRow(s registry.Session) []string {
	return []string{
		s.ID, string(s.Role), terminal.TimeText(s.SeenAt), terminal.TimeText(s.CreatedAt), terminal.TimeText(s.ExpiresAt), string(s.Method),
		cmp.Or(s.Address, "-"), cmp.Or(s.Agent, "-"), s.Name,
	}
}

func sessionRevokeCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "revoke ID...", Short: "End sessions: their browsers must sign in again", Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return revokeEach(cmd.Context(), a, ids, (*client.Client).EndSession)
		},
	})
}

// revokeEach revokes each of ids. It prints an error and continues with the next id.
func revokeEach(ctx context.Context, a *cli.App, ids []string, revoke func(c *client.Client, ctx context.Context, id string) error) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	codes := make([]exit.Code, 0, len(ids))
	for _, id := range ids {
		err := revoke(c, ctx, id)
		codes = append(codes, exit.Of(err))
		if err != nil {
			a.Complain(err)
			continue
		}
		a.Note("revoked: %s", terminal.Clean(id))
	}
	return exit.Together(codes).Err()
}
