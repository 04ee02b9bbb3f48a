package progress

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// Entry is a batch or job to wait for.
type Entry struct {
	Payload   string // the argument of submit; "" for watch
	Target    Target
	Duplicate bool
	NoMail    bool // the service has no mail server
}

// TargetsOf returns the targets of entries, in order.
func TargetsOf(entries []Entry) []Target {
	targets := make([]Target, len(entries))
	for i, e := range entries {
		targets[i] = e.Target
	}
	return targets
}

// Await follows entries to their end and prints their outcomes. codes are the exit codes of refused
// payloads.
func Await(ctx context.Context, a *cli.App, c *client.Client, entries []Entry, codes []exit.Code) error {
	seen, err := Follow(ctx, a, c, TargetsOf(entries))
	if err != nil {
		if exit.Of(err) == exit.Temporary {
			a.Note("the work continues. To follow it again: %s", a.CommandLine("watch", idsOf(entries)...))
		}
		return err
	}
	for _, p := range seen {
		codes = append(codes, CodeOf(p))
	}
	if a.JSON {
		err = endings(ctx, a, c, entries, seen)
	} else {
		err = resultTable(ctx, a, c, entries, seen)
	}
	if err != nil {
		return err
	}
	return exit.Together(codes).Err()
}

func idsOf(entries []Entry) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.Target.ID
	}
	return ids
}

// Summaries prints the present state of each entry.
func Summaries(ctx context.Context, a *cli.App, c *client.Client, entries []Entry) error {
	seen := make([]registry.BatchProgress, len(entries))
	for i, e := range entries {
		p, _, err := progressOf(ctx, c, e.Target)
		if err != nil {
			return err
		}
		seen[i] = p
	}
	return endings(ctx, a, c, entries, seen)
}

// endings prints a summary line for each entry, in order.
func endings(ctx context.Context, a *cli.App, c *client.Client, entries []Entry, seen []registry.BatchProgress) error {
	for i, e := range entries {
		p := seen[i]
		head := SummaryHead{
			Payload: e.Payload, BatchID: p.BatchID, State: p.State, Duplicate: e.Duplicate || p.DuplicateOf != "", DuplicateOf: p.DuplicateOf, Completed: p.Completed, Preserved: p.Preserved, Failed: p.Failed,
			Error: p.Error, ErrorClass: p.Class, ExitCode: int(CodeOf(p)),
		}
		if !p.Settled && !p.Held {
			head.ExitCode = int(exit.OK) // the command did not wait for the end
		}
		err := WriteSummary(a.Out, head, func(yield func(registry.JobResult) error) error { return eachJob(ctx, c, e.Target, yield) })
		if err != nil {
			return err
		}
	}
	return nil
}

// resultTable prints the outcome of each job, and of each batch without jobs.
func resultTable(ctx context.Context, a *cli.App, c *client.Client, entries []Entry, seen []registry.BatchProgress) error {
	t := terminal.NewTable(a.Out, terminal.Width(a.Out), JobColumns()...)
	for i, e := range entries {
		rows := 0
		err := eachJob(ctx, c, e.Target, func(j registry.JobResult) error {
			rows++
			return t.Row(JobRow(j)...)
		})
		if err != nil {
			return err
		}
		if p := seen[i]; rows == 0 {
			err = t.Row(e.Target.ID, string(p.State), "", "", e.Payload, Classed(p.Error, p.Class))
		}
		if err != nil {
			return err
		}
	}
	if err := t.End(); err != nil {
		return err
	}
	for i, p := range seen {
		switch {
		case p.DuplicateOf != "":
			a.Note("%s: duplicate of batch %s; no new batch was made", entries[i].Target.ID, p.DuplicateOf)
		case p.Held && !p.Settled:
			a.Note("%s is held; `%s` shows why", entries[i].Target.ID, a.CommandLine("item why", entries[i].Target.ID))
		case len(seen) > 1 || p.Jobs != 1:
			a.Note("%s: %s, %s", entries[i].Target.ID, p.State, SettledText(p))
		}
		if p.Error != "" && p.Jobs > 0 && !entries[i].Target.Job {
			a.Note("%s: %s", entries[i].Target.ID, terminal.Clean(p.Error))
			if p.Completed == p.Jobs { // requeued after the report
				a.Note("all its jobs have completed since; to update its report: %s", a.CommandLine("batch update-report", entries[i].Target.ID))
			}
		}
	}
	return nil
}

// JobColumns returns the columns of a list of jobs, which JobRow fills.
func JobColumns() []terminal.Column {
	return []terminal.Column{
		{Name: "item", ID: true}, {Name: "state", Meaning: terminal.StateMeaning}, {Name: "ark"}, {Name: "version", Right: true, Spare: 1}, {Name: "name", Flex: true}, {Name: "error", Flex: true, Below: 8},
	}
}

// JobRow returns a job in the columns of JobColumns.
func JobRow(j registry.JobResult) []string {
	return []string{j.ItemID, j.StateText(time.Now()), j.ARK, VersionText(j.Version), j.Heading(), Classed(j.Error, j.Class)}
}

// VersionText formats a version's number, "" for none.
func VersionText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Classed puts an error's class before its text.
func Classed(text string, class registry.ErrorClass) string {
	if text == "" || class == "" {
		return text
	}
	return string(class) + ": " + text
}

// SettledText returns the numbers of completed and failed jobs.
func SettledText(p registry.BatchProgress) string {
	text := fmt.Sprintf("%s completed, %s failed", registry.CountText(p.Completed), registry.CountText(p.Failed))
	if p.Preserved > 0 {
		text += fmt.Sprintf(", %s preserved, but not completed", registry.CountText(p.Preserved))
	}
	return text
}
