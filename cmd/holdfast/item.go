package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (a *app) itemCommand() *cobra.Command {
	below := append([]*cobra.Command{a.itemListCommand(), a.itemShowCommand(), a.itemHistoryCommand(), a.itemWhyCommand(), a.itemFailuresCommand(), a.redeliverCommand()}, a.steering()...)
	return group("item", "List, show and steer items: the jobs and batches that pass through the pipeline",
		append(below, a.holdCommands(registry.HoldItem)...)...)
}

func (a *app) itemListCommand() *cobra.Command {
	var q registry.ItemQuery
	var f filter
	const short = "List items, newest first; the jobs of a batch in row order"
	cmd := &cobra.Command{
		Use: "list [QUERY]", Short: short, Long: queryHelp(), Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Match, err = f.query(args); err != nil {
				return err
			}
			return a.listItems(cmd.Context(), q, "no items")
		},
	}
	itemFilters(cmd, &f, &q.Limit)
	f.flag(cmd, "batch", "batch", "only the jobs of this batch")
	f.flag(cmd, "action", "action", "only items of this action: ingest, batch, ...")
	f.flag(cmd, "stage", "stage", "only items at this stage")
	return a.clientFlags(cmd)
}

func itemFilters(cmd *cobra.Command, f *filter, limit *int) {
	f.flag(cmd, "collection", "collection", "only objects of this collection")
	f.flag(cmd, "status", "status", "only those of this status: pending, running, completed, failed, ...")
	f.flag(cmd, "text", "", "only those with this in the name or the note")
	limitFlag(cmd, limit)
}

// listItems prints items of one kind or, when the query names no action, of all with their action.
func (a *app) listItems(ctx context.Context, q registry.ItemQuery, none string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	l := lister[registry.WorkItem]{none: none, row: itemRow, columns: itemColumns()}
	if q.Action == registry.Batch {
		l.row, l.columns = batchRow, batchColumns()
	}
	return l.print(a, func(yield func(registry.WorkItem) error) (bool, error) {
		return eachRow(ctx, q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.WorkItem], error) {
			q.After, q.Limit = after, limit
			return c.Items(ctx, q)
		}, yield)
	})
}

func itemColumns() []column {
	return []column{
		{name: "id", id: true},
		{name: "action", spare: 1},
		{name: "state"},
		{name: "collection", spare: 2},
		{name: "size", right: true, spare: 3},
		{name: "updated", spare: 4},
		{name: "name", flex: true},
		{name: "note", flex: true, below: 2},
	}
}

func batchColumns() []column {
	return []column{
		{name: "id", id: true},
		{name: "state"},
		{name: "collection", spare: 1},
		{name: "updated", spare: 2},
		{name: "name", flex: true},
		{name: "note", flex: true, below: 2},
	}
}

func itemRow(it registry.WorkItem) []string {
	size := ""
	if it.Action != registry.Batch && it.Action != registry.Bulk { // whose jobs have the sizes
		size = sizeText(it.SizeBytes)
	}
	return []string{
		it.ID, string(it.Action), it.StateText(time.Now()), it.Collection, size, timeText(it.UpdatedAt), it.Name, noteText(it),
	}
}

func batchRow(it registry.WorkItem) []string {
	return []string{it.ID, it.StateText(time.Now()), it.Collection, timeText(it.UpdatedAt), it.Heading(), noteText(it)}
}

// noteText is what there is to know of an item in one column: which hold stops it, else its note.
func noteText(it registry.WorkItem) string {
	if it.HeldBy != nil {
		return "held: " + heldText(it.HeldBy)
	}
	return classed(it.Note, it.ErrorClass)
}

func (a *app) itemShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show an item and its attempts", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showItem(cmd.Context(), args[0]) },
	}
	return a.clientFlags(a.takesIDs("", cmd))
}

func (a *app) showItem(ctx context.Context, id string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	it, err := c.WholeItem(ctx, id)
	if err != nil {
		return err
	}
	attempts, err := c.Attempts(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(it)
	}
	f := itemFacts(it.WorkItem)
	f.add("resume point", it.ResumePoint)
	for _, d := range it.Deliveries {
		f.add("told", d.Text())
	}
	if it.Tries > 0 {
		f.add("tries", triesText(it.WorkItem))
	}
	f.add("attempts", registry.CountText(it.Attempt))
	if err := f.write(a.out); err != nil || len(attempts) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	l := lister[registry.Attempt]{row: attemptRow, columns: []column{
		{name: "attempt", right: true}, {name: "stage"}, {name: "started"}, {name: "ended", spare: 1}, {name: "outcome"}, {name: "worker", spare: 2}, {name: "error", below: 20}, // which is read here
	}}
	return l.print(a, whole(attempts))
}

// triesText says how often an item's step has failed on the system.
func triesText(it registry.WorkItem) string {
	text := fmt.Sprintf("%d failed at %s", it.Tries, it.Stage)
	if it.NextTry != nil && it.NextTry.Of > 0 {
		text += fmt.Sprintf(", of %d", it.NextTry.Of)
	}
	return text
}

func attemptRow(t registry.Attempt) []string {
	ended := ""
	if t.FinishedAt != nil {
		ended = timeText(*t.FinishedAt)
	}
	return []string{strconv.FormatInt(t.N, 10), string(t.Stage), timeText(t.StartedAt), ended, string(t.Outcome), t.Worker, t.Error}
}

// itemFacts is what there is to say of a batch and of a job alike.
func itemFacts(it registry.WorkItem) *facts {
	spec := specOf(it)
	f := &facts{}
	f.add("id", it.ID)
	f.add("name", it.Name)
	f.add("state", fmt.Sprintf("%s (%s, %s)", it.StateText(time.Now()), it.Stage, it.Status))
	f.add("outcome", it.OutcomeText())
	if u, ok := it.Untold(); ok {
		f.add("given up", u.Text())
	}
	f.add("held by", heldText(it.HeldBy))
	if it.ErrorClass == "" {
		f.add("note", it.Note)
	} else {
		f.add("error", classed(it.Note, it.ErrorClass))
	}
	f.add("ark", arkOf(it))
	if object, ok := registry.ObjectSpecIn(it.Spec); ok {
		f.add("asked", object.Text())
	}
	if message, ok := registry.DeliverySpecIn(it.Spec); ok && it.Action == registry.DeliverMessage {
		f.add("tells", message.Text())
	}
	f.add("batch", it.ParentID)
	f.add("graph", it.GraphID)
	f.add("in the batch", registry.PlaceText(it.Row, it.Line))
	if spec.Repeats != nil {
		f.add("repeats", spec.Repeats.String()+", which says the same")
	}
	f.add("collection", it.Collection)
	if spec.ProfileVersion > 0 {
		f.add("profile", fmt.Sprintf("version %d", spec.ProfileVersion))
	}
	f.add("payload", strings.TrimSpace(string(spec.Type)+" "+spec.URL))
	f.add("title", spec.Title)
	f.add("creator", spec.Creator)
	f.add("date", spec.Date)
	f.add("local ids", strings.Join(spec.LocalIDs, "; "))
	f.add("submitter", spec.Submitter)
	f.add("priority", strconv.Itoa(it.Priority))
	switch it.Action {
	case registry.Batch: // whose jobs have the sizes
	case registry.Bulk:
		addBulk(f, it)
	default:
		f.add("size", exactSize(it.SizeBytes))
		f.add("files", registry.CountText(it.Files))
	}
	f.add("created", timeText(it.CreatedAt))
	f.add("updated", timeText(it.UpdatedAt))
	if it.FinishedAt != nil {
		f.add("finished", timeText(*it.FinishedAt))
	}
	acts := make([]string, len(it.AllowedActs))
	for i, act := range it.AllowedActs {
		acts[i] = string(act)
	}
	f.add("allowed acts", strings.Join(acts, ", "))
	return f
}

// addBulk adds how far an act on many items is, and what was refused.
func addBulk(f *facts, it registry.WorkItem) {
	f.add("asked", bulkText(it.Spec))
	var p registry.BulkProgress
	_ = json.Unmarshal(it.Results[registry.ResultBulk], &p) // before it has begun there is none
	f.add("done", plural(p.Applied, "item", "items"))
	f.add("refused", plural(p.Refused, "item", "items"))
	for _, text := range p.Refusals {
		f.add("", text)
	}
	if more := p.Refused - int64(len(p.Refusals)); more > 0 && len(p.Refusals) > 0 {
		f.add("", fmt.Sprintf("and %s more", registry.CountText(more)))
	}
}

func (a *app) itemHistoryCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history ID", Short: "List an item's events, oldest first", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			l := lister[registry.Event]{none: "nothing yet", row: eventRow, columns: []column{
				{name: "time"}, {name: "event"}, {name: "attempt", right: true}, {name: "by", spare: 1}, {name: "what", below: 3},
			}}
			return l.print(a, func(yield func(registry.Event) error) (bool, error) {
				return eachRow(cmd.Context(), limit, historyPage(c, args[0]), yield)
			})
		},
	}
	limitFlag(cmd, &limit)
	return a.clientFlags(a.takesIDs("", cmd))
}

func eventRow(e registry.Event) []string {
	attempt := ""
	if e.Attempt > 0 {
		attempt = strconv.FormatInt(e.Attempt, 10)
	}
	return []string{timeText(e.At), e.Type, attempt, e.Actor, detailsText(e.Data)}
}

// detailsText writes what an event carries as names and values, in the order of the names.
func detailsText(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw)
	}
	parts := make([]string, 0, len(fields))
	for name, value := range fields {
		text := string(value)
		if s := ""; json.Unmarshal(value, &s) == nil {
			text = s
		} else if list := []string(nil); json.Unmarshal(value, &list) == nil {
			text = strings.Join(list, "; ")
		}
		if asked := askedText(value); name == "spec" && asked != "" {
			name, text = "asked", asked
		}
		if text != "" {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+": "+text)
		}
	}
	return strings.Join(sorted(parts), ", ")
}

// askedText says what an item that came of an act was asked to do, "" when raw is no such spec.
func askedText(raw json.RawMessage) string {
	if object, ok := registry.ObjectSpecIn(raw); ok {
		return object.Text()
	}
	return bulkText(raw)
}

// bulkText says what an act on many items was asked to do, "" when raw is none.
func bulkText(raw json.RawMessage) string {
	var b registry.BulkSpec
	if json.Unmarshal(raw, &b) != nil || b.Act == "" {
		return ""
	}
	text := fmt.Sprintf("%s (%s)", b.Title(), plural(b.Matched, "item", "items"))
	if b.Reason != "" {
		text += ", reason: " + b.Reason
	}
	return text
}

func (a *app) itemWhyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "why ID", Short: "Say why an item is waiting", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			w, err := c.Why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(w)
			}
			var f facts
			f.add("item", w.ItemID)
			f.add("reason", string(w.Reason))
			f.add("why", w.Sentence)
			f.add("by", w.Actor)
			f.add("since", timeText(w.Since))
			f.add("what helps", strings.TrimSpace(w.Act))
			if w.Reason == registry.ReasonHeld {
				f.add("see", a.commandLine("hold list"))
			}
			return f.write(a.out)
		},
	}
	return a.clientFlags(a.takesIDs("", cmd))
}

// steering are the commands that ask acts of items.
func (a *app) steering() []*cobra.Command {
	return []*cobra.Command{
		a.actCommand("requeue", "Send failed or cancelled items back to work", registry.ActRequeue, func(cmd *cobra.Command, c *registry.Command) {
			cmd.Flags().StringVar((*string)(&c.From), "from", "", "the stage to start from (default where it failed)")
		}),
		a.actCommand("retry", "Try items at once that wait for their next try", registry.ActRetryNow, nil),
		a.actCommand("cancel", "Stop items, also while they run; they may be requeued", registry.ActCancel, nil),
		a.actCommand("abort", "End items for good, and what waits for their success", registry.ActAbort, nil),
		a.actCommand("delete", "Give up items that failed or are held; what was stored stays", registry.ActDelete, nil),
		a.actCommand("give-up", "Give up telling the receiver of jobs whose objects are preserved: they complete, not told", registry.ActGiveUp, nil),
		a.actCommand("abandon", "Ask for the announced version of failed jobs to be given up, or agree to what another admin asked", registry.ActAbandon, func(cmd *cobra.Command, c *registry.Command) {
			cmd.Use, cmd.Long = "abandon ID... | -", ""
			_ = cmd.Flags().MarkHidden("match") // who uses it is told why it is not there
			cmd.Flags().StringVar(&c.AgreesTo, "agrees-to", "", "with --yes: approve this `REQUEST` of another admin, as the command showed it")
		}),
		a.actCommand("priority", "Change when items have their turn", registry.ActPriority, func(cmd *cobra.Command, c *registry.Command) {
			cmd.Flags().Func("to", "the new priority `N`, lower first; below 0 goes before everything else", func(text string) error {
				n, err := strconv.Atoi(text)
				if err != nil {
					return errors.New("it must be a whole number")
				}
				c.Priority = &n
				return nil
			})
			cmd.PreRunE = func(*cobra.Command, []string) error {
				if c.Priority == nil {
					return usage("--to N is missing: the new priority, lower first")
				}
				return nil
			}
		}),
	}
}

// command asks the same act of several items. One that refuses does not keep the others from it.
func (a *app) command(ctx context.Context, args []string, command registry.Command) error {
	ids, err := a.ids(ctx, "", args)
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	codes := make([]outcome, 0, len(ids))
	for _, id := range ids {
		command.ItemID = id
		it, err := a.confirmed(ctx, c, command)
		codes = append(codes, outcome(codeOf(err)))
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			if !as[*wire.Problem](err) && !as[*undecidedError](err) { // which name the act and the item themselves
				err = fmt.Errorf("%s %s: %w", command.Act, id, err)
			}
			a.complain(err)
			continue
		case a.json:
			err = a.printJSON(it)
		default:
			state := string(it.State)
			if command.Act == registry.ActPurge {
				state = "removed"
			}
			_, err = fmt.Fprintf(a.out, "%s %s\n", it.ID, state)
			if it.Action == registry.Batch {
				a.reached(it, command.Act)
			}
			if command.Act == registry.ActAbandon && it.Status == registry.Failed {
				a.note("asked for; another admin agrees with: %s", a.commandLine("item abandon "+it.ID))
			}
		}
		if err != nil {
			return err
		}
	}
	return asError(together(codes))
}

// reached says what an act on a batch did not do to its jobs, and what does it.
func (a *app) reached(batch registry.WorkItem, act registry.Act) {
	switch {
	case act == registry.ActPriority && batch.Stage == registry.Expand:
		a.note("the jobs that the batch is still to make get this priority; for those that there are: %s", a.commandLine(fmt.Sprintf("item priority --match batch:%s --to %d", batch.ID, batch.Priority)))
	case act == registry.ActPriority:
		a.note("this is the priority of the batch's report, and not of its jobs; for these: %s", a.commandLine(fmt.Sprintf("item priority --match batch:%s --to %d", batch.ID, batch.Priority)))
	}
}

// ids returns the ids that are given, in whole; - stands for those on standard input, one a word. They are of batches only when
// action says so. One that means nothing, or several items, keeps all of them from being used.
func (a *app) ids(ctx context.Context, action registry.Action, args []string) ([]string, error) {
	var ids []string
	for _, arg := range args {
		if arg != "-" {
			ids = append(ids, arg)
			continue
		}
		words := bufio.NewScanner(a.in)
		words.Split(bufio.ScanWords)
		for words.Scan() {
			ids = append(ids, words.Text())
		}
		if err := words.Err(); err != nil {
			return nil, fmt.Errorf("read ids: %w", err)
		}
	}
	switch {
	case len(ids) == 0:
		return nil, usage("no ids were given")
	case slices.Contains(ids, ""):
		return nil, usage("an id is empty")
	}
	for i, id := range ids {
		whole, err := a.wholeID(ctx, action, id)
		if err != nil {
			return nil, err
		}
		ids[i] = whole
	}
	return ids, nil
}
