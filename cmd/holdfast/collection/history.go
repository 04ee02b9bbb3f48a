package collection

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func historyCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history NAME", Short: "List the versions of a collection's profile, newest first, and what each changed", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[ProfileChange]{None: "no versions", Row: profileChangeRow, Columns: []terminal.Column{
				{Name: "version", Right: true}, {Name: "since"}, {Name: "by", Flex: true}, {Name: "what changed", Flex: true},
			}}
			return l.Print(a, func(yield func(ProfileChange) error) (bool, error) {
				return eachProfileChange(cmd.Context(), c, args[0], limit, yield)
			})
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

// ProfileChange is a version of a profile and its changes.
type ProfileChange struct {
	registry.ProfileVersion
	Changes []string `json:"changes"`
}

func profileChangeRow(c ProfileChange) []string {
	by := c.Actor
	if by == "" {
		by = "-"
	}
	return []string{fmt.Sprint(c.Version), terminal.TimeText(c.CreatedAt), by, strings.Join(c.Changes, "; ")}
}

// eachProfileChange yields the versions of a profile, newest first, each with its changes since the
// version before.
func eachProfileChange(ctx context.Context, c *client.Client, name string, limit int, yield func(ProfileChange) error) (more bool, err error) {
	var newer *registry.ProfileVersion
	show := func(older registry.Profile) error {
		changes, err := profile.Changes(older, newer.Profile)
		if err != nil {
			return err
		}
		if newer.Version == 1 {
			changes = []string{"created"}
		}
		return yield(ProfileChange{*newer, changes})
	}
	page := func(ctx context.Context, after string, size int) (registry.Page[registry.ProfileVersion], error) {
		before, _ := strconv.Atoi(after) // "" is 0: begin with the newest
		rows, err := c.ProfileVersions(ctx, name, before, size)
		return cli.PageOf(rows, err, size, func(v registry.ProfileVersion) string { return strconv.Itoa(v.Version) })
	}
	shown := 0
	more, err = cli.EachRow(ctx, 0, page, func(v registry.ProfileVersion) error {
		if newer != nil {
			if err := show(v.Profile); err != nil {
				return err
			}
			if shown++; shown == limit {
				newer = nil
				return cli.ErrEnough
			}
		}
		newer = &v
		return nil
	})
	if err == nil && newer != nil {
		err = show(registry.Profile{})
	}
	return more, err
}
