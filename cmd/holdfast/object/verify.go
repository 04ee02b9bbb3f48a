package object

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// verification sums up the verification of objects.
type verification struct {
	objects, damaged, files, bytes int64
	unrecorded                     int64       // sound, but compared with their inventories only
	codes                          []exit.Code // of objects that could not be verified
}

// found counts one object's report, and prints it.
func (v *verification) found(a *cli.App, r wire.VerifyReport) error {
	v.objects++
	v.files += int64(r.Files)
	v.bytes += r.Bytes
	verdict, against := "sound", ""
	switch {
	case !r.Valid:
		v.damaged++
		verdict = "DAMAGED"
	case r.Against == wire.AgainstInventory:
		v.unrecorded++
		verdict, against = "UNSURE", "  compared with its own inventory only, not with the Registry's record"
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	_, err := fmt.Fprintf(a.Out, "%-7s  %s  v%d  %s  %s%s\n", verdict, r.ObjectID, r.Version, terminal.Plural(int64(r.Files), "file", "files"), terminal.SizeText(r.Bytes), against)
	if len(r.Replicas) > 1 {
		for _, replica := range r.Replicas {
			verdict := "sound"
			if !replica.Valid {
				verdict = "DAMAGED"
			}
			if err == nil {
				_, err = fmt.Fprintf(a.Out, "         %-7s  in storage %s  v%d\n", verdict, replica.Storage, replica.Version)
			}
		}
	}
	for _, f := range r.Faults {
		if err == nil {
			_, err = fmt.Fprintf(a.Out, "         %s  %s  %s  %s\n", f.Code, f.Storage, terminal.Clean(f.Path), terminal.Clean(f.Message))
		}
	}
	return err
}

// text returns the result in one line.
func (v *verification) text() string {
	text := fmt.Sprintf("verified %s, %s, %s, against the Registry's record: %s sound, %s damaged",
		terminal.Plural(v.objects, "object", "objects"), terminal.Plural(v.files, "file", "files"), terminal.SizeText(v.bytes),
		registry.CountText(v.objects-v.damaged-v.unrecorded), registry.CountText(v.damaged))
	if v.unrecorded > 0 {
		text += fmt.Sprintf(", %s compared with its own inventory only, because the Registry could not read its record: verify again",
			registry.CountText(v.unrecorded))
	}
	return text
}

// code returns 1 if anything is damaged, because a person must act, and 5 if an object was not
// compared with the record.
func (v *verification) code() exit.Code {
	if v.damaged > 0 {
		return exit.Failed
	}
	if v.unrecorded > 0 {
		v.codes = append(v.codes, exit.Temporary)
	}
	if v.objects > v.unrecorded && len(v.codes) > 0 {
		return exit.Partly
	}
	return exit.Together(v.codes)
}

func verifyCommand(a *cli.App) *cobra.Command {
	var whole bool
	cmd := &cobra.Command{
		Use: "verify ID...|--all", Short: "Verify objects: read every byte and compare it with the recorded digests and versions",
		Args: someOrAll(&whole),
		RunE: func(cmd *cobra.Command, args []string) error { return verifyObjects(cmd.Context(), a, args, whole) },
	}
	cmd.Flags().BoolVar(&whole, "all", false, "verify every object")
	return a.ClientFlags(cmd)
}

// verifyObjects verifies objects one after the other, and prints each result at once.
func verifyObjects(ctx context.Context, a *cli.App, ids []string, whole bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	var v verification
	err = eachOf(ctx, a, ids, whole, func(id string) error {
		report, err := c.Verify(ctx, id)
		if err != nil {
			if ctx.Err() != nil || whole {
				return fmt.Errorf("verify %s: %w", id, err)
			}
			v.codes = append(v.codes, exit.Of(err))
			a.Complain(fmt.Errorf("verify %s: %w", id, err))
			return nil
		}
		return v.found(a, report)
	})
	if err != nil {
		return err
	}
	a.Note("%s", v.text())
	return v.code().Err()
}
