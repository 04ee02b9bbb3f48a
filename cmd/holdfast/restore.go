package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) restoreCommand() *cobra.Command {
	var x restore
	cmd := &cobra.Command{
		Use: "restore ID", Short: "Restore an object as one tar file on the service, and download it",
		Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.id = args[0]
			return a.restore(cmd.Context(), x)
		},
	}
	cmd.Flags().IntVar(&x.version, "version", 0, "which version (default the newest)")
	cmd.Flags().StringVar(&x.reason, "reason", "", "the reason, recorded with the restore")
	cmd.Flags().BoolVar(&x.wait, "wait", false, "wait until it is ready")
	cmd.Flags().StringVar(&x.out, "out", "", "wait, and download it to `FILE`, which must not exist yet")
	a.progressFlags(cmd)
	return a.clientFlags(cmd)
}

// restore is what is asked for.
type restore struct {
	id      string
	version int
	reason  string
	wait    bool
	out     string
}

var errNotRestored = errors.New("it was not restored")

func (a *app) restore(ctx context.Context, x restore) error {
	if x.version < 0 {
		return usage("--version is a number from 1 on")
	}
	c, err := a.connect()
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
		if r, err = a.awaitRestore(ctx, c, r); err != nil {
			return err
		}
	}
	if x.out != "" {
		if err := a.fetchRestored(ctx, c, r, x.out); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(r)
	}
	switch {
	case x.out != "":
		_, err = fmt.Fprintf(a.out, "%s v%d: %s, %s, sha256 %s, written to %s\n", r.ObjectID, r.Version, plural(r.Files, "file", "files"), exactSize(r.SizeBytes), r.SHA256, x.out)
	case r.Status == registry.RestoreReady:
		_, err = fmt.Fprintf(a.out, "%s v%d: %s, %s, sha256 %s, can be fetched until %s\n", r.ObjectID, r.Version, r.Name, exactSize(r.SizeBytes), r.SHA256, timeText(*r.ExpiresAt))
		a.note("to fetch it: %s", a.commandLine("object", "restore", r.ObjectID, "--version", strconv.Itoa(r.Version), "--out", r.Name))
	default:
		_, err = fmt.Fprintf(a.out, "%s v%d: restore %d is %s, by item %s\n", r.ObjectID, r.Version, r.N, r.Status, r.ItemID)
		a.note("to see how far it is: %s", a.commandLine("object", "restores", r.ObjectID))
	}
	return err
}

// awaitRestore waits until nothing more happens to a restore by itself, which must be because it is ready.
func (a *app) awaitRestore(ctx context.Context, c *client.Client, r registry.Restoration) (registry.Restoration, error) {
	if r.Status == registry.RestoreReady {
		return r, nil
	}
	seen, err := a.follow(ctx, c, []target{{id: r.ItemID, job: true}})
	if err != nil {
		if outcome(codeOf(err)) == exitTemporary {
			a.note("the work goes on. To wait for it again: %s", a.again)
		}
		return r, err
	}
	if r, err = c.RestorationOf(ctx, r.ItemID); err != nil || r.Status == registry.RestoreReady {
		return r, err
	}
	a.note("%v", fmt.Errorf("restore %d of %s is %s: %w: %s; `%s` tells more", r.N, r.ObjectID, r.Status, errNotRestored, r.Note, a.commandLine("item", "why", r.ItemID)))
	if code := codeOfProgress(seen[0]); code != exitOK {
		return r, code
	}
	return r, exitFailed
}

func (a *app) restoresCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "restores ID", Short: "List the restores of an object, newest first", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			l := lister[registry.Restoration]{none: "no restores", row: restoreRow, columns: []column{
				{name: "restore", right: true},
				{name: "version", right: true},
				{name: "status"},
				{name: "asked"},
				{name: "by", spare: 1},
				{name: "until"},
				{name: "size", right: true},
				{name: "file", spare: 2},
				{name: "note", flex: true},
			}}
			return l.print(a, func(yield func(registry.Restoration) error) (bool, error) {
				return eachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Restoration], error) {
					before, _ := strconv.Atoi(after) // "" is 0: from the newest on
					rows, err := c.Restorations(ctx, args[0], before, limit)
					return full(rows, err, limit, func(r registry.Restoration) string { return strconv.Itoa(r.N) })
				}, yield)
			})
		},
	}
	limitFlag(cmd, &limit)
	return a.clientFlags(cmd)
}

func restoreRow(r registry.Restoration) []string {
	size, until := "", ""
	if r.ReadyAt != nil {
		size, until = sizeText(r.SizeBytes), timeText(*r.ExpiresAt)
	}
	return []string{
		strconv.Itoa(r.N), strconv.Itoa(r.Version), string(r.Status), timeText(r.AskedAt), r.AskedBy, until, size, r.Name, r.Note,
	}
}
