package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (a *app) uploadCommand() *cobra.Command {
	return group("upload", "List and remove uploads", a.uploadListCommand(), a.uploadRemoveCommand())
}

func (a *app) uploadListCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List your unfinished uploads (an admin: everybody's)", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
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
			l := lister[wire.UploadStatus]{none: "no uploads", row: uploadRow, columns: []column{
				{name: "id"}, {name: "size"}, {name: "state"}, {name: "created", spare: 2}, {name: "by", flex: true, spare: 1}, {name: "collection", flex: true}, {name: "file", flex: true},
			}}
			return l.print(a, whole(found))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also finished uploads that take room in staging")
	return a.clientFlags(cmd)
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
	return []string{u.ID, size, state, timeText(u.CreatedAt), cmp.Or(u.CreatedBy, "-"), cmp.Or(u.Collection, "-"), u.Filename}
}

func (a *app) uploadRemoveCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "remove ID...", Short: "Remove uploads that no batch was submitted from", Args: needs("ID..."),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			var errs []error
			for _, id := range ids {
				if err := c.RemoveUpload(cmd.Context(), id); err != nil {
					errs = append(errs, fmt.Errorf("upload %s: %w", id, err))
					continue
				}
				a.note("upload %s is removed", id)
			}
			return errors.Join(errs...)
		},
	})
}
