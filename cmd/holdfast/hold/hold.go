// Package hold adds, lists and removes holds, which keep items from starting their next step. It
// has the command `holdfast hold`, and the subcommands hold and release of items, batches,
// collections and the queue.
package hold

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast hold`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("hold", "List, add and remove holds, which keep items from starting",
		listCommand(a), addCommand(a), removeCommand(a)))
}

func listCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List holds and their reasons", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			holds, err := c.Holds(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Hold]{None: "nothing is held", Row: holdRow, Columns: []terminal.Column{
				{Name: "scope"}, {Name: "key"}, {Name: "since"}, {Name: "by", Flex: true}, {Name: "reason", Flex: true},
			}}
			return l.Print(a, cli.Whole(holds))
		},
	})
}

func holdRow(h registry.Hold) []string {
	return []string{string(h.Scope), h.Key, terminal.TimeText(h.CreatedAt), h.Actor, h.Reason}
}

// holdName returns a hold's scope and key.
func holdName(scope registry.HoldScope, key string) string {
	return strings.TrimSpace(string(scope) + " " + key)
}

// HeldText returns which hold covers an item, "" for none.
func HeldText(h *registry.Hold) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s), since %s by %s", holdName(h.Scope, h.Key), h.Reason, terminal.TimeText(h.CreatedAt), h.Actor)
}

// scopeFlags adds --scope and --key.
func scopeFlags(cmd *cobra.Command, scope, key *string) {
	names := make([]string, 0, len(registry.HoldScopes()))
	for _, s := range registry.HoldScopes() {
		names = append(names, string(s))
	}
	cmd.Flags().StringVar(scope, "scope", "", "the kind of hold: "+strings.Join(names, ", "))
	cmd.Flags().StringVar(key, "key", "", "the stage, collection, volume, batch, item or worker (its id or host)")
}

func addCommand(a *cli.App) *cobra.Command {
	var h registry.Hold
	cmd := &cobra.Command{
		Use: "add --scope SCOPE [--key KEY] --reason TEXT", Short: "Add a hold: items do not start, or a worker gets no items", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return Add(cmd.Context(), a, h) },
	}
	scopeFlags(cmd, (*string)(&h.Scope), &h.Key)
	cli.ReasonFlag(cmd, &h.Reason)
	return a.ClientFlags(cmd)
}

// Add adds a hold and prints it. A key may be a shortened id.
func Add(ctx context.Context, a *cli.App, h registry.Hold) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if h.Key, err = holdKey(ctx, a, h.Scope, h.Key); err != nil {
		return err
	}
	if err := c.AddHold(ctx, h); err != nil {
		return err
	}
	a.Note("held: %s", holdName(h.Scope, h.Key))
	return nil
}

func removeCommand(a *cli.App) *cobra.Command {
	var scope, key string
	cmd := &cobra.Command{
		Use: "remove --scope SCOPE [--key KEY]", Short: "Remove a hold; items that no other hold covers start", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Remove(cmd.Context(), a, registry.HoldScope(scope), key)
		},
	}
	scopeFlags(cmd, &scope, &key)
	return a.ClientFlags(cmd)
}

// Remove removes a hold and prints it. A key may be a shortened id. It returns registry.ErrNotFound
// if there is no such hold.
func Remove(ctx context.Context, a *cli.App, scope registry.HoldScope, key string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if key, err = holdKey(ctx, a, scope, key); err != nil {
		return err
	}
	if err := c.RemoveHold(ctx, scope, key); err != nil {
		return err
	}
	a.Note("released: %s", holdName(scope, key))
	return nil
}

// holdKey returns the key of a hold, with a shortened id completed.
func holdKey(ctx context.Context, a *cli.App, scope registry.HoldScope, key string) (string, error) {
	if scope != registry.HoldBatch && scope != registry.HoldItem {
		return key, nil
	}
	return a.WholeID(ctx, itemsOf(scope), key)
}

// itemsOf returns the action of the items that a scope covers, "" for any.
func itemsOf(scope registry.HoldScope) registry.Action {
	if scope == registry.HoldBatch {
		return registry.Batch
	}
	return ""
}

// Commands returns the commands hold and release for ids of one scope.
func Commands(a *cli.App, scope registry.HoldScope) []*cobra.Command {
	var reason string
	hold := &cobra.Command{
		Use: "hold ID... --reason TEXT", Short: fmt.Sprintf("Keep each %s from starting its next step (- reads ids from standard input)", scope), Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachHold(cmd.Context(), a, scope, args, "held", func(c *client.Client, id string) error {
				return c.AddHold(cmd.Context(), registry.Hold{Scope: scope, Key: id, Reason: reason})
			})
		},
	}
	cli.ReasonFlag(hold, &reason)
	release := &cobra.Command{
		Use: "release ID...", Short: fmt.Sprintf("Release each %s; it starts if no other hold covers it (- reads ids from standard input)", scope), Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachHold(cmd.Context(), a, scope, args, "released", func(c *client.Client, id string) error {
				return releaseOne(cmd.Context(), c, scope, id)
			})
		},
	}
	return []*cobra.Command{a.ClientFlags(hold), a.ClientFlags(release)}
}

// releaseOne removes the holds on one item or batch alone. In a collection that releases one by
// one, a batch has such a hold of scope item.
func releaseOne(ctx context.Context, c *client.Client, scope registry.HoldScope, id string) error {
	err := c.RemoveHold(ctx, scope, id)
	if scope == registry.HoldBatch {
		single := c.RemoveHold(ctx, registry.HoldItem, id)
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

// eachHold calls do for each id. An error does not stop the others.
func eachHold(ctx context.Context, a *cli.App, scope registry.HoldScope, args []string, done string, do func(*client.Client, string) error) error {
	ids, err := a.IDs(ctx, itemsOf(scope), args)
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	var codes []exit.Code
	for _, id := range ids {
		err := do(c, id)
		codes = append(codes, exit.Of(err))
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			a.Complain(err)
			continue
		}
		a.Note("%s: %s", done, id)
	}
	return exit.Together(codes).Err()
}
