package item

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// act is an act on items, selected by ids or by a query.
type act struct {
	registry.Command
	match string
	yes   bool
}

// ActCommand returns the command of an act. flags may add flags of its own; it may be nil.
func ActCommand(a *cli.App, verb, short string, what registry.Act, flags func(cmd *cobra.Command, c *registry.Command)) *cobra.Command {
	ask := act{Command: registry.Command{Act: what}}
	cmd := &cobra.Command{
		Use: verb + " ID... | - | --match QUERY", Short: short,
		Long: "Name items by their ids; - reads ids from standard input. --match QUERY selects\n" +
			"all items that match: the command counts them by state and asks. Without a\n" +
			"terminal it needs --yes, or ends with exit code 7; 10 means that nothing matched.\n" +
			"An item of its own then performs the act in the background. Its id is printed:\n" +
			"item show ID shows its progress, item cancel ID stops it.\n\n" + QueryHelp(),
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return perform(cmd.Context(), a, args, ask) },
	}
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "the reason, recorded with the act")
	cmd.Flags().StringVar(&ask.match, "match", "", "all items that match this `QUERY`, instead of ids")
	cmd.Flags().BoolVar(&ask.yes, "yes", false, "skip the question")
	cmd.Flags().BoolVar(&ask.DryRun, "dry-run", false, "change nothing: print each item's state after the act, or its consequences")
	if flags != nil {
		flags(cmd, &ask.Command)
	}
	return a.ClientFlags(cmd)
}

func perform(ctx context.Context, a *cli.App, args []string, ask act) error {
	switch {
	case ask.match != "" && ask.Act == registry.ActAbandon:
		return exit.Usagef("%s; name the items", registry.AbandonOneByOne)
	case ask.match != "" && ask.DryRun:
		return exit.Usagef("--dry-run takes ids; without --yes, --match shows what it would act on")
	case ask.match != "" && len(args) > 0:
		return exit.Usagef("ids and --match exclude each other")
	case ask.match == "" && len(args) == 0:
		return exit.Usagef("ID... or --match is missing")
	case ask.match != "":
		return actOnMatches(ctx, a, ask)
	}
	ask.Confirmed = ask.yes
	return Apply(ctx, a, args, ask.Command)
}

// actOnMatches shows the matching items by state, asks, and starts a bulk item.
func actOnMatches(ctx context.Context, a *cli.App, ask act) error {
	q, err := (&Filter{}).Query([]string{ask.match})
	if err != nil {
		return err
	}
	if len(q.Terms) == 0 {
		return exit.Usagef("--match is empty, which would select everything")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	n, err := showMatches(ctx, a, c, q)
	if err != nil {
		return err
	}
	if n == 0 {
		return exit.Nothing
	}
	question := fmt.Sprintf("%s %s?", ask.Act, terminal.Plural(n, "item", "items"))
	if err := a.Decide(question, ask.yes); err != nil {
		return err
	}
	it, err := c.Bulk(ctx, wire.BulkRequest{Query: q.String(), CommandRequest: wire.CommandRequest{
		Act: string(ask.Act), From: string(ask.From), Priority: ask.Priority, Reason: ask.Reason, Confirm: true,
	}}, "")
	if err != nil {
		return err
	}
	a.Note("started; `%s` shows its progress, `%s` stops it", a.CommandLine("item show "+it.ID), a.CommandLine("item cancel "+it.ID))
	if a.JSON {
		return a.PrintJSON(it)
	}
	_, err = fmt.Fprintln(a.Out, it.ID)
	return err
}

// showMatches prints the number of matching items by state.
func showMatches(ctx context.Context, a *cli.App, c *client.Client, q registry.Query) (total int64, err error) {
	states, err := c.CountItems(ctx, registry.ItemQuery{Match: q})
	if err != nil {
		return 0, err
	}
	for _, s := range slices.Sorted(maps.Keys(states)) {
		a.Note("%8s %s", registry.CountText(states[s]), s)
		total += states[s]
	}
	if total == 0 {
		a.Note("nothing matches %s", q)
	}
	return total, nil
}

// confirmed performs an act on one item. If the act has consequences, it lists them and asks first.
func confirmed(ctx context.Context, a *cli.App, c *client.Client, command registry.Command) (registry.WorkItem, error) {
	it, err := c.Command(ctx, command)
	p := new(wire.Problem)
	if !errors.As(err, &p) || p.Code != wire.CodeConfirm {
		return it, err
	}
	a.Note("%s of item %s:", command.Act, command.ItemID)
	for _, text := range p.Consequences {
		a.Note("  %s", text)
	}
	if command.DryRun {
		command.Confirmed, command.AgreesTo = true, p.AgreesTo
		return c.Command(ctx, command)
	}
	err = a.Decide(fmt.Sprintf("%s item %s?", command.Act, command.ItemID), false)
	if undecided := new(exit.UndecidedError); p.AgreesTo != "" && errors.As(err, &undecided) {
		undecided.How = fmt.Sprintf("--yes --agrees-to '%s'", p.AgreesTo)
	}
	if err != nil {
		return it, err
	}
	command.Confirmed, command.AgreesTo = true, p.AgreesTo
	return c.Command(ctx, command)
}
