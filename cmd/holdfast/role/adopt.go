package role

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/rebuild"
)

// adoptFlags are the flags of `holdfast adopt`.
type adoptFlags struct {
	storedFlags
	collection string
	dryRun     bool
	unsigned   bool
}

// AdoptCommand returns the command `holdfast adopt`.
func AdoptCommand(a *cli.App) *cobra.Command {
	var f adoptFlags
	cmd := &cobra.Command{
		Use: "adopt STORAGE", Short: "Take the objects of an OCFL root that others made into the Registry, as they lie",
		Args: cli.Needs("STORAGE"),
		RunE: func(cmd *cobra.Command, args []string) error { return runAdopt(cmd.Context(), a, f, args[0]) },
	}
	f.add(cmd, "the folder `DIR` of up, which must be stopped", "the Registry's database")
	cmd.Flags().StringVar(&f.collection, "collection", "", "the `COLLECTION` that the objects come to; its profile says who owns them")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "read everything, say what would be refused, and change nothing")
	cmd.Flags().BoolVar(&f.unsigned, "unsigned", false, "write receipts without a signature, for a Registry that has no HOLDFAST_RECEIPT_KEY")
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cli.WithHelp(helpTexts, cmd)
}

// adopted is the last line of `adopt --json`. Before it there is a line for each object that was not known.
type adopted struct {
	rebuild.Adoption
	DryRun  bool    `json:"dry_run"`
	Seconds float64 `json:"seconds"`
}

const noReceiptKey = "there is no key to sign the receipts of the adopted objects, which are never changed afterwards: " +
	"set HOLDFAST_RECEIPT_KEY as the Registry's processes have it, or give --unsigned if they have none"

func runAdopt(ctx context.Context, a *cli.App, f adoptFlags, name string) error {
	if f.collection == "" {
		return exit.Usagef("no collection: give --collection, whose profile says who owns the objects")
	}
	c, stored, err := f.stored(ctx, a, false)
	if err != nil {
		return err
	}
	o := node.AdoptOptions{Stored: stored, Storage: name, Collection: f.collection, DryRun: f.dryRun}
	if o.Template, err = c.Template(); err != nil {
		return err
	}
	if o.ReceiptKey, err = c.Receipts(); err != nil {
		return err
	}
	if o.ReceiptKey == nil && f.dir == "" && !f.unsigned {
		if !f.dryRun {
			return exit.Usagef("%s", noReceiptKey)
		}
		a.Note("the run without --dry-run would be refused: %s", noReceiptKey)
	}
	begun, due := time.Now(), seldom()
	o.Found = func(found rebuild.Adopted) error { return printAdopted(a, f.dryRun, found) }
	o.Progress = func(r rebuild.Adoption) {
		if due() {
			a.Note("%s", adoptionText(r, f.dryRun, time.Since(begun)))
		}
	}
	report, err := node.Adopt(ctx, common(a, c), o)
	if err != nil {
		return err
	}
	spent := time.Since(begun)
	if a.JSON {
		err = a.PrintJSON(adopted{report, f.dryRun, spent.Seconds()})
	} else {
		_, err = fmt.Fprintln(a.Out, adoptionText(report, f.dryRun, spent))
	}
	if err != nil {
		return err
	}
	switch {
	case f.dryRun:
		a.Note("nothing was changed")
	case report.Refused > 0:
		a.Note("%s", terminal.Plural(report.Refused, "object was refused and left as it is", "objects were refused and left as they are"))
	}
	if !f.dryRun && report.Adopted+report.Known > 0 {
		a.Note("next, name storage %s in HOLDFAST_STORAGE_URL of all processes and in the profile of collection %s, and restart them", name, f.collection)
	}
	if report.Refused > 0 {
		return exit.Held.Err()
	}
	return nil
}

// printAdopted prints what there is to say of an object.
func printAdopted(a *cli.App, dry bool, f rebuild.Adopted) error {
	if a.JSON {
		return a.PrintJSON(f)
	}
	var text strings.Builder
	for _, why := range f.Refused {
		fmt.Fprintf(&text, "%s: REFUSED: %s\n", terminal.Clean(f.Folder), terminal.Clean(why))
	}
	if len(f.Refused) == 0 && !dry {
		fmt.Fprintf(&text, "%s: %s is %s, %s\n", terminal.Clean(f.Folder), terminal.Clean(f.Stored), f.ID, terminal.Plural(int64(f.Versions), "version", "versions"))
	}
	_, err := fmt.Fprint(a.Out, text.String())
	return err
}

// adoptionText says what an adoption did so far, or would do, and how fast.
func adoptionText(r rebuild.Adoption, dry bool, spent time.Duration) string {
	adopted, refused := "adopted", "refused"
	if dry {
		adopted, refused = "would be adopted", "would be refused"
	}
	return fmt.Sprintf("%s read: %d %s (%s, %s, %s), %d known, %d %s, %s", terminal.Plural(r.Objects, "object", "objects"), r.Adopted, adopted,
		terminal.Plural(r.Versions, "version", "versions"), terminal.Plural(r.Files, "file", "files"), terminal.SizeText(r.Bytes), r.Known, r.Refused, refused,
		paceText(r.Objects-r.Before, spent))
}
