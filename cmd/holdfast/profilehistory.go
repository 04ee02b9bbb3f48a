package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) collectionHistoryCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history NAME", Short: "List the versions of a collection's profile, newest first, and what each changed", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			l := lister[profileChange]{none: "no versions", row: profileChangeRow, columns: []column{
				{name: "version", right: true}, {name: "since"}, {name: "by", flex: true}, {name: "what changed", flex: true},
			}}
			return l.print(a, func(yield func(profileChange) error) (bool, error) {
				return eachProfileChange(cmd.Context(), c, args[0], limit, yield)
			})
		},
	}
	limitFlag(cmd, &limit)
	return a.clientFlags(cmd)
}

// profileChange is a version of a profile with what it changed.
type profileChange struct {
	registry.ProfileVersion
	Changes []string `json:"changes"`
}

func profileChangeRow(c profileChange) []string {
	by := c.Actor
	if by == "" {
		by = "-"
	}
	return []string{fmt.Sprint(c.Version), timeText(c.CreatedAt), by, strings.Join(c.Changes, "; ")}
}

// eachProfileChange yields the versions of a profile, newest first; each is compared with the one below it.
func eachProfileChange(ctx context.Context, c *client.Client, name string, limit int, yield func(profileChange) error) (more bool, err error) {
	var newer *registry.ProfileVersion
	show := func(older registry.Profile) error {
		changes, err := profile.Changes(older, newer.Profile)
		if err != nil {
			return err
		}
		if newer.Version == 1 {
			changes = []string{"created"}
		}
		return yield(profileChange{*newer, changes})
	}
	page := func(ctx context.Context, after string, size int) (registry.Page[registry.ProfileVersion], error) {
		before, _ := strconv.Atoi(after) // "" is 0: from the newest on
		rows, err := c.ProfileVersions(ctx, name, before, size)
		return full(rows, err, size, func(v registry.ProfileVersion) string { return strconv.Itoa(v.Version) })
	}
	shown := 0
	more, err = eachRow(ctx, 0, page, func(v registry.ProfileVersion) error {
		if newer != nil {
			if err := show(v.Profile); err != nil {
				return err
			}
			if shown++; shown == limit {
				newer = nil
				return errEnough
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
