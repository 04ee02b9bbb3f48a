package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) holdCommand() *cobra.Command {
	return group("hold", "List, add and remove holds, which keep items from starting",
		a.holdListCommand(), a.holdAddCommand(), a.holdRemoveCommand())
}

func (a *app) holdListCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "list", Short: "List holds and their reasons", Args: needs(),
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

// holdName is a hold in a few words.
func holdName(scope registry.HoldScope, key string) string {
	return strings.TrimSpace(string(scope) + " " + key)
}

// heldText says which hold keeps an item from its next step, "" for none.
func heldText(h *registry.Hold) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s), since %s by %s", holdName(h.Scope, h.Key), h.Reason, timeText(h.CreatedAt), h.Actor)
}

// scopeFlags adds what says which items a hold is about.
func scopeFlags(cmd *cobra.Command, scope, key *string) {
	names := make([]string, 0, len(registry.HoldScopes()))
	for _, s := range registry.HoldScopes() {
		names = append(names, string(s))
	}
	cmd.Flags().StringVar(scope, "scope", "", "what is held: "+strings.Join(names, ", "))
	cmd.Flags().StringVar(key, "key", "", "which stage, collection, volume, batch, item or worker (its id or its host)")
}

func (a *app) holdAddCommand() *cobra.Command {
	var h registry.Hold
	cmd := &cobra.Command{
		Use: "add --scope SCOPE [--key KEY] --reason TEXT", Short: "Add a hold: items do not start, or a worker gets none", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.addHold(cmd.Context(), h) },
	}
	scopeFlags(cmd, (*string)(&h.Scope), &h.Key)
	reasonFlag(cmd, &h.Reason)
	return a.clientFlags(cmd)
}

func (a *app) addHold(ctx context.Context, h registry.Hold) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	if h.Key, err = a.holdKey(ctx, h.Scope, h.Key); err != nil {
		return err
	}
	if err := c.AddHold(ctx, h); err != nil {
		return err
	}
	a.note("held: %s", holdName(h.Scope, h.Key))
	return nil
}

func (a *app) holdRemoveCommand() *cobra.Command {
	var scope, key string
	cmd := &cobra.Command{
		Use: "remove --scope SCOPE [--key KEY]", Short: "Remove a hold; items that no other hold covers start", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.removeHold(cmd.Context(), registry.HoldScope(scope), key)
		},
	}
	scopeFlags(cmd, &scope, &key)
	return a.clientFlags(cmd)
}

func (a *app) removeHold(ctx context.Context, scope registry.HoldScope, key string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	if key, err = a.holdKey(ctx, scope, key); err != nil {
		return err
	}
	if err := c.RemoveHold(ctx, scope, key, ""); err != nil {
		return err
	}
	a.note("released: %s", holdName(scope, key))
	return nil
}

// holdKey is the key of a hold, in whole where it is an id.
func (a *app) holdKey(ctx context.Context, scope registry.HoldScope, key string) (string, error) {
	if scope != registry.HoldBatch && scope != registry.HoldItem {
		return key, nil
	}
	return a.wholeID(ctx, itemsOf(scope), key)
}

// itemsOf is the action of the items that a hold of this scope can be on, "" for any.
func itemsOf(scope registry.HoldScope) registry.Action {
	if scope == registry.HoldBatch {
		return registry.Batch
	}
	return ""
}

// holdCommands are hold and release of things of one scope, named by their ids.
func (a *app) holdCommands(scope registry.HoldScope) []*cobra.Command {
	var reason string
	hold := &cobra.Command{
		Use: "hold ID... --reason TEXT", Short: fmt.Sprintf("Keep each %s from starting its next step (- reads ids from standard input)", scope), Args: needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachHold(cmd.Context(), scope, args, "held", func(c *client.Client, id string) error {
				return c.AddHold(cmd.Context(), registry.Hold{Scope: scope, Key: id, Reason: reason})
			})
		},
	}
	reasonFlag(hold, &reason)
	release := &cobra.Command{
		Use: "release ID...", Short: fmt.Sprintf("Let each %s go that no other hold covers (- reads ids from standard input)", scope), Args: needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachHold(cmd.Context(), scope, args, "released", func(c *client.Client, id string) error {
				return releaseOne(cmd.Context(), c, scope, id)
			})
		},
	}
	return []*cobra.Command{a.clientFlags(hold), a.clientFlags(release)}
}

// releaseOne releases the holds that are on one thing alone. A batch of a collection that releases one by one has one of
// scope item.
func releaseOne(ctx context.Context, c *client.Client, scope registry.HoldScope, id string) error {
	err := c.RemoveHold(ctx, scope, id, "")
	if scope == registry.HoldBatch {
		single := c.RemoveHold(ctx, registry.HoldItem, id, "")
		switch {
		case err == nil && errors.Is(single, registry.ErrNotFound):
			return nil
		case errors.Is(err, registry.ErrNotFound):
			return single
		case err == nil:
			return single
		}
	}
	return err
}

// eachHold does the same for several ids. One that cannot be done does not keep the others from it.
func (a *app) eachHold(ctx context.Context, scope registry.HoldScope, args []string, done string, do func(*client.Client, string) error) error {
	ids, err := a.ids(ctx, itemsOf(scope), args)
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	var codes []outcome
	for _, id := range ids {
		err := do(c, id)
		codes = append(codes, outcome(codeOf(err)))
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			a.complain(err)
			continue
		}
		a.note("%s: %s", done, id)
	}
	return asError(together(slices.Clip(codes)))
}

func (a *app) collectionHoldCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "hold NAME --reason TEXT", Short: "Hold a collection: its batches and jobs do not start their next step", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.addHold(cmd.Context(), registry.Hold{Scope: registry.HoldCollection, Key: args[0], Reason: reason})
		},
	}
	reasonFlag(cmd, &reason)
	return a.clientFlags(cmd)
}

func (a *app) collectionReleaseCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "release NAME", Short: "Release a held collection; one with release_one_by_one then holds each batch and job by itself", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.removeHold(cmd.Context(), registry.HoldCollection, args[0])
		},
	})
}
