// Package evidencereport has the command `holdfast evidence`, which writes what the archive did in a
// period, for those who certify it.
package evidencereport

import (
	"archive/zip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/evidencereport"
	"github.com/holdfast/holdfast/web/client"
)

//go:embed help/*.txt
var helpTexts embed.FS

// written is the output of `evidence --json`.
type written struct {
	Out    string `json:"out"`
	Files  int    `json:"files"`
	Signed bool   `json:"signed"`
}

// Command returns the command `holdfast evidence`.
func Command(a *cli.App) *cobra.Command {
	var q client.EvidenceQuery
	var out string
	cmd := &cobra.Command{
		Use: "evidence --from DAY --to DAY", Short: "Write an evidence report of a period, for certifiers", Args: cli.Needs(),
		Example: "  holdfast evidence --from 2026-01-01 --to 2026-12-31 --out evidence-2026\n  holdfast evidence --from 2026-01-01 --to 2026-12-31 --collection maps --out maps-2026.zip\n  holdfast check evidence-2026 --key keys.pem",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case q.From == "" || q.To == "":
				return exit.Usagef("--from DAY and --to DAY are needed, such as --from 2026-01-01 --to 2026-12-31")
			case out == "":
				out = fmt.Sprintf("evidence-%s-to-%s", q.From, q.To)
			}
			return write(cmd.Context(), a, q, out)
		},
	}
	cmd.Flags().StringVar(&q.From, "from", "", "the first `DAY` of the period, in UTC")
	cmd.Flags().StringVar(&q.To, "to", "", "the last `DAY` of the period, in UTC")
	cmd.Flags().StringVar(&q.Collection, "collection", "", "only of this collection")
	cmd.Flags().StringVar(&out, "out", "", "a new `FOLDER`, or a new file that ends in .zip (default evidence-FROM-to-TO)")
	return a.ClientFlags(cli.WithHelp(helpTexts, cmd))
}

// write fetches a report, verifies it, and only then gives it its name.
func write(ctx context.Context, a *cli.App, q client.EvidenceQuery, out string) (err error) {
	out = filepath.Clean(out)
	if _, err := os.Lstat(out); err == nil {
		return exit.Fix(exit.Usagef("--out %s exists already", out), "give a new folder or file by --out")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(out), ".holdfast-evidence-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	file := filepath.Join(work, "report.zip")
	if err := fetch(ctx, c, q, file); err != nil {
		return err
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	v, err := evidencereport.Check(archive, nil)
	if err != nil {
		return err
	}
	if len(v.Faults) > 0 {
		return fmt.Errorf("the report is damaged: %s", strings.Join(v.Faults, "; "))
	}
	made := file
	if !strings.HasSuffix(strings.ToLower(out), ".zip") {
		made = filepath.Join(work, "report")
		if err := os.CopyFS(made, archive); err != nil {
			return err
		}
	}
	if err := os.Rename(made, out); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(written{Out: out, Files: v.Files, Signed: v.Signed})
	}
	signed := "not signed: the service has no receipt key"
	if v.Signed {
		signed = "signed"
	}
	_, err = fmt.Fprintf(a.Out, "%s: %s, %s; begin with %s\n", out, terminal.Plural(int64(v.Files), "file", "files"), signed, evidencereport.ReadmeFile)
	return err
}

// fetch writes the report that the service sends into a new file.
func fetch(ctx context.Context, c *client.Client, q client.EvidenceQuery, file string) (err error) {
	body, err := c.EvidenceReport(ctx, q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = io.Copy(to, body)
	return err
}
