package deposit

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// UploadCommand returns the command `holdfast upload`.
func UploadCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("upload", "List and remove uploads", uploadListCommand(a), uploadRemoveCommand(a)))
}

func uploadListCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List your unfinished uploads (as an admin: all)", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			list := c.Uploads
			if all {
				list = c.AllUploads
			}
			found, err := list(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[wire.UploadStatus]{None: "no uploads", Row: uploadRow, Columns: []terminal.Column{
				{Name: "id"}, {Name: "size"}, {Name: "state", Meaning: uploadMeaning}, {Name: "created", Spare: 2}, {Name: "by", Flex: true, Spare: 1}, {Name: "collection", Flex: true}, {Name: "file", Flex: true},
			}}
			return l.Print(a, cli.Whole(found))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also finished uploads that take room in staging")
	return a.ClientFlags(cmd)
}

// uploadMeaning returns what a state of uploadRow means.
func uploadMeaning(state string) terminal.Meaning {
	switch {
	case strings.HasPrefix(state, "batch "):
		return terminal.Good
	case state == "not submitted":
		return terminal.Waiting
	}
	return terminal.Busy
}

func uploadRow(u wire.UploadStatus) []string {
	size, state := "unknown", "on its way"
	if u.SizeBytes >= 0 {
		size = registry.SizeText(u.SizeBytes)
	}
	switch {
	case u.BatchID != "":
		state = "batch " + u.BatchID
	case u.Complete:
		state = "not submitted"
	case u.SizeBytes > 0:
		state = fmt.Sprintf("%d %% here", 100*u.Offset/u.SizeBytes)
	}
	return []string{u.ID, size, state, terminal.TimeText(u.CreatedAt), cmp.Or(u.CreatedBy, "-"), cmp.Or(u.Collection, "-"), u.Filename}
}

func uploadRemoveCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "remove ID...", Short: "Remove uploads that no batch was submitted from", Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			var errs []error
			for _, id := range ids {
				if err := c.RemoveUpload(cmd.Context(), id); err != nil {
					errs = append(errs, fmt.Errorf("upload %s: %w", id, err))
					continue
				}
				a.Note("removed: upload %s", id)
			}
			return errors.Join(errs...)
		},
	})
}
