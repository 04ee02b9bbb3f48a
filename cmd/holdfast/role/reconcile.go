package role

import (
	"context"
	"errors"
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

// reconcileFlags are the flags of `holdfast reconcile`.
type reconcileFlags struct {
	storedFlags
	apply, restored bool
	accept          string
}

// ReconcileCommand returns the command `holdfast reconcile`.
func ReconcileCommand(a *cli.App) *cobra.Command {
	var f reconcileFlags
	cmd := &cobra.Command{
		Use: "reconcile", Short: "Compare a restored Registry with its storages, and adopt what is newer there",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runReconcile(cmd.Context(), a, f) },
	}
	f.add(cmd, "the folder `DIR` of up: its database and its own storage are compared", "the restored database")
	f.addKey(cmd)
	cmd.Flags().BoolVar(&f.apply, "apply", false, "enter what the Registry does not know, and release it (default only report)")
	cmd.Flags().BoolVar(&f.restored, "restored", false, "with --apply: the database was restored by other means than holdfast backup restore")
	cmd.Flags().StringVar(&f.accept, "accept", "", "with --apply: release the Registry although something disagrees, for this `REASON`, which is recorded")
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cli.WithHelp(helpTexts, cmd)
}

// reconciled is the last line of `reconcile --json`. Before it there is a line for each object of which
// there is something to say.
type reconciled struct {
	node.Reconciled
	Applied bool    `json:"applied"`
	Seconds float64 `json:"seconds"`
}

func runReconcile(ctx context.Context, a *cli.App, f reconcileFlags) error {
	if (f.restored || f.accept != "") && !f.apply {
		return exit.Usagef("--restored and --accept go with --apply")
	}
	c, stored, err := f.stored(ctx, a, false)
	if err != nil {
		return err
	}
	begun, due := time.Now(), seldom()
	out, err := node.Reconcile(ctx, common(a, c), node.ReconcileOptions{
		Stored: stored, Apply: f.apply, Restored: f.restored, Accepted: strings.TrimSpace(f.accept),
		Found: func(found rebuild.Finding) error { return printFinding(a, found) },
		Progress: func(r rebuild.Comparison) {
			switch {
			case !due():
			case r.Compared > 0:
				a.Note("%s", comparedText(r.Compared))
			default:
				a.Note("%s", comparisonText(r, time.Since(begun)))
			}
		},
	})
	if errors.Is(err, node.ErrNotRestored) {
		return exit.Usagef("%w: nothing was changed. If its database was restored by other means than `holdfast backup restore`, stop all workers and repeat it with --restored", err)
	} else if err != nil {
		return err
	}
	spent := time.Since(begun)
	if a.JSON {
		err = a.PrintJSON(reconciled{out, f.apply, spent.Seconds()})
	} else {
		_, err = fmt.Fprintln(a.Out, comparisonText(out.Comparison, spent))
	}
	if err != nil {
		return err
	}
	return concludes(a, out)
}

// concludes says what is left to do, and returns the exit code for it.
func concludes(a *cli.App, out node.Reconciled) error {
	for _, storage := range out.Older {
		a.Note("the record lacks events that the signed checkpoint in storage %s names, and no storage has them: two admins accept that, then run this again (docs/receipt.md, After a backup was restored)", storage)
	}
	for _, what := range out.Unverified {
		a.Note("%s. A backup from before a key was first used does not know it: if it is yours, repeat with --key FILE, which has its public key. If the checkpoint is damaged, restore it from a copy of the storage; --apply --accept REASON releases the Registry without it, and then nothing shows which events are lost", terminal.Clean(what))
	}
	code := exit.OK
	switch {
	case out.Released:
		a.Note("the Registry is released: start the service")
	case !out.Agree():
		a.Note("%s: a person must judge what is named above; --apply --accept REASON releases the Registry nevertheless", terminal.Plural(out.Disagree+out.Unreadable, "object disagrees", "objects disagree"))
		code = exit.Failed
	case len(out.Older)+len(out.Unverified) > 0:
		code = exit.Failed
	case out.Lost > 0:
		a.Note("signed checkpoints name events of %s that neither the record nor any storage has: --apply enters what there is, and releases the Registry when two admins have accepted the rest (docs/receipt.md, After a backup was restored)",
			terminal.Plural(out.Lost, "object", "objects"))
		code = exit.Failed
	case out.Adopted+out.Deleted > 0:
		a.Note("nothing was changed: --apply enters it")
		code = exit.Held
	default:
		a.Note("Registry and storages agree; --apply releases a restored Registry")
	}
	return code.Err()
}

// printFinding prints what there is to say of an object.
func printFinding(a *cli.App, f rebuild.Finding) error {
	if a.JSON {
		return a.PrintJSON(f)
	}
	var text strings.Builder
	for _, what := range f.Adopted {
		fmt.Fprintf(&text, "%s: adopt %s\n", f.ID, terminal.Clean(what))
	}
	for _, what := range f.Disagrees {
		fmt.Fprintf(&text, "%s: DISAGREES: %s\n", f.ID, terminal.Clean(what))
	}
	_, err := fmt.Fprint(a.Out, text.String()+faultsText(f.Object))
	return err
}

// comparisonText says what a comparison found so far, and how fast.
func comparisonText(c rebuild.Comparison, spent time.Duration) string {
	return fmt.Sprintf("%s compared: %d adopted (%s), %d deleted, %d being written, %d with faults, %d not readable, %d disagree, %s",
		terminal.Plural(c.Objects, "object", "objects"), c.Adopted, terminal.Plural(c.Versions, "version", "versions"), c.Deleted, c.Open, c.Damaged,
		c.Unreadable, c.Disagree, paceText(c.Objects-c.Before, spent))
}
