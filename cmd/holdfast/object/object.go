// Package object has the commands `holdfast object` and `holdfast receipt-keys`: preserved objects,
// their records, verification, export, restore, audit and deletion.
//
// A written file gets its name only when it is complete, correct and synced. The same command
// resumes an interrupted export or download.
//
// Package export lays out exports; the service reads the storages.
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
		listCommand(a), showCommand(a), filesCommand(a), changesCommand(a), eventsCommand(a), receiptCommand(a), exportCommand(a), verifyCommand(a), auditCommand(a), acceptOlderCommand(a), fixityCommand(a), restoreCommand(a), restoresCommand(a), termsCommand(a), deleteCommand(a), deletionsCommand(a)))
}

// someOrAll checks that the arguments name objects, or that --all is set.
func someOrAll(all *bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if (len(args) > 0) == *all {
			return errors.New("give either object ids or --all")
		}
		return nil
	}
}

// eachOf calls do for each of ids, or for all objects, until it fails.
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
