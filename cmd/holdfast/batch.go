package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) batchCommand() *cobra.Command {
	below := []*cobra.Command{
		a.batchListCommand(), a.batchShowCommand(), a.batchReportCommand(), a.batchFailuresCommand(), a.updateReportCommand(), a.batchDeleteCommand(), a.cleanupCommand(),
	}
	return group("batch", "List, show, hold, release, delete and clean up batches, and get their reports",
		append(below, a.holdCommands(registry.HoldBatch)...)...)
}

func (a *app) batchListCommand() *cobra.Command {
	q := registry.ItemQuery{Action: registry.Batch}
	var f filter
	const short = "List batches, newest first"
	cmd := &cobra.Command{
		Use: "list [QUERY]", Short: short, Long: queryHelp(), Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Match, err = f.query(args); err != nil {
				return err
			}
			return a.listItems(cmd.Context(), q, "no batches")
		},
	}
	itemFilters(cmd, &f, &q.Limit)
	return a.clientFlags(cmd)
}

func (a *app) batchShowCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a batch and its jobs", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			return a.showBatch(cmd.Context(), c, args[0], limit)
		},
	}
	limitFlag(cmd, &limit)
	return a.clientFlags(a.takesIDs(registry.Batch, cmd))
}

// batchLine is a batch as `batch show --json` prints it.
type batchLine struct {
	registry.WorkItem
	Progress registry.BatchProgress `json:"progress"`
}

func (a *app) showBatch(ctx context.Context, c *client.Client, id string, limit int) error {
	b, err := c.Batch(ctx, id)
	if err != nil {
		return err
	}
	p, err := c.BatchProgress(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(batchLine{WorkItem: b, Progress: p})
	}
	f := itemFacts(b)
	if p.Jobs > 0 { // before, nothing is known of what is in it
		f.add("jobs", of(p.Jobs-p.Open, p.Jobs, p.Expanded, registry.CountText)+" settled, "+settledText(p))
		f.add("files", of(p.DoneFiles, p.Files, p.SizeKnown, registry.CountText))
		f.add("size", exactSize(p.DoneBytes))
	}
	if p.SizeKnown && p.Bytes > p.DoneBytes {
		f.add("of", exactSize(p.Bytes))
	}
	if err := f.write(a.out); err != nil {
		return err
	}
	if p.Jobs == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	return jobList().print(a, func(yield func(registry.JobResult) error) (bool, error) {
		return eachRow(ctx, limit, jobPage(c, id), yield)
	})
}

func jobList() lister[registry.JobResult] {
	return lister[registry.JobResult]{columns: jobColumns(), row: jobRow, none: "no jobs yet"}
}

func (a *app) updateReportCommand() *cobra.Command {
	return a.actCommand("update-report", "Report what changed in batches since their last report", registry.ActUpdateReport, nil)
}

func (a *app) batchDeleteCommand() *cobra.Command {
	return a.actCommand("delete", "Give up batches with their jobs; what was stored stays", registry.ActDelete, nil)
}
