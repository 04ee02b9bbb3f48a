package role

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// rebuildFlags are the flags of `holdfast rebuild`.
type rebuildFlags struct {
	dir, database, key string
	storages           []string
	atOnce             int
	dryRun             bool
}

// RebuildCommand returns the command `holdfast rebuild`.
func RebuildCommand(a *cli.App) *cobra.Command {
	var f rebuildFlags
	cmd := &cobra.Command{
		Use: "rebuild", Short: "Make a Registry again from its storages alone",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runRebuild(cmd.Context(), a, f) },
	}
	cmd.Flags().StringVar(&f.dir, "dir", "", "the folder `DIR` of up: its database is made again, and its own storage is read, too")
	cmd.Flags().StringVar(&f.database, "database", "", "the new database, sqlite:PATH or postgres://... (default that of --dir, or HOLDFAST_DATABASE_URL)")
	cmd.Flags().StringArrayVar(&f.storages, "storage", nil, "a storage, `NAME=ADDRESS`, by the name that it had; may be repeated (default HOLDFAST_STORAGE_URL)")
	cmd.Flags().StringVar(&f.key, "key", "", "a PEM `FILE` with the trusted public keys of receipts (default any key is trusted)")
	cmd.Flags().IntVar(&f.atOnce, "at-once", 8, "how many objects are read at once")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "read everything and report, and enter nothing")
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cli.WithHelp(helpTexts, cmd)
}

// rebuilt is the last line of `rebuild --json`. Before it there is a line for each object with faults.
type rebuilt struct {
	rebuild.Report
	Seconds float64 `json:"seconds"`
}

func runRebuild(ctx context.Context, a *cli.App, f rebuildFlags) error {
	c, err := a.Settings(ctx, config.Default())
	if err != nil {
		return err
	}
	if c, err = f.apply(c); err != nil {
		return err
	}
	keys, err := f.keys()
	if err != nil {
		return err
	}
	begun, shown := time.Now(), time.Now()
	o := node.RebuildOptions{
		Database: c.DatabaseURL, Dir: f.dir, Storages: storages(c), Keys: keys, AtOnce: f.atOnce, DryRun: f.dryRun,
		Fault: func(o rebuild.Object) error { return printFaults(a, o) },
		Progress: func(r rebuild.Report) {
			if time.Since(shown) < 2*time.Second {
				return
			}
			shown = time.Now()
			a.Note("%s", countText(r, time.Since(begun)))
		},
	}
	report, err := node.Rebuild(ctx, common(a, c), o)
	if errors.Is(err, registry.ErrRebuilt) {
		return exit.Usagef("%w: a rebuild needs a new database. To compare a Registry with its storages, run: holdfast queue orphans --storages", err)
	} else if err != nil {
		return err
	}
	spent := time.Since(begun)
	if a.JSON {
		return a.PrintJSON(rebuilt{report, spent.Seconds()})
	}
	verb := "entered"
	if f.dryRun {
		verb = "found, nothing was entered"
	}
	_, err = fmt.Fprintf(a.Out, "%s: %s\n", verb, countText(report, spent))
	if err == nil && !f.dryRun {
		a.Note("complete the profiles of the collections, which are not in the storages: holdfast collection list")
	}
	return err
}

// apply returns the settings with what the flags say.
func (f rebuildFlags) apply(c config.Config) (config.Config, error) {
	if len(f.storages) > 0 {
		c.StorageURL = strings.Join(f.storages, " ")
		if _, err := c.Storages(); err != nil {
			return c, exit.Usagef("--storage: %w", err)
		}
	}
	if f.database != "" || f.dir != "" {
		c.DatabaseURL = f.database
	}
	switch {
	case c.DatabaseURL == "" && f.dir == "" && !f.dryRun:
		return c, exit.Usagef("no database: give --dir, --database or HOLDFAST_DATABASE_URL")
	case c.StorageURL == "" && f.dir == "":
		return c, exit.Usagef("no storage: give --storage NAME=ADDRESS, --dir or HOLDFAST_STORAGE_URL")
	}
	return c, nil
}

// keys reads the trusted keys.
func (f rebuildFlags) keys() ([]receipt.PublicKey, error) {
	if f.key == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.key)
	if err != nil {
		return nil, exit.Usagef("--key: %w", err)
	}
	keys, err := receipt.ParsePublicKeys(text)
	if err != nil {
		return nil, exit.Usagef("--key %s: %w", f.key, err)
	}
	return keys, nil
}

// printFaults prints what is wrong with an object.
func printFaults(a *cli.App, o rebuild.Object) error {
	if a.JSON {
		return a.PrintJSON(o)
	}
	var text strings.Builder
	for _, fault := range o.Faults {
		fmt.Fprintf(&text, "%s: %s\n", o.ID, terminal.Clean(fault))
	}
	for _, c := range o.Copies {
		for _, fault := range c.Faults {
			fmt.Fprintf(&text, "%s in storage %s: %s\n", o.ID, c.Storage, terminal.Clean(fault))
		}
	}
	_, err := fmt.Fprint(a.Out, text.String())
	return err
}

// countText says what a rebuild did so far, and how fast.
func countText(r rebuild.Report, spent time.Duration) string {
	text := fmt.Sprintf("%s, %d deleted, %d with faults, %d not readable, in %s", terminal.Plural(r.Objects, "object", "objects"),
		r.Deleted, r.Damaged, r.Unreadable, spent.Round(time.Second))
	if seconds := spent.Seconds(); seconds >= 1 {
		text += fmt.Sprintf(" (%.0f a second)", float64(r.Objects)/seconds)
	}
	return text
}
