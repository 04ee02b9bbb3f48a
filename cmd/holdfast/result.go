package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// entry is a batch or job that somebody waits for.
type entry struct {
	payload   string // what was submitted; "" when it is only watched
	target    target
	duplicate bool
	noMail    bool // its addresses are told nothing
}

func targetsOf(entries []entry) []target {
	targets := make([]target, len(entries))
	for i, e := range entries {
		targets[i] = e.target
	}
	return targets
}

// await follows entries to their end and says what became of them. Codes are of payloads that were not even accepted.
func (a *app) await(ctx context.Context, c *client.Client, entries []entry, codes []outcome) error {
	seen, err := a.follow(ctx, c, targetsOf(entries))
	if err != nil {
		if outcome(codeOf(err)) == exitTemporary {
			a.note("the work goes on. To follow it again: %s", a.commandLine("watch", idsOf(entries)...))
		}
		return err
	}
	for _, p := range seen {
		codes = append(codes, codeOfProgress(p))
	}
	if a.json {
		err = a.endings(ctx, c, entries, seen)
	} else {
		err = a.resultTable(ctx, c, entries, seen)
	}
	if err != nil {
		return err
	}
	return asError(together(codes))
}

func idsOf(entries []entry) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.target.id
	}
	return ids
}

// summaries prints how each entry stands at this moment.
func (a *app) summaries(ctx context.Context, c *client.Client, entries []entry) error {
	seen := make([]registry.BatchProgress, len(entries))
	for i, e := range entries {
		p, err := progressOf(ctx, c, e.target)
		if err != nil {
			return err
		}
		seen[i] = p
	}
	return a.endings(ctx, c, entries, seen)
}

// endings prints a summary line for each entry, in order.
func (a *app) endings(ctx context.Context, c *client.Client, entries []entry, seen []registry.BatchProgress) error {
	for i, e := range entries {
		p := seen[i]
		head := summaryHead{
			Payload: e.payload, BatchID: p.BatchID, State: p.State, Duplicate: e.duplicate || p.DuplicateOf != "", DuplicateOf: p.DuplicateOf, Completed: p.Completed, Preserved: p.Preserved, Failed: p.Failed,
			Error: p.Error, ErrorClass: p.Class, ExitCode: int(codeOfProgress(p)),
		}
		if !p.Settled && !p.Held {
			head.ExitCode = int(exitOK) // nobody waited for more
		}
		err := writeSummary(a.out, head, func(yield func(registry.JobResult) error) error { return eachJob(ctx, c, e.target, yield) })
		if err != nil {
			return err
		}
	}
	return nil
}

// resultTable prints what became of every job, and of batches that have none.
func (a *app) resultTable(ctx context.Context, c *client.Client, entries []entry, seen []registry.BatchProgress) error {
	t := newTable(a.out, width(a.out), jobColumns()...)
	for i, e := range entries {
		rows := 0
		err := eachJob(ctx, c, e.target, func(j registry.JobResult) error {
			rows++
			return t.row(jobRow(j)...)
		})
		if err != nil {
			return err
		}
		if p := seen[i]; rows == 0 {
			err = t.row(e.target.id, string(p.State), "", "", e.payload, classed(p.Error, p.Class))
		}
		if err != nil {
			return err
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	for i, p := range seen {
		switch {
		case p.DuplicateOf != "":
			a.note("%s: the same content was submitted before, nothing new was made; it is batch %s", entries[i].target.id, p.DuplicateOf)
		case p.Held && !p.Settled:
			a.note("%s is held; `%s` says why", entries[i].target.id, a.commandLine("item why", entries[i].target.id))
		case len(seen) > 1 || p.Jobs != 1:
			a.note("%s: %s, %s", entries[i].target.id, p.State, settledText(p))
		}
		if p.Error != "" && p.Jobs > 0 && !entries[i].target.job {
			a.note("%s: %s", entries[i].target.id, clean(p.Error))
			if p.Completed == p.Jobs { // they were requeued after the report
				a.note("all its jobs have completed since; to have it reported: %s", a.commandLine("batch update-report", entries[i].target.id))
			}
		}
	}
	return nil
}

func jobColumns() []column {
	return []column{
		{name: "item", id: true}, {name: "state"}, {name: "ark"}, {name: "version", right: true, spare: 1}, {name: "name", flex: true}, {name: "error", flex: true, below: 8},
	}
}

func jobRow(j registry.JobResult) []string {
	return []string{j.ItemID, j.StateText(time.Now()), j.ARK, versionText(j.Version), j.Name, classed(j.Error, j.Class)}
}

// versionText is a version's number, "" for none.
func versionText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// classed says whose fault an error is.
func classed(text string, class registry.ErrorClass) string {
	if text == "" || class == "" {
		return text
	}
	return string(class) + ": " + text
}

// settledText says in a few words what became of the jobs that have settled.
func settledText(p registry.BatchProgress) string {
	text := fmt.Sprintf("%s completed, %s failed", registry.CountText(p.Completed), registry.CountText(p.Failed))
	if p.Preserved > 0 {
		text += fmt.Sprintf(", %s preserved, but not completed", registry.CountText(p.Preserved))
	}
	return text
}
