package item

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// ViewCommand returns the command `holdfast view`.
func ViewCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("view", "Save queries of items under names, for yourself or for all",
		viewListCommand(a), viewSaveCommand(a), viewRemoveCommand(a)))
}

func viewListCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List your views, then the shared ones of others", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Views(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.View]{None: "no views; save one with: " + a.CommandLine("view save NAME QUERY"), Row: viewRow, Columns: []terminal.Column{
				{Name: "view"}, {Name: "owner"}, {Name: "shared"}, {Name: "changed", Spare: 1}, {Name: "id", ID: true, Spare: 2}, {Name: "query", Flex: true},
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func viewRow(v registry.View) []string {
	shared := "no"
	if v.Shared {
		shared = "yes"
	}
	return []string{v.Name, v.Owner, shared, terminal.TimeText(v.ChangedAt), v.ID, v.Query}
}

// needsName checks that there is a first argument; the others are a query.
func needsName(cmd *cobra.Command, args []string) error {
	return cli.Needs("NAME")(cmd, args[:min(1, len(args))])
}

func viewSaveCommand(a *cli.App) *cobra.Command {
	var r wire.ViewRequest
	var replace bool
	cmd := &cobra.Command{
		Use: "save NAME [QUERY]", Short: "Save a query under a name", Args: needsName,
		Long: "item list --view NAME and the page of items then list what it selects.\nA name that one of your views has is refused without --replace.\n\n" + QueryHelp(),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := (&Filter{}).Query(args[1:])
			if err != nil {
				return err
			}
			r.Name, r.Query = args[0], q.String()
			c, err := a.Connect()
			if err != nil {
				return err
			}
			v, err := saveView(cmd.Context(), a, c, r, replace)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(v)
			}
			_, err = fmt.Fprintf(a.Out, "%s %s\n", v.ID, terminal.Clean(v.Name))
			return err
		},
	}
	cmd.Flags().BoolVar(&r.Shared, "share", false, "everyone who sees all collections sees the view")
	cmd.Flags().BoolVar(&r.Oldest, "oldest", false, "list the oldest items first")
	cmd.Flags().StringSliceVar(&r.Columns, "columns", nil, "`COLUMNS` of the page, separated by commas (default the usual ones)")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace your view of this name")
	return a.ClientFlags(cmd)
}

// saveView saves a view. With replace, it replaces the caller's view of the name as it is now.
func saveView(ctx context.Context, a *cli.App, c *client.Client, r wire.ViewRequest, replace bool) (registry.View, error) {
	v, err := c.AddView(ctx, r)
	if !errors.Is(err, registry.ErrViewExists) {
		return v, err
	}
	if !replace {
		return v, exit.Fix(err, "to replace it, add --replace")
	}
	me, err := c.OwnToken(ctx)
	if err != nil {
		return v, err
	}
	all, err := c.Views(ctx)
	if err != nil {
		return v, err
	}
	for _, have := range all {
		if have.Owner == me.Name && have.Name == strings.TrimSpace(r.Name) {
			r.Version = have.Version
			a.Note("replaced: %s", terminal.Clean(have.Query))
			return c.EditView(ctx, have.ID, r)
		}
	}
	return c.AddView(ctx, r) // it was removed meanwhile
}

func viewRemoveCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "remove NAME|ID...", Short: "Remove views (as an admin: shared ones of others, too)", Args: cli.Needs("NAME|ID..."),
		RunE: func(cmd *cobra.Command, names []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			codes := make([]exit.Code, 0, len(names))
			for _, name := range names {
				v, err := viewNamed(cmd.Context(), c, name)
				if err == nil {
					err = c.RemoveView(cmd.Context(), v.ID)
				}
				codes = append(codes, exit.Of(err))
				if err != nil {
					a.Complain(err)
					continue
				}
				a.Note("removed: %s; its query was: %s", terminal.Clean(v.Name), terminal.Clean(v.Query))
			}
			return exit.Together(codes).Err()
		},
	})
}

// viewNamed returns a view by its name or id: the caller's own view of the name, else a shared one.
func viewNamed(ctx context.Context, c *client.Client, name string) (registry.View, error) {
	all, err := c.Views(ctx)
	if err != nil {
		return registry.View{}, err
	}
	me, err := c.OwnToken(ctx)
	if err != nil {
		return registry.View{}, err
	}
	var named []registry.View
	for _, v := range all {
		switch {
		case v.ID == name, v.Name == name && v.Owner == me.Name:
			return v, nil
		case v.Name == name:
			named = append(named, v)
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return c.View(ctx, name) // beyond the end of the list; or the service says that there is none
	}
	var ids []string
	for _, v := range named {
		ids = append(ids, v.ID+" of "+v.Owner)
	}
	return registry.View{}, exit.Usagef("several people share a view named %q; use an id: %s", name, strings.Join(ids, ", "))
}
