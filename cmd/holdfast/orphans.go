package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func (a *app) queueOrphansCommand() *cobra.Command {
	var r wire.OrphanRequest
	var older time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use: "orphans", Short: "List and remove orphaned data: staged bytes, uploads and interim data",
		Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if older > 0 {
				hours := int((older + time.Hour - 1) / time.Hour)
				r.OlderHours = &hours
			}
			return a.orphans(cmd.Context(), r, yes)
		},
	}
	f := cmd.Flags()
	f.Func("older", "only what nobody wrote to, nor had a right to, for this `AGE`, at least 1h (default 7d)", func(text string) (err error) {
		if older, err = registry.Age(strings.ToLower(text)); err != nil || older < registry.LeastOrphanAge {
			return errors.New("it must be a whole number and h, d or w, such as 12h or 30d")
		}
		return nil
	})
	f.BoolVar(&r.Storages, "storages", false, "search the preservation storages, too")
	f.BoolVar(&r.Remove, "remove", false, "remove what can be removed, after a question")
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.StringVar(&r.Reason, "reason", "", "the reason, recorded with the act")
	return a.clientFlags(cmd)
}

// orphans looks first and asks then, unless it was told not to.
func (a *app) orphans(ctx context.Context, r wire.OrphanRequest, yes bool) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	if r.Remove && !yes {
		look := r
		look.Remove = false
		report, err := a.searchOrphans(ctx, c, look)
		if err != nil {
			return err
		}
		what := report.Text(registry.OrphanKind.Removable)
		if what == "" {
			return a.printOrphans(report)
		}
		if err := a.decide(fmt.Sprintf("remove %s?", what), false); err != nil {
			return err
		}
	}
	report, err := a.searchOrphans(ctx, c, r)
	if err != nil {
		return err
	}
	return a.printOrphans(report)
}

// searchOrphans has a search made, and waits for it.
func (a *app) searchOrphans(ctx context.Context, c *client.Client, r wire.OrphanRequest) (report registry.OrphanReport, err error) {
	it, err := c.SearchOrphans(ctx, r)
	if err != nil {
		return report, err
	}
	a.quiet = true // a search has no files and bytes of which it could be told how many are done
	seen, err := a.follow(ctx, c, []target{{id: it.ID, job: true}})
	if err != nil {
		if outcome(codeOf(err)) == exitTemporary {
			a.note("the search goes on. To see what it found: %s", a.commandLine("item", "show", it.ID, "--json"))
		}
		return report, err
	}
	if code := codeOfProgress(seen[0]); code != exitOK {
		a.note("item %s did not end; `%s` tells why", it.ID, a.commandLine("item", "why", it.ID))
		return report, code
	}
	if it, err = c.Item(ctx, it.ID); err != nil {
		return report, err
	}
	if err := json.Unmarshal(it.Results[registry.ResultOrphans], &report); err != nil {
		return report, fmt.Errorf("read what item %s found: %w", it.ID, err)
	}
	return report, nil
}

func (a *app) printOrphans(r registry.OrphanReport) error {
	l := lister[registry.Orphan]{none: "nothing belongs to nobody", row: orphanRow, columns: []column{
		{name: "kind"},
		{name: "name"},
		{name: "files", right: true, spare: 1},
		{name: "size", right: true},
		{name: "changed", spare: 2},
		{name: "removed"},
		{name: "why", flex: true},
	}}
	if err := l.print(a, whole(r.Found)); err != nil {
		return err
	}
	if more := r.Total() - int64(len(r.Found)); more > 0 {
		a.note("and %s more; all in all %s", registry.CountText(more), r.Text(func(registry.OrphanKind) bool { return true }))
	}
	if r.Total() == 0 {
		return exitNothing
	}
	if !r.Search.Remove {
		return nil
	}
	for kind, c := range r.Counts {
		if kind.Removable() && c.Removed < c.Found {
			return exitPartly
		}
	}
	return nil
}

func orphanRow(o registry.Orphan) []string {
	name, removed, why := o.Name, "", o.Why
	if o.Storage != "" {
		name += " in " + o.Storage
	}
	switch {
	case o.Removed:
		removed = "yes"
	case o.Error != "":
		removed, why = "no", o.Error
	case !o.Kind.Removable():
		removed = "never"
	}
	changed := ""
	if !o.ChangedAt.IsZero() {
		changed = timeText(o.ChangedAt)
	}
	return []string{string(o.Kind), name, registry.CountText(o.Files), sizeText(o.SizeBytes), changed, removed, why}
}
