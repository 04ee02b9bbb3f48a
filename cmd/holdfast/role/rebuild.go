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

// storedFlags say which Registry and which storages are read.
type storedFlags struct {
	dir, database, key string
	storages           []string
	atOnce             int
}

// add adds the flags to a command, with what it says of the folder and of the database.
func (f *storedFlags) add(cmd *cobra.Command, dir, database string) {
	cmd.Flags().StringVar(&f.dir, "dir", "", dir)
	cmd.Flags().StringVar(&f.database, "database", "", database+", sqlite:PATH or postgres://... (default HOLDFAST_DATABASE_URL, or that of --dir)")
	cmd.Flags().StringArrayVar(&f.storages, "storage", nil, "a storage, `NAME=ADDRESS`, by the name that it had; may be repeated (default HOLDFAST_STORAGE_URL)")
	cmd.Flags().IntVar(&f.atOnce, "at-once", 8, "how many objects are read at once; more for storages on S3, such as 64")
}

// addKey adds the flag for the keys of the receipts that are read.
func (f *storedFlags) addKey(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key, "key", "", "a PEM `FILE` with the trusted public keys of receipts and checkpoints (default any key is trusted)")
}

// rebuildFlags are the flags of `holdfast rebuild`.
type rebuildFlags struct {
	storedFlags
	dryRun bool
}

// RebuildCommand returns the command `holdfast rebuild`.
func RebuildCommand(a *cli.App) *cobra.Command {
	var f rebuildFlags
	cmd := &cobra.Command{
		Use: "rebuild", Short: "Make a Registry again from its storages alone",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runRebuild(cmd.Context(), a, f) },
	}
	f.add(cmd, "the folder `DIR` of up: its database is made again, and its own storage is read, too", "the new database")
	f.addKey(cmd)
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
	c, stored, err := f.stored(ctx, a, f.dryRun)
	if err != nil {
		return err
	}
	begun, due, told := time.Now(), seldom(), false
	o := node.RebuildOptions{
		Stored: stored, DryRun: f.dryRun,
		Fault: func(o rebuild.Object) error { return printFaults(a, o) },
		Progress: func(r rebuild.Report) {
			if r.Before > 0 && !told {
				told = true
				a.Note("going on with a rebuild that was interrupted: %s", terminal.Plural(r.Before, "object was entered before", "objects were entered before"))
			}
			switch {
			case !due():
			case r.Compared > 0:
				a.Note("%s", comparedText(r.Compared))
			default:
				a.Note("%s", countText(r, time.Since(begun)))
			}
		},
	}
	report, err := node.Rebuild(ctx, common(a, c), o)
	if errors.Is(err, registry.ErrRebuilt) {
		return exit.Usagef("%w: a rebuild needs a new database, and changed nothing. To compare a Registry with its storages, run: holdfast reconcile", registry.ErrRebuilt)
	} else if err != nil {
		return err
	}
	spent := time.Since(begun)
	if a.JSON {
		err = a.PrintJSON(rebuilt{report, spent.Seconds()})
	} else {
		verb := "entered"
		if f.dryRun {
			verb = "found, nothing was entered"
		}
		_, err = fmt.Fprintf(a.Out, "%s: %s\n", verb, countText(report, spent))
	}
	if err != nil {
		return err
	}
	if !f.dryRun {
		a.Note("next, complete the profiles of the collections, which are not in the storages: holdfast collection list")
		a.Note("start the service, and let it read the bytes of all files, which this command did not: holdfast object verify --all")
	}
	return rebuildEnds(a, report)
}

// rebuildEnds says what a person must judge, as the last line, and returns the exit code for it.
func rebuildEnds(a *cli.App, r rebuild.Report) error {
	code := exit.OK
	if r.Unreadable > 0 {
		a.Note("NOT READABLE: %s named above, of which nothing was entered", terminal.Plural(r.Unreadable, "object, tombstone or checkpoint is", "objects, tombstones or checkpoints are"))
		code = exit.Partly
	}
	if r.Contradicted > 0 {
		a.Note("CONTRADICTED: what the storages hold contradicts their signed checkpoints for %s named above: evidence or objects were removed or changed. Look for the missing parts in another copy of the storages before you go on (docs/evidence.md)",
			terminal.Plural(r.Contradicted, "object", "objects"))
		code = exit.Failed
	}
	return code.Err()
}

// stored returns the settings, with what the flags say, and the storages and database of them. A database need not be named if it is optional.
func (f storedFlags) stored(ctx context.Context, a *cli.App, optional bool) (config.Config, node.Stored, error) {
	c, err := f.settings(ctx, a)
	if err != nil {
		return c, node.Stored{}, err
	}
	switch {
	case c.DatabaseURL == "" && f.dir == "" && !optional:
		err = exit.Usagef("no database: give --dir, --database or HOLDFAST_DATABASE_URL")
	case c.StorageURL == "" && f.dir == "":
		err = exit.Usagef("no storage: give --storage NAME=ADDRESS, --dir or HOLDFAST_STORAGE_URL")
	}
	if err != nil {
		return c, node.Stored{}, err
	}
	out := node.Stored{Database: c.DatabaseURL, Dir: f.dir, Storages: storages(c), AtOnce: f.atOnce}
	for _, s := range registry.Stages() {
		worker := c.Worker(s)
		out.Lease = max(out.Lease, worker.Lease())
	}
	out.Keys, err = f.keys()
	return c, out, err
}

// settings returns the settings, with what the flags say of database and storages.
func (f storedFlags) settings(ctx context.Context, a *cli.App) (config.Config, error) {
	c, err := a.Settings(ctx, config.Default())
	if err != nil {
		return c, err
	}
	if len(f.storages) > 0 {
		c.StorageURL = strings.Join(f.storages, " ")
		if _, err := c.Storages(); err != nil {
			return c, exit.Usagef("--storage: %w", err)
		}
	}
	if f.database != "" {
		c.DatabaseURL = f.database
	}
	return c, nil
}

// keys reads the trusted keys.
func (f storedFlags) keys() ([]receipt.PublicKey, error) {
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
	_, err := fmt.Fprint(a.Out, faultsText(o))
	return err
}

// faultsText has a line for each fault of an object.
func faultsText(o rebuild.Object) string {
	var text strings.Builder
	for _, fault := range o.Faults {
		fmt.Fprintf(&text, "%s: %s\n", o.ID, terminal.Clean(fault))
	}
	for _, c := range o.Copies {
		for _, fault := range c.Faults {
			fmt.Fprintf(&text, "%s: %s\n", strings.TrimSpace(o.ID+" in storage "+c.Storage), terminal.Clean(fault)) // a checkpoint is of no object
		}
	}
	return text.String()
}

// countText says what a rebuild did so far, and how fast.
func countText(r rebuild.Report, spent time.Duration) string {
	return fmt.Sprintf("%s, %s of deleted ones, %d with faults, %d not readable, %d contradicted by checkpoints, %s", terminal.Plural(r.Objects, "object", "objects"),
		terminal.Plural(r.Deleted, "tombstone", "tombstones"), r.Damaged, r.Unreadable, r.Contradicted, paceText(r.Objects-r.Before, spent))
}

// paceText says how long it took to read objects, and how fast that is.
func paceText(objects int64, spent time.Duration) string {
	text := "in " + spent.Round(time.Second).String()
	if seconds := spent.Seconds(); seconds >= 1 {
		text += fmt.Sprintf(" (%.0f a second)", float64(objects)/seconds)
	}
	return text
}

// comparedText says how far the comparison with the signed checkpoints is, which comes last.
func comparedText(objects int64) string {
	return "comparing with the signed checkpoints in the storages: " + terminal.Plural(objects, "object", "objects") + " so far"
}

// longestSilence is how long nothing is shown at most.
const longestSilence = 30 * time.Second

// seldom returns a function that reports whether it is time to show how far something is: after the first
// second, and then after twice the time each, up to longestSilence.
func seldom() func() bool {
	wait := time.Second
	next := time.Now().Add(wait)
	return func() bool {
		if time.Now().Before(next) {
			return false
		}
		wait = min(2*wait, longestSilence)
		next = time.Now().Add(wait)
		return true
	}
}
