package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/reportfile"
	"github.com/holdfast/holdfast/web/client"
)

// reportOptions are the flags of `batch report`.
type reportOptions struct {
	closing                               int64
	failed, completed, changed, csv, list bool
}

func reportCommand(a *cli.App) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use: "report ID", Short: "Print a batch's stored report, with the changes since the previous one", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.csv && a.JSON:
				return exit.Usagef("--csv and --json exclude each other")
			case o.failed && o.completed:
				return exit.Usagef("--failed and --completed exclude each other; without them all lists are printed")
			case o.list && (o.csv || o.failed || o.completed || o.changed || o.closing > 0):
				return exit.Usagef("--list takes no other option than --json")
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if o.list {
				return listReports(cmd.Context(), a, c, args[0])
			}
			return printReport(cmd.Context(), a, c, args[0], o)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&o.closing, "closing", 0, "which report, counted from 1 (default the last)")
	f.BoolVar(&o.failed, "failed", false, "only jobs that did not complete and are not preserved")
	f.BoolVar(&o.completed, "completed", false, "only completed jobs")
	f.BoolVar(&o.changed, "changed", false, "only jobs that changed since the previous report, or still fail")
	f.BoolVar(&o.csv, "csv", false, "print the jobs as CSV")
	f.BoolVar(&o.list, "list", false, "list the batch's reports")
	return a.ClientFlags(a.TakesIDs(registry.Batch, cmd))
}

// query returns the selection of jobs that the flags ask for.
func (o reportOptions) query(r registry.BatchReport) registry.ReportQuery {
	q := registry.ReportQuery{BatchID: r.BatchID, Closing: r.Closing}
	switch {
	case o.failed:
		q.List = registry.ListFailed
	case o.completed:
		q.List = registry.ListCompleted
	}
	if o.changed {
		q.Changes = slices.DeleteFunc(registry.JobChanges(), func(c registry.JobChange) bool { return c == registry.ChangeNone })
	}
	return q
}

func printReport(ctx context.Context, a *cli.App, c *client.Client, id string, o reportOptions) error {
	r, err := c.ReportOf(ctx, id, o.closing)
	if errors.Is(err, registry.ErrNotFound) {
		return noReport(ctx, a, c, id, err)
	} else if err != nil {
		return err
	}
	if o.changed && r.Difference == nil {
		return exit.Fix(errors.New("this is the first report: there are no changes to show"), "leave out --changed")
	}
	q := o.query(r)
	switch {
	case o.csv:
		return reportfile.CSV(a.Out, reportfile.Jobs(ctx, c, q))
	case a.JSON:
		if err := a.PrintJSON(r); err != nil {
			return err
		}
		for j, err := range reportfile.Jobs(ctx, c, q) {
			if err == nil {
				err = a.PrintJSON(j)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return reportText(ctx, a, c, r, q)
}

// noReport adds advice to the error of a batch without a report.
func noReport(ctx context.Context, a *cli.App, c *client.Client, id string, err error) error {
	batch, unknown := c.Batch(ctx, id)
	if unknown != nil {
		return err
	}
	switch _, coming := registry.NoReport(batch); {
	case coming:
		return exit.Fix(err, "`"+a.CommandLine("watch", id)+"` waits for the report")
	case batch.Status == registry.Failed:
		return exit.Fix(err, "`"+a.CommandLine("batch failures", id)+"` lists the causes and remedies")
	}
	return err
}

// reportText prints a report for people: its figures, newly completed jobs, failed jobs with their
// remedies, and other completed jobs.
func reportText(ctx context.Context, a *cli.App, c *client.Client, r registry.BatchReport, q registry.ReportQuery) error {
	var f terminal.Facts
	f.Add("batch", r.BatchID)
	f.Add("report", strconv.FormatInt(r.Closing, 10))
	f.Add("made", terminal.TimeText(r.CreatedAt))
	f.Add("jobs", reportCounts(r))
	f.Add("changed", differenceText(r))
	if r.Repeats > 0 {
		f.Add("repeats", terminal.Plural(r.Repeats, "row repeats an earlier row", "rows repeat an earlier row")+"; each became a job of its own")
	}
	if err := f.Write(a.Out); err != nil {
		return err
	}
	for _, s := range reportSections(r) {
		if q.List != "" && s.query.List != q.List || q.Changes != nil && s.query.Repeats {
			continue
		}
		s.query.BatchID, s.query.Closing = r.BatchID, r.Closing
		if q.Changes != nil {
			s.query.Changes = slices.DeleteFunc(s.query.Changes, func(c registry.JobChange) bool { return !slices.Contains(q.Changes, c) })
			if len(s.query.Changes) == 0 {
				continue
			}
		}
		if err := printSection(ctx, a, c, s); err != nil {
			return err
		}
	}
	return nil
}

// reportSection is a list of a report for people.
type reportSection struct {
	title   string
	query   registry.ReportQuery
	columns []terminal.Column
	row     func(registry.JobResult) []string
}

func reportSections(r registry.BatchReport) []reportSection {
	failed := reportSection{
		title: "Not completed", query: registry.ReportQuery{List: registry.ListFailed},
		columns: []terminal.Column{
			{Name: "row", Right: true},
			{Name: "line", Right: true},
			{Name: "item", ID: true},
			{Name: "state", Meaning: terminal.StateMeaning},
			{Name: "stage", Spare: 2},
			{Name: "name", Flex: true},
			{Name: "error", Flex: true, Below: 8},
			{Name: "fix", Flex: true, Below: 4},
		},
		row: func(j registry.JobResult) []string {
			return []string{
				registry.CountText(j.Row), registry.LineText(j.Row, j.Line), j.ItemID, stateText(j), string(j.Stage), j.Heading(), progress.Classed(j.Error, j.Class), j.Fix,
			}
		},
	}
	preserved := failed
	preserved.title, preserved.query.List = "Preserved, but not completed", registry.ListPreserved
	completed := reportSection{
		title: "Completed", query: registry.ReportQuery{List: registry.ListCompleted},
		columns: []terminal.Column{
			{Name: "row", Right: true},
			{Name: "line", Right: true},
			{Name: "item", ID: true},
			{Name: "ark"},
			{Name: "version", Right: true, Spare: 2},
			{Name: "name", Flex: true},
			{Name: "local ids", Flex: true},
		},
		row: func(j registry.JobResult) []string {
			return []string{registry.CountText(j.Row), registry.LineText(j.Row, j.Line), j.ItemID, j.ARK, progress.VersionText(j.Version), j.Heading(), strings.Join(j.LocalIDs, "; ")}
		},
	}
	var repeated []reportSection
	if r.Repeats > 0 {
		repeated = []reportSection{{
			title: "Rows that repeat an earlier row", query: registry.ReportQuery{Repeats: true},
			columns: []terminal.Column{{Name: "row", Right: true}, {Name: "line", Right: true}, {Name: "repeats"}, {Name: "item", ID: true}, {Name: "state", Spare: 1, Meaning: terminal.StateMeaning}, {Name: "name", Flex: true}},
			row: func(j registry.JobResult) []string {
				return []string{registry.CountText(j.Row), registry.LineText(j.Row, j.Line), j.Repeats.String(), j.ItemID, stateText(j), j.Heading()}
			},
		}}
	}
	if r.Difference == nil {
		return append([]reportSection{failed, preserved, completed}, repeated...)
	}
	now, before := completed, completed
	now.title = fmt.Sprintf("Completed since report %d", r.Difference.Since)
	now.query.Changes = []registry.JobChange{registry.ChangeCompleted, registry.ChangeNew}
	before.title = "Completed before"
	before.query.Changes = []registry.JobChange{registry.ChangeNone}
	failed.query.Changes, preserved.query.Changes = registry.JobChanges(), registry.JobChanges()
	return append([]reportSection{now, failed, preserved, before}, repeated...)
}

// printSection prints a list under its title. It prints nothing if the list is empty.
func printSection(ctx context.Context, a *cli.App, c *client.Client, s reportSection) error {
	t := terminal.NewTable(a.Out, terminal.Width(a.Out), s.columns...)
	begun := false
	for j, err := range reportfile.Jobs(ctx, c, s.query) {
		if err == nil && !begun {
			begun = true
			_, err = fmt.Fprintf(a.Out, "\n%s\n", s.title)
		}
		if err == nil {
			err = t.Row(s.row(j)...)
		}
		if err != nil {
			return errors.Join(err, t.End()) // print the rows found before the error, too
		}
	}
	return t.End()
}

// stateText returns a job's state, and its change if it is new.
func stateText(j registry.JobResult) string {
	switch j.Change {
	case registry.ChangeNewlyFailed, registry.ChangeStopped, registry.ChangeNew:
		return string(j.State) + " (" + string(j.Change) + ")"
	case registry.ChangeCompleted, registry.ChangeStillFailed, registry.ChangeNone:
	}
	return string(j.State)
}

// reportCounts returns a line with the numbers of a report's jobs by outcome.
func reportCounts(r registry.BatchReport) string {
	text := fmt.Sprintf("%s, %s completed, %s failed", registry.CountText(r.Jobs), registry.CountText(r.Completed), registry.CountText(r.Failed))
	var of []string
	for _, n := range []struct {
		count int64
		what  string
	}{{r.Content, "on content"}, {r.Failed - r.Content - r.Stopped, "on the system"}, {r.Stopped, "stopped by an admin"}} {
		if n.count > 0 {
			of = append(of, registry.CountText(n.count)+" "+n.what)
		}
	}
	if len(of) > 0 {
		text += ": " + strings.Join(of, ", ")
	}
	if r.Preserved > 0 {
		text += fmt.Sprintf("; %s preserved, but not completed", registry.CountText(r.Preserved))
	}
	return text
}

// differenceText returns a line with the changes since the previous report, "" for a first report.
func differenceText(r registry.BatchReport) string {
	d := r.Difference
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("since report %d: %s now completed, %s still failed, %s newly failed", d.Since, registry.CountText(d.NowCompleted),
		registry.CountText(d.StillFailed), registry.CountText(d.NewlyFailed))
	for _, more := range []struct {
		count int64
		what  string
	}{{d.NowStopped, "stopped"}, {d.NewJobs, "new"}} {
		if more.count > 0 {
			text += fmt.Sprintf(", %s %s", registry.CountText(more.count), more.what)
		}
	}
	return text
}

// listReports lists a batch's reports, newest first.
func listReports(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	batch, err := c.Batch(ctx, id)
	if err != nil {
		return err
	}
	l := reportList()
	why, _ := registry.NoReport(batch)
	l.None = "no report: " + why
	return l.Print(a, func(yield func(registry.BatchReport) error) (bool, error) {
		return cli.EachRow(ctx, 0, reportsPage(c, id), yield)
	})
}

func reportList() cli.Lister[registry.BatchReport] {
	return cli.Lister[registry.BatchReport]{
		Columns: []terminal.Column{
			{Name: "report", Right: true},
			{Name: "made"},
			{Name: "jobs", Right: true},
			{Name: "completed", Right: true},
			{Name: "failed", Right: true},
			{Name: "preserved only", Right: true, Spare: 1},
			{Name: "changed", Flex: true},
		},
		Row: func(r registry.BatchReport) []string {
			return []string{
				strconv.FormatInt(r.Closing, 10), terminal.TimeText(r.CreatedAt), registry.CountText(r.Jobs), registry.CountText(r.Completed), registry.CountText(r.Failed),
				registry.CountText(r.Preserved), differenceText(r),
			}
		},
	}
}

func reportsPage(c *client.Client, batch string) cli.Fetch[registry.BatchReport] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.BatchReport], error) {
		before, err := cli.Cursor(after)
		if err != nil {
			return registry.Page[registry.BatchReport]{}, err
		}
		rows, err := c.Reports(ctx, batch, before, limit)
		return cli.PageOf(rows, err, limit, func(r registry.BatchReport) string { return strconv.FormatInt(r.Closing, 10) })
	}
}
