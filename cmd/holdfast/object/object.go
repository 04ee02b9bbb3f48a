// Package object has the command `holdfast object`: preserved objects, what is recorded of them,
// their verification, export, restore, audit and deletion; and `holdfast receipt-keys`.
//
// A file that is written has its name only when all of it is there, right and on the disk. An
// interrupted export or download goes on where it ended when the same command is given again.
//
// Package parcel lays out what an export has; the service reads the storages.
package object

import (
	"context"
	"embed"
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/registry"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast object`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("object", "List, show, verify, export, restore and delete preserved objects",
		listCommand(a), showCommand(a), filesCommand(a), eventsCommand(a), receiptCommand(a), exportCommand(a), verifyCommand(a), auditCommand(a), acceptOlderCommand(a), fixityCommand(a), restoreCommand(a), restoresCommand(a), deleteCommand(a), deletionsCommand(a)))
}

// someOrAll checks that objects are named, or all are meant.
func someOrAll(all *bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if (len(args) > 0) == *all {
			return errors.New("name the objects, or use --all, and not both")
		}
		return nil
	}
}

// eachOf calls do with these objects, or with all that there are, until it fails.
func eachOf(ctx context.Context, a *cli.App, ids []string, all bool, do func(id string) error) error {
	if all {
		_, err := eachObject(ctx, a, registry.ObjectQuery{}, func(o registry.Object) error {
			if o.Gone != "" {
				return nil
			}
			return do(o.ID)
		})
		return err
	}
	for _, id := range ids {
		if err := do(id); err != nil {
			return err
		}
	}
	return nil
}
