package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/client"
)

func (a *app) batchReportCommand() *cobra.Command {
	var closing int64
	var asCSV bool
	cmd := &cobra.Command{
		Use: "report ID", Short: "Print the stored report of a batch", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asCSV && a.json {
				return usage("--csv and --json exclude each other")
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			return a.report(cmd.Context(), c, args[0], closing, asCSV)
		},
	}
	cmd.Flags().Int64Var(&closing, "closing", 0, "which report, 1 being the first (default the last)")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print the jobs as CSV")
	return a.clientFlags(cmd)
}

func (a *app) report(ctx context.Context, c *client.Client, id string, closing int64, asCSV bool) error {
	r, err := c.ReportOf(ctx, id, closing)
	if errors.Is(err, registry.ErrNotFound) {
		return fix(err, "a report is made when every job is settled; `"+a.commandLine("watch", id)+"` waits for it")
	} else if err != nil {
		return err
	}
	jobs := func(yield func(registry.JobResult) error) error {
		_, err := eachRow(ctx, 0, reportPage(c, r), yield)
		return err
	}
	switch {
	case asCSV:
		return a.reportCSV(jobs)
	case a.json:
		// The report's figures first, then its jobs, one a line.
		if err := a.printJSON(r); err != nil {
			return err
		}
		return jobs(func(j registry.JobResult) error { return a.printJSON(j) })
	}
	return a.reportText(r, jobs)
}

func (a *app) reportText(r registry.BatchReport, jobs func(func(registry.JobResult) error) error) error {
	var f facts
	f.add("batch", r.BatchID)
	f.add("report", strconv.FormatInt(r.Closing, 10))
	f.add("made", timeText(r.CreatedAt))
	f.add("jobs", fmt.Sprintf("%s, %s completed, %s failed", registry.CountText(r.Jobs), registry.CountText(r.Completed), registry.CountText(r.Failed)))
	if err := f.write(a.out); err != nil || r.Jobs == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	return jobList().print(a, func(yield func(registry.JobResult) error) (bool, error) { return false, jobs(yield) })
}

func (a *app) reportCSV(jobs func(func(registry.JobResult) error) error) error {
	w := csv.NewWriter(a.out)
	if err := w.Write([]string{"row", "item_id", "name", "state", "ark", "version", "local_ids", "error_class", "error"}); err != nil {
		return err
	}
	err := jobs(func(j registry.JobResult) error {
		return w.Write([]string{
			strconv.FormatInt(j.Row, 10), j.ItemID, j.Name, string(j.State), j.ARK, strconv.Itoa(j.Version),
			strings.Join(j.LocalIDs, "; "), string(j.Class), j.Error,
		})
	})
	w.Flush()
	return errors.Join(err, w.Error())
}
