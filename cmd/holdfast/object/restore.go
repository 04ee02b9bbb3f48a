package object

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func restoreCommand(a *cli.App) *cobra.Command {
	var x restore
	cmd := &cobra.Command{
		Use: "restore ID", Short: "Make an object into one tar file on the service, and download it",
		Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.id = args[0]
			return restoreObject(cmd.Context(), a, x)
		},
	}
	cmd.Flags().IntVar(&x.version, "version", 0, "which version (default the newest)")
	cmd.Flags().StringVar(&x.reason, "reason", "", "the reason, recorded with the restore")
	cmd.Flags().BoolVar(&x.wait, "wait", false, "wait until the tar is ready or failed")
	cmd.Flags().StringVar(&x.out, "out", "", "wait, and download the tar to the new `FILE`")
	progress.Flags(a, cmd)
	return a.ClientFlags(cmd)
}

// restore has the flags of `object restore`.
type restore struct {
	id      string
	version int
	reason  string
	wait    bool
	out     string
}

var errNotRestored = errors.New("it was not restored")

func restoreObject(ctx context.Context, a *cli.App, x restore) error {
	if x.version < 0 {
		return exit.Usagef("--version must be 1 or more")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if x.out != "" {
		if err := freeFile(x.out); err != nil {
			return err
		}
	}
	r, err := c.Restore(ctx, x.id, x.version, x.reason, "")
	if err != nil {
		return err
	}
	if x.wait || x.out != "" {
		if r, err = awaitRestore(ctx, a, c, r); err != nil {
			return err
		}
	}
	if x.out != "" {
		if err := fetchRestored(ctx, a, c, r, x.out); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	switch {
	case x.out != "":
		_, err = fmt.Fprintf(a.Out, "%s v%d: %s, %s, sha256 %s, written to %s\n", r.ObjectID, r.Version, terminal.Plural(r.Files, "file", "files"), terminal.ExactSize(r.SizeBytes), r.SHA256, x.out)
	case r.Status == registry.RestoreReady:
		_, err = fmt.Fprintf(a.Out, "%s v%d: %s, %s, sha256 %s, can be fetched until %s\n", r.ObjectID, r.Version, r.Name, terminal.ExactSize(r.SizeBytes), r.SHA256, terminal.TimeText(*r.ExpiresAt))
		a.Note("to fetch it: %s", a.CommandLine("object", "restore", r.ObjectID, "--version", strconv.Itoa(r.Version), "--out", r.Name))
	default:
		_, err = fmt.Fprintf(a.Out, "%s v%d: restore %d is %s, by item %s\n", r.ObjectID, r.Version, r.N, r.Status, r.ItemID)
		a.Note("to see its progress: %s", a.CommandLine("object", "restores", r.ObjectID))
	}
	return err
}

// awaitRestore waits until a restore is ready. It returns an error if the restore ends otherwise or
// is held.
func awaitRestore(ctx context.Context, a *cli.App, c *client.Client, r registry.Restoration) (registry.Restoration, error) {
	if r.Status == registry.RestoreReady {
		return r, nil
	}
	seen, err := progress.Follow(ctx, a, c, []progress.Target{{ID: r.ItemID, Job: true}})
	if err != nil {
		if exit.Of(err) == exit.Temporary {
			a.Note("the restore continues. To wait for it again: %s", a.Again)
		}
		return r, err
	}
	if r, err = c.RestorationOf(ctx, r.ItemID); err != nil || r.Status == registry.RestoreReady {
		return r, err
	}
	a.Note("%v", fmt.Errorf("restore %d of %s is %s: %w: %s; `%s` has the details", r.N, r.ObjectID, r.Status, errNotRestored, r.Note, a.CommandLine("item", "why", r.ItemID)))
	if code := progress.CodeOf(seen[0]); code != exit.OK {
		return r, code
	}
	return r, exit.Failed
}

func restoresCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "restores ID", Short: "List the restores of an object, newest first", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Restoration]{None: "no restores", Row: restoreRow, Columns: []terminal.Column{
				{Name: "restore", Right: true},
				{Name: "version", Right: true},
				{Name: "status"},
				{Name: "asked"},
				{Name: "by", Spare: 1},
				{Name: "until"},
				{Name: "size", Right: true},
				{Name: "file", Spare: 2},
				{Name: "note", Flex: true},
			}}
			return l.Print(a, func(yield func(registry.Restoration) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Restoration], error) {
					before, _ := strconv.Atoi(after) // "" is 0: begin with the newest
					rows, err := c.Restorations(ctx, args[0], before, limit)
					return cli.PageOf(rows, err, limit, func(r registry.Restoration) string { return strconv.Itoa(r.N) })
				}, yield)
			})
		},
	}
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

func restoreRow(r registry.Restoration) []string {
	size, until := "", ""
	if r.ReadyAt != nil {
		size, until = terminal.SizeText(r.SizeBytes), terminal.TimeText(*r.ExpiresAt)
	}
	return []string{
		strconv.Itoa(r.N), strconv.Itoa(r.Version), string(r.Status), terminal.TimeText(r.AskedAt), r.AskedBy, until, size, r.Name, r.Note,
	}
}
