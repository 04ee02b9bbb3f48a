package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) sessionCommand() *cobra.Command {
	return group("session", "List and end the sessions of browsers that have signed in", a.sessionListCommand(), a.sessionRevokeCommand())
}

func (a *app) sessionListCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "list", Short: "List your browser sessions, last used first (an admin: everybody's)", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.Sessions(cmd.Context())
			if err != nil {
				return err
			}
			l := lister[registry.Session]{none: "no sessions", row: sessionRow, columns: []column{
				{name: "id"},
				{name: "role"},
				{name: "used"},
				{name: "began", spare: 3},
				{name: "ends", spare: 2},
				{name: "by", spare: 2},
				{name: "from", spare: 1},
				{name: "browser", flex: true, spare: 1},
				{name: "name", flex: true},
			}}
			return l.print(a, whole(all))
		},
	})
}

func sessionRow(s registry.Session) []string {
	return []string{
		s.ID, string(s.Role), timeText(s.SeenAt), timeText(s.CreatedAt), timeText(s.ExpiresAt), string(s.Method),
		cmp.Or(s.Address, "-"), cmp.Or(s.Agent, "-"), s.Name,
	}
}

func (a *app) sessionRevokeCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "revoke ID...", Short: "End sessions: their browsers must sign in again", Args: needs("ID..."),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return a.revokeEach(cmd.Context(), ids, (*client.Client).EndSession)
		},
	})
}

// revokeEach revokes what ids name, one after the other, and goes on after one that cannot be.
func (a *app) revokeEach(ctx context.Context, ids []string, revoke func(c *client.Client, ctx context.Context, id string) error) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	codes := make([]outcome, 0, len(ids))
	for _, id := range ids {
		err := revoke(c, ctx, id)
		codes = append(codes, outcome(codeOf(err)))
		if err != nil {
			a.complain(err)
			continue
		}
		a.note("revoked: %s", clean(id))
	}
	return asError(together(codes))
}
