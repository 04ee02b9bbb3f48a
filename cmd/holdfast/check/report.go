package check

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/evidencereport"
	"github.com/holdfast/holdfast/registry/receipt"
)

// reportVerdict is the output of `check REPORT --json`.
type reportVerdict struct {
	Path       string    `json:"path"`
	Type       string    `json:"type"` // evidence-report
	Valid      bool      `json:"valid"`
	Signed     bool      `json:"signed"`
	Trusted    bool      `json:"trusted"` // signed by a key of --key
	Registry   string    `json:"registry"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"` // the first moment after the period
	Collection string    `json:"collection,omitempty"`
	Key        string    `json:"key"`
	Files      int       `json:"files"`
	Faults     []string  `json:"faults"`
	ExitCode   int       `json:"exit_code"`
}

// checkReport verifies an evidence report, in a folder or a zip. found is false if path is none.
func checkReport(a *cli.App, path string, keys []receipt.PublicKey) (code exit.Code, found bool, err error) {
	report, closeIt := openReport(path)
	if report == nil {
		return exit.OK, false, nil
	}
	defer func() { err = errors.Join(err, closeIt()) }()
	v, err := evidencereport.Check(report, keys)
	if err != nil {
		return exit.Failed, true, exit.Cause(err)
	}
	out := reportVerdict{
		Path: path, Type: "evidence-report", Valid: len(v.Faults) == 0 && (v.Trusted || len(keys) == 0), Signed: v.Signed, Trusted: v.Trusted,
		Registry: v.Report.Registry, From: v.Report.From, To: v.Report.To, Collection: v.Report.Collection, Key: v.Report.Key, Files: v.Files, Faults: append([]string{}, v.Faults...),
	}
	if len(keys) > 0 && !v.Trusted && len(v.Faults) == 0 {
		out.Faults = append(out.Faults, "no key of --key signed it")
	}
	if code = exit.OK; !out.Valid {
		code = exit.Content
	}
	if out.ExitCode = int(code); a.JSON {
		return code, true, a.PrintJSON(out)
	}
	return code, true, printReport(a, out)
}

// openReport opens an evidence report; nil: path is none.
func openReport(path string) (report fs.FS, closeIt func() error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil
	}
	report, closeIt = os.DirFS(path), func() error { return nil }
	if !info.IsDir() {
		archive, err := zip.OpenReader(path)
		if err != nil {
			return nil, nil
		}
		report, closeIt = archive, archive.Close
	}
	if !evidencereport.Is(report) {
		_ = closeIt() // read only
		return nil, nil
	}
	return report, closeIt
}

// printReport prints a verdict for people.
func printReport(a *cli.App, v reportVerdict) error {
	signed := "not signed"
	switch {
	case v.Trusted:
		signed = "signed by a trusted key"
	case v.Signed:
		signed = "signed by key " + terminal.Clean(v.Key) + ", which was not verified: add --key"
	}
	word := "valid"
	if !v.Valid {
		word = "INVALID"
	}
	lines := []string{fmt.Sprintf("%s: %s evidence report of %s to %s, %s, %s", terminal.Clean(v.Path), word, v.From.UTC().Format(time.DateOnly), v.To.UTC().Add(-1).Format(time.DateOnly),
		terminal.Plural(int64(v.Files), "file", "files"), signed)}
	for _, f := range v.Faults {
		lines = append(lines, "  error: "+terminal.Clean(f))
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	return err
}
