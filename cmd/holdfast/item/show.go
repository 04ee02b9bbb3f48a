package item

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/hold"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
)

// ShowCommand returns the command that shows an item of an action; "" is any.
func ShowCommand(a *cli.App, action registry.Action, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: short, Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return showItem(cmd.Context(), a, args[0]) },
	}
	return a.ClientFlags(a.TakesIDs(action, cmd))
}

func showItem(ctx context.Context, a *cli.App, id string) error {
	c, err := a.Connect()
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
	var task shownTask
	if it.Action == registry.Task {
		if task, err = readTask(ctx, c, it, attempts); err != nil {
			return err
		}
	}
	switch {
	case a.JSON && it.Action == registry.Task:
		return a.PrintJSON(task)
	case a.JSON:
		return a.PrintJSON(it)
	}
	f := Facts(it.WorkItem)
	f.Add("resume point", it.ResumePoint)
	if it.Action == registry.Task {
		if err := task.add(f); err != nil {
			return err
		}
	}
	for _, s := range it.Steps {
		f.Add("outside step", stepText(s, time.Now()))
	}
	if len(it.Steps) > 0 {
		why, err := whyWaits(ctx, c, it.WorkItem)
		if err != nil {
			return err
		}
		addWhy(f, why)
	}
	for _, d := range it.Deliveries {
		f.Add("delivery", d.Text())
	}
	if it.Tries > 0 {
		f.Add("tries", triesText(it.WorkItem))
	}
	f.Add("attempts", registry.CountText(it.Attempt))
	if err := f.Write(a.Out); err != nil || len(attempts) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	l := cli.Lister[registry.Attempt]{Row: attemptRow, Columns: []terminal.Column{
		{Name: "attempt", Right: true}, {Name: "stage"}, {Name: "started"}, {Name: "ended", Spare: 1}, {Name: "outcome", Meaning: terminal.ConditionMeaning}, {Name: "worker", Spare: 2}, {Name: "error", Below: 20}, // people read errors here
	}}
	if it.Action == registry.Task {
		l.Columns = append(l.Columns, terminal.Column{Name: "progress", Flex: true})
		l.Row = func(t registry.Attempt) []string { return append(attemptRow(t), graphview.ProgressText(t.Progress)) }
	}
	if err := l.Print(a, cli.Whole(attempts)); err != nil || len(task.Log) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	log := cli.Lister[registry.LogLine]{Row: logRow, Columns: logColumns}
	return log.Print(a, cli.Whole(task.Log))
}

// triesText returns the number of counted failures at the item's stage.
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
		ended = terminal.TimeText(*t.FinishedAt)
	}
	return []string{strconv.FormatInt(t.N, 10), string(t.Stage), terminal.TimeText(t.StartedAt), ended, string(t.Outcome), t.Worker, t.Error}
}

// Facts returns the facts that batches and jobs have in common.
func Facts(it registry.WorkItem) *terminal.Facts {
	spec := progress.SpecOf(it)
	f := &terminal.Facts{}
	f.Add("id", it.ID)
	f.Add("name", it.Name)
	f.AddAs(terminal.StateMeaning(it.StateText(time.Now())), "state", fmt.Sprintf("%s (%s, %s)", it.StateText(time.Now()), it.Stage, it.Status))
	f.Add("outcome", it.OutcomeText())
	if u, ok := it.Untold(); ok {
		f.Add("undelivered", u.Text())
	}
	f.Add("held by", hold.HeldText(it.HeldBy))
	if it.ErrorClass == "" {
		f.Add("note", it.Note)
	} else {
		f.AddAs(terminal.Bad, "error", progress.Classed(it.Note, it.ErrorClass))
	}
	f.Add("ark", progress.ARKOf(it))
	if object, ok := registry.ObjectSpecIn(it.Spec); ok {
		f.Add("requested", object.Text())
	}
	if message, ok := registry.DeliverySpecIn(it.Spec); ok && it.Action == registry.DeliverMessage {
		f.Add("message", message.Text())
	}
	f.Add("batch", it.ParentID)
	f.Add("graph", it.GraphID)
	f.Add("trace", registry.TraceOf(it.Spec).ID())
	f.Add("in the batch", registry.PlaceText(it.Row, it.Line))
	if spec.Repeats != nil {
		f.Add("repeats", spec.Repeats.String()+", which says the same")
	}
	f.Add("collection", it.Collection)
	if spec.ProfileVersion > 0 {
		f.Add("profile", fmt.Sprintf("version %d", spec.ProfileVersion))
	}
	f.Add("payload", strings.TrimSpace(string(spec.Type)+" "+spec.URL))
	f.Add("title", spec.Title)
	f.Add("creator", spec.Creator)
	f.Add("terms", spec.TermsInForce().String())
	f.Add("date", spec.Date)
	f.Add("local ids", strings.Join(spec.LocalIDs, "; "))
	f.Add("submitter", spec.Submitter)
	f.Add("priority", strconv.Itoa(it.Priority))
	switch it.Action {
	case registry.Batch: // its jobs have the sizes
	case registry.Bulk:
		addBulk(f, it)
	default:
		f.Add("size", terminal.ExactSize(it.SizeBytes))
		f.Add("files", registry.CountText(it.Files))
	}
	f.Add("created", terminal.TimeText(it.CreatedAt))
	f.Add("updated", terminal.TimeText(it.UpdatedAt))
	if it.FinishedAt != nil {
		f.Add("finished", terminal.TimeText(*it.FinishedAt))
	}
	acts := make([]string, len(it.AllowedActs))
	for i, act := range it.AllowedActs {
		acts[i] = string(act)
	}
	f.Add("allowed acts", strings.Join(acts, ", "))
	return f
}

// addBulk adds the progress and refusals of an act on many items.
func addBulk(f *terminal.Facts, it registry.WorkItem) {
	if bulk, ok := registry.BulkSpecIn(it.Spec); ok {
		f.Add("requested", bulk.Text())
	}
	var p registry.BulkProgress
	_ = json.Unmarshal(it.Results[registry.ResultBulk], &p) // missing before it has started
	f.Add("done", terminal.Plural(p.Applied, "item", "items"))
	f.Add("refused", terminal.Plural(p.Refused, "item", "items"))
	for _, text := range p.Refusals {
		f.Add("", text)
	}
	if more := p.Refused - int64(len(p.Refusals)); more > 0 && len(p.Refusals) > 0 {
		f.Add("", fmt.Sprintf("and %s more", registry.CountText(more)))
	}
}
