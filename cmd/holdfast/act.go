package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// act is an act as it is asked on the command line: of items by their ids, or of all that match a query.
type act struct {
	registry.Command
	match string
	yes   bool
}

// actCommand is the command of an act. flags may add its own.
func (a *app) actCommand(verb, short string, what registry.Act, flags func(cmd *cobra.Command, c *registry.Command)) *cobra.Command {
	ask := act{Command: registry.Command{Act: what}}
	cmd := &cobra.Command{
		Use: verb + " ID... | - | --match QUERY", Short: short,
		Long: "Name items by their ids; - reads ids from standard input. --match QUERY stands\n" +
			"for all items that match: the command counts them by state and asks (--yes\n" +
			"answers, without a terminal it is needed, exit code 7; 10 when nothing matches).\n" +
			"Then an item of its own carries the act out in the background. Its id is\n" +
			"printed: item show ID tells how far it is, item cancel ID stops it.\n\n" + queryHelp(),
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.act(cmd.Context(), args, ask) },
	}
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "the reason, recorded with the act")
	cmd.Flags().StringVar(&ask.match, "match", "", "all items that match this `QUERY`, instead of ids")
	cmd.Flags().BoolVar(&ask.yes, "yes", false, "do not ask for confirmation")
	if flags != nil {
		flags(cmd, &ask.Command)
	}
	return a.clientFlags(cmd)
}

func (a *app) act(ctx context.Context, args []string, ask act) error {
	switch {
	case ask.match != "" && ask.Act == registry.ActAbandon:
		return &usageError{errors.New(registry.AbandonOneByOne + "; name the items")}
	case ask.match != "" && len(args) > 0:
		return &usageError{errors.New("ids and --match exclude each other")}
	case ask.match == "" && len(args) == 0:
		return &usageError{errors.New("ID... or --match is missing")}
	case ask.match != "":
		return a.actOnMatches(ctx, ask)
	}
	ask.Confirmed = ask.yes
	return a.command(ctx, args, ask.Command)
}

// actOnMatches shows what matches, asks, and begins the act.
func (a *app) actOnMatches(ctx context.Context, ask act) error {
	q, err := (&filter{}).query([]string{ask.match})
	if err != nil {
		return err
	}
	if len(q.Terms) == 0 {
		return &usageError{errors.New("--match is empty, which would mean everything")}
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	n, err := a.showMatches(ctx, c, q)
	if err != nil {
		return err
	}
	if n == 0 {
		return exitNothing
	}
	question := fmt.Sprintf("%s %s?", ask.Act, plural(n, "item", "items"))
	if err := a.decide(question, ask.yes); err != nil {
		return err
	}
	it, err := c.Bulk(ctx, wire.BulkRequest{Query: q.String(), CommandRequest: wire.CommandRequest{
		Act: string(ask.Act), From: string(ask.From), Priority: ask.Priority, Reason: ask.Reason, Confirm: true,
	}}, "")
	if err != nil {
		return err
	}
	a.note("begun; see how far it is with `%s`, stop it with `%s`", a.commandLine("item show "+it.ID), a.commandLine("item cancel "+it.ID))
	if a.json {
		return a.printJSON(it)
	}
	_, err = fmt.Fprintln(a.out, it.ID)
	return err
}

// showMatches says how many items match, by state.
func (a *app) showMatches(ctx context.Context, c *client.Client, q registry.Query) (total int64, err error) {
	states, err := c.CountItems(ctx, registry.ItemQuery{Match: q})
	if err != nil {
		return 0, err
	}
	for _, s := range slices.Sorted(maps.Keys(states)) {
		a.note("%8s %s", registry.CountText(states[s]), s)
		total += states[s]
	}
	if total == 0 {
		a.note("nothing matches %s", q)
	}
	return total, nil
}

// undecidedError says that somebody has to say yes.
type undecidedError struct {
	question string
	how      string // what says yes beforehand; "" is --yes
}

// Error says how.
func (e *undecidedError) Error() string {
	return e.question + " Not confirmed; nothing was changed. Run it on a terminal to be asked, or add " + cmp.Or(e.how, "--yes")
}

// decide returns nil when the answer to a question is yes, because it was given beforehand or at the terminal.
func (a *app) decide(question string, yes bool) error {
	if yes {
		return nil
	}
	in, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return &undecidedError{question: question}
	}
	_, _ = fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &undecidedError{question: question}
	}
	return nil
}

// confirmed asks an act of one item, and asks back when it has consequences.
func (a *app) confirmed(ctx context.Context, c *client.Client, command registry.Command) (registry.WorkItem, error) {
	it, err := c.Command(ctx, command)
	p := new(wire.Problem)
	if !errors.As(err, &p) || p.Code != wire.CodeConfirm {
		return it, err
	}
	a.note("%s of item %s:", command.Act, command.ItemID)
	for _, text := range p.Consequences {
		a.note("  %s", text)
	}
	err = a.decide(fmt.Sprintf("%s item %s?", command.Act, command.ItemID), false)
	if undecided := new(undecidedError); p.AgreesTo != "" && errors.As(err, &undecided) {
		undecided.how = fmt.Sprintf("--yes --agrees-to '%s'", p.AgreesTo)
	}
	if err != nil {
		return it, err
	}
	command.Confirmed, command.AgreesTo = true, p.AgreesTo
	return c.Command(ctx, command)
}

func (a *app) cleanupCommand() *cobra.Command {
	var older time.Duration
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use: "cleanup [ID...]", Short: "Remove completed and deleted batches with their jobs from the queue; events and objects stay",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			command := registry.Command{Act: registry.ActPurge, Reason: reason}
			if len(args) > 0 {
				return a.command(cmd.Context(), args, command)
			}
			ids, err := a.purgeable(cmd.Context(), older)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				a.note("nothing is completed or deleted for that long")
				return exitNothing
			}
			if err := a.decide(fmt.Sprintf("remove %s from the queue?", plural(int64(len(ids)), "item", "items")), yes); err != nil {
				return err
			}
			return a.command(cmd.Context(), ids, command)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "without ids: do not ask for confirmation")
	cmd.Flags().Func("older", "without ids: all that ended longer ago than this `AGE`, such as 12h or 30d", func(text string) (err error) {
		if older, err = registry.Age(strings.ToLower(text)); err != nil {
			return errors.New("it must be a whole number and s, m, h, d or w, such as 30d")
		}
		return nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	return a.clientFlags(cmd)
}

// purgeable lists the batches, and the items of admin acts, that are done with and have been for a while, and says how many of each
// there are. Batches come last, since what told of them would go with them.
func (a *app) purgeable(ctx context.Context, older time.Duration) (ids []string, err error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(-older)
	queries := []registry.ItemQuery{
		{Action: registry.Bulk, Status: registry.Completed},
		{Action: registry.Tidy, Status: registry.Completed},
		{Action: registry.DeliverMessage, Status: registry.Completed},
	}
	for _, action := range registry.ObjectActions() {
		queries = append(queries, registry.ItemQuery{Action: action, Status: registry.Completed})
	}
	queries = append(queries, registry.ItemQuery{Action: registry.Batch, Status: registry.Completed}, registry.ItemQuery{Action: registry.Batch, Status: registry.Deleted})
	for _, q := range queries {
		before := len(ids)
		_, err := eachRow(ctx, 0, func(ctx context.Context, after string, limit int) (registry.Page[registry.WorkItem], error) {
			q.After, q.Limit = after, limit
			return c.Items(ctx, q)
		}, func(it registry.WorkItem) error {
			if it.FinishedAt != nil && !it.FinishedAt.After(until) {
				ids = append(ids, it.ID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if n := len(ids) - before; n > 0 {
			a.note("%8s %s %s", registry.CountText(int64(n)), q.Status, kindText(q.Action))
		}
	}
	return ids, nil
}

// kindText names items of an action, for people.
func kindText(a registry.Action) string {
	switch a {
	case registry.Batch:
		return "batches"
	case registry.Bulk:
		return "acts on many items"
	case registry.Tidy:
		return "tidyings"
	case registry.DeliverMessage:
		return "mails and messages"
	default:
		return "items that " + string(a) + " objects"
	}
}
