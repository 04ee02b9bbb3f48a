package item

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	grace time.Duration
}

// ActCommand returns the command of an act. flags may add flags of its own; it may be nil.
func ActCommand(a *cli.App, verb, short string, what registry.Act, flags func(cmd *cobra.Command, c *registry.Command)) *cobra.Command {
	ask := act{Command: registry.Command{Act: what}}
	cmd := &cobra.Command{
		Use: verb + " ID... | - | --match QUERY", Short: short,
		Long: "Name items by their ids; - reads ids from standard input. --match QUERY selects\n" +
			"all items that match: the command says how many of each state it changes or\n" +
			"skips, and asks. Without a terminal it needs --yes, or ends with exit code 7; 10\n" +
			"means that nothing matched. --dry-run ends after the counts. An item of its own\n" +
			"then performs the act in the background. Its id is printed: item show ID shows\n" +
			"its progress, item cancel ID stops it. With --grace 30s it waits before it\n" +
			"changes anything; item cancel ID then withdraws it as a whole.\n\n" + QueryHelp(),
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return perform(cmd.Context(), a, args, ask) },
	}
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "the reason, recorded with the act")
	cmd.Flags().StringVar(&ask.match, "match", "", "all items that match this `QUERY`, instead of ids")
	cmd.Flags().BoolVar(&ask.yes, "yes", false, "skip the question")
	cmd.Flags().BoolVar(&ask.DryRun, "dry-run", false, "change nothing: print each item's state after the act, or its consequences; with --match, what of each state would change or be skipped")
	cmd.Flags().DurationVar(&ask.grace, "grace", 0, "with --match: wait so long before the start, to withdraw it; at most 1h")
	if flags != nil {
		flags(cmd, &ask.Command)
	}
	return a.ClientFlags(cmd)
}

func perform(ctx context.Context, a *cli.App, args []string, ask act) error {
	switch {
	case ask.match != "" && ask.Act == registry.ActAbandon:
		return exit.Usagef("%s; name the items", registry.AbandonOneByOne)
	case ask.grace != 0 && ask.match == "":
		return exit.Usagef("--grace is for --match; an act on an id is done at once")
	case ask.grace < 0 || ask.grace > registry.MostGrace*time.Second || ask.grace%time.Second != 0:
		return exit.Usagef("--grace %s: use whole seconds, at most %s", ask.grace, registry.MostGrace*time.Second)
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
	request := wire.BulkRequest{Query: q.String(), GraceSeconds: int(ask.grace / time.Second), CommandRequest: wire.CommandRequest{
		Act: string(ask.Act), From: string(ask.From), Priority: ask.Priority, Reason: ask.Reason, Confirm: true,
	}}
	preview, err := c.PreviewBulk(ctx, request)
	if err != nil {
		return err
	}
	if err := showPreview(a, ask, preview); err != nil {
		return err
	}
	if preview.Matched == 0 {
		a.Note("nothing matches %s", q)
		return exit.Nothing
	}
	if ask.DryRun {
		return nil
	}
	question := fmt.Sprintf("%s %s?", ask.Act, terminal.Plural(preview.Applies, "item", "items"))
	if err := a.Decide(question, ask.yes); err != nil {
		return err
	}
	it, err := c.Bulk(ctx, request, "")
	if err != nil {
		return err
	}
	show, cancel := a.CommandLine("item show "+it.ID), a.CommandLine("item cancel "+it.ID)
	if ask.grace > 0 {
		a.Note("starts in %s; until then `%s` withdraws it, later it stops it; `%s` shows its progress", ask.grace, cancel, show)
	} else {
		a.Note("started; `%s` shows its progress, `%s` stops it", show, cancel)
	}
	if a.JSON {
		return a.PrintJSON(it)
	}
	_, err = fmt.Fprintln(a.Out, it.ID)
	return err
}

// showPreview prints how many items of each state an act would change, and which it would skip and why.
// It is the result of a dry run, and otherwise a note.
func showPreview(a *cli.App, ask act, p registry.BulkPreview) error {
	if ask.DryRun && a.JSON {
		return a.PrintJSON(p)
	}
	for _, part := range p.Parts {
		line := fmt.Sprintf("%8s %s", registry.CountText(part.Count), part.State)
		if part.Skipped != "" {
			line += ": skipped, " + terminal.Clean(part.Skipped)
		}
		if !ask.DryRun {
			a.Note("%s", line)
		} else if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return fmt.Errorf("print the preview: %w", err)
		}
	}
	if ask.DryRun && p.Matched > 0 {
		if _, err := fmt.Fprintf(a.Out, "%s would change %s of %s\n", ask.Act, registry.CountText(p.Applies), terminal.Plural(p.Matched, "item", "items")); err != nil {
			return fmt.Errorf("print the preview: %w", err)
		}
	}
	return nil
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
