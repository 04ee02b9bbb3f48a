package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
)

func (a *app) collectionCommand() *cobra.Command {
	return group("collection", "List and show collections", a.collectionListCommand(), a.collectionShowCommand())
}

func (a *app) collectionListCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "list", Short: "List collections", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.Collections(cmd.Context())
			if err != nil {
				return err
			}
			l := lister[registry.Collection]{none: "no collections", row: collectionRow, columns: []column{
				{name: "collection"}, {name: "name", flex: true}, {name: "owner"}, {name: "created"},
			}}
			return l.print(a, whole(all))
		},
	})
}

func collectionRow(c registry.Collection) []string {
	return []string{c.Mnemonic, c.Profile.Name, c.Profile.Owner, timeText(c.CreatedAt)}
}

func (a *app) collectionShowCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "show NAME", Short: "Show a collection and its profile", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			it, err := c.Collection(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(it)
			}
			var f facts
			f.add("collection", it.Mnemonic)
			f.add("name", it.Profile.Name)
			f.add("owner", it.Profile.Owner)
			f.add("member of", strings.Join(it.Profile.Collections, ", "))
			f.add("NOID template", it.Profile.NOIDTemplate)
			f.add("inventory digest", it.Profile.Digests())
			if it.Profile.Priority != nil {
				f.add("priority", strconv.Itoa(*it.Profile.Priority))
			}
			f.add("created", timeText(it.CreatedAt))
			return f.write(a.out)
		},
	})
}

func (a *app) holdCommand() *cobra.Command {
	return group("hold", "List, add and remove holds, which keep items from starting",
		a.holdListCommand(), a.holdAddCommand(), a.holdRemoveCommand())
}

func (a *app) holdListCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "list", Short: "List what is held, and why", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			holds, err := c.Holds(cmd.Context())
			if err != nil {
				return err
			}
			l := lister[registry.Hold]{none: "nothing is held", row: holdRow, columns: []column{
				{name: "scope"}, {name: "key"}, {name: "since"}, {name: "by", flex: true}, {name: "reason", flex: true},
			}}
			return l.print(a, whole(holds))
		},
	})
}

func holdRow(h registry.Hold) []string {
	return []string{string(h.Scope), h.Key, timeText(h.CreatedAt), h.Actor, h.Reason}
}

// scopeFlags adds what says which items a hold is about.
func scopeFlags(cmd *cobra.Command, scope, key *string) {
	cmd.Flags().StringVar(scope, "scope", "", "what is held: all, stage, collection, batch or item")
	cmd.Flags().StringVar(key, "key", "", "which stage, collection, batch or item")
}

func (a *app) holdAddCommand() *cobra.Command {
	var h registry.Hold
	cmd := &cobra.Command{
		Use: "add --scope SCOPE [--key KEY] --reason TEXT", Short: "Keep items from starting", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.addHold(cmd.Context(), h) },
	}
	scopeFlags(cmd, (*string)(&h.Scope), &h.Key)
	cmd.Flags().StringVar(&h.Reason, "reason", "", "why; whoever finds an item held is shown it")
	return a.clientFlags(cmd)
}

func (a *app) addHold(ctx context.Context, h registry.Hold) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	if err := c.AddHold(ctx, h); err != nil {
		return err
	}
	a.note("held: %s", strings.TrimSpace(string(h.Scope)+" "+h.Key))
	return nil
}

func (a *app) holdRemoveCommand() *cobra.Command {
	var scope, key string
	cmd := &cobra.Command{
		Use: "remove --scope SCOPE [--key KEY]", Short: "Let items go that only this hold keeps", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.RemoveHold(cmd.Context(), registry.HoldScope(scope), key, ""); err != nil {
				return err
			}
			a.note("released: %s", strings.TrimSpace(scope+" "+key))
			return nil
		},
	}
	scopeFlags(cmd, &scope, &key)
	return a.clientFlags(cmd)
}
