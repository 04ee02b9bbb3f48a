package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func orphansCommand(a *cli.App) *cobra.Command {
	var r wire.OrphanRequest
	var older time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use: "orphans", Short: "List and remove orphaned data: staged bytes, uploads and interim data",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if older > 0 {
				hours := int((older + time.Hour - 1) / time.Hour)
				r.OlderHours = &hours
			}
			return orphans(cmd.Context(), a, r, yes)
		},
	}
	f := cmd.Flags()
	f.Func("older", "only data that has been unused for this `AGE`, at least 1h (default 7d)", func(text string) (err error) {
		if older, err = query.Age(strings.ToLower(text)); err != nil || older < registry.LeastOrphanAge {
			return errors.New("it must be a whole number and h, d or w, such as 12h or 30d")
		}
		return nil
	})
	f.BoolVar(&r.Storages, "storages", false, "search the preservation storages, too")
	f.BoolVar(&r.Remove, "remove", false, "remove what can be removed, after asking")
	f.BoolVar(&yes, "yes", false, "skip the question")
	f.StringVar(&r.Reason, "reason", "", "the reason, recorded with the act")
	return a.ClientFlags(cmd)
}

// orphans searches for orphaned data. With Remove it shows the finds and asks before it removes
// them, unless yes is set.
func orphans(ctx context.Context, a *cli.App, r wire.OrphanRequest, yes bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if r.Remove && !yes {
		search := r
		search.Remove = false
		report, err := searchOrphans(ctx, a, c, search)
		if err != nil {
			return err
		}
		what := report.Text(registry.OrphanKind.Removable)
		if what == "" {
			return printOrphans(a, report)
		}
		if err := a.Decide(fmt.Sprintf("remove %s?", what), false); err != nil {
			return err
		}
	}
	report, err := searchOrphans(ctx, a, c, r)
	if err != nil {
		return err
	}
	return printOrphans(a, report)
}

// searchOrphans starts a search and waits for its end.
func searchOrphans(ctx context.Context, a *cli.App, c *client.Client, r wire.OrphanRequest) (report registry.OrphanReport, err error) {
	it, err := c.SearchOrphans(ctx, r)
	if err != nil {
		return report, err
	}
	a.Quiet = true // a search has no progress in files and bytes
	seen, err := progress.Follow(ctx, a, c, []progress.Target{{ID: it.ID, Job: true}})
	if err != nil {
		if exit.Of(err) == exit.Temporary {
			a.Note("the search continues. To see its report: %s", a.CommandLine("item", "show", it.ID, "--json"))
		}
		return report, err
	}
	if code := progress.CodeOf(seen[0]); code != exit.OK {
		a.Note("the search has not ended (item %s); `%s` shows why", it.ID, a.CommandLine("item", "why", it.ID))
		return report, code
	}
	if it, err = c.Item(ctx, it.ID); err != nil {
		return report, err
	}
	if err := json.Unmarshal(it.Results[registry.ResultOrphans], &report); err != nil {
		return report, fmt.Errorf("read the report of item %s: %w", it.ID, err)
	}
	return report, nil
}

func printOrphans(a *cli.App, r registry.OrphanReport) error {
	l := cli.Lister[registry.Orphan]{None: "no orphaned data found", Row: orphanRow, Columns: []terminal.Column{
		{Name: "kind"},
		{Name: "name"},
		{Name: "files", Right: true, Spare: 1},
		{Name: "size", Right: true},
		{Name: "changed", Spare: 2},
		{Name: "removed"},
		{Name: "why", Flex: true},
	}}
	if err := l.Print(a, cli.Whole(r.Found)); err != nil {
		return err
	}
	if more := r.Total() - int64(len(r.Found)); more > 0 {
		a.Note("and %s more; in total %s", registry.CountText(more), r.Text(func(registry.OrphanKind) bool { return true }))
	}
	if r.Total() == 0 {
		return exit.Nothing
	}
	if !r.Search.Remove {
		return nil
	}
	for kind, c := range r.Counts {
		if kind.Removable() && c.Removed < c.Found {
			return exit.Partly
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
		changed = terminal.TimeText(o.ChangedAt)
	}
	return []string{string(o.Kind), name, registry.CountText(o.Files), terminal.SizeText(o.SizeBytes), changed, removed, why}
}
