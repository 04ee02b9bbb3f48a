// Package batch has the command `holdfast batch`: batches with their jobs, reports and failures,
// and the removal of finished batches. Package item lists and controls them.
package batch

import (
	"context"
	"embed"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/hold"
	"github.com/holdfast/holdfast/cmd/holdfast/item"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast batch`.
func Command(a *cli.App) *cobra.Command {
	below := []*cobra.Command{
		listCommand(a), showCommand(a), reportCommand(a), failuresCommand(a), updateReportCommand(a), cancelCommand(a), deleteCommand(a), cleanupCommand(a),
	}
	return cli.WithHelp(helpTexts, cli.Group("batch", "List, show, control and clean up batches, and get their reports",
		append(below, hold.Commands(a, registry.HoldBatch)...)...))
}

func listCommand(a *cli.App) *cobra.Command {
	q := registry.ItemQuery{Action: registry.Batch}
	var f item.Filter
	const short = "List batches, newest first"
	cmd := &cobra.Command{
		Use: "list [QUERY]", Short: short, Long: item.QueryHelp(), Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Match, err = f.Query(args); err != nil {
				return err
			}
			return item.List(cmd.Context(), a, q, "no batches")
		},
	}
	item.FilterFlags(cmd, &f, &q.Limit)
	return a.ClientFlags(cmd)
}

func showCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a batch and its jobs", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			return showBatch(cmd.Context(), a, c, args[0], limit)
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(a.TakesIDs(registry.Batch, cmd))
}

// batchLine is the output of `batch show --json`.
type batchLine struct {
	registry.WorkItem
	Progress registry.BatchProgress `json:"progress"`
}

func showBatch(ctx context.Context, a *cli.App, c *client.Client, id string, limit int) error {
	b, err := c.Batch(ctx, id)
	if err != nil {
		return err
	}
	p, err := c.BatchProgress(ctx, id)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(batchLine{WorkItem: b, Progress: p})
	}
	f := item.Facts(b)
	if p.Jobs > 0 { // before the expansion its jobs are unknown
		f.Add("jobs", progress.DoneOf(p.Jobs-p.Open, p.Jobs, p.Expanded, registry.CountText)+" settled, "+progress.SettledText(p))
		f.Add("files", progress.DoneOf(p.DoneFiles, p.Files, p.SizeKnown, registry.CountText))
		f.Add("size", terminal.ExactSize(p.DoneBytes))
	}
	if p.SizeKnown && p.Bytes > p.DoneBytes {
		f.Add("of", terminal.ExactSize(p.Bytes))
	}
	if err := f.Write(a.Out); err != nil {
		return err
	}
	if p.Jobs == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return jobList().Print(a, func(yield func(registry.JobResult) error) (bool, error) {
		return cli.EachRow(ctx, limit, progress.JobPage(c, id), yield)
	})
}

func updateReportCommand(a *cli.App) *cobra.Command {
	return item.ActCommand(a, "update-report", "Make a new report of batches whose jobs changed", registry.ActUpdateReport, nil)
}

func cancelCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel ID...", Short: "Cancel batches; a depositor's token may cancel its own", Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			codes := make([]exit.Code, 0, len(args))
			for _, id := range args {
				b, err := c.CancelBatch(cmd.Context(), id, reason, "")
				codes = append(codes, exit.Of(err))
				switch {
				case cmd.Context().Err() != nil:
					return err
				case err != nil:
					a.Complain(err)
					continue
				case a.JSON:
					err = a.PrintJSON(b)
				default:
					_, err = fmt.Fprintf(a.Out, "%s %s\n", b.ID, b.State)
				}
				if err != nil {
					return err
				}
			}
			return exit.Together(codes).Err()
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	return a.ClientFlags(a.TakesIDs(registry.Batch, cmd))
}

func deleteCommand(a *cli.App) *cobra.Command {
	return item.ActCommand(a, "delete", "Delete batches with their jobs; preserved objects stay", registry.ActDelete, nil)
}

func jobList() cli.Lister[registry.JobResult] {
	return cli.Lister[registry.JobResult]{Columns: progress.JobColumns(), Row: progress.JobRow, None: "no jobs yet"}
}
