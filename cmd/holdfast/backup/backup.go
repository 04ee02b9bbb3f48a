// Package backup has the commands `holdfast backup`: they make, list, verify and restore backups of
// the Registry without asking a service.
package backup

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/backup"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry/sqldb"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast backup`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("backup", "Back up the database, keys and settings, and restore them", makeCommand(a), listCommand(a), verifyCommand(a), restoreCommand(a)))
}

func makeCommand(a *cli.App) *cobra.Command {
	var dir string
	var keep keepFlag
	cmd := &cobra.Command{
		Use: "make PLACE", Short: "Make a backup, while the service runs or not, and verify it",
		Args: cli.Needs("PLACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return makeBackup(cmd.Context(), a, dir, args[0], keep.Keep)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", cli.DefaultDir, "the folder `DIR` of up, with its database, unless HOLDFAST_DATABASE_URL names another, and its keys")
	f.Var(&keep, "keep", "then remove older ones: keep the newest of each of so many days and weeks, such as 7d8w (default all are kept)")
	f.BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cmd
}

// keepFlag is the value of --keep.
type keepFlag struct{ backup.Keep }

// Set and Type implement pflag.Value, with the String of Keep.
func (k *keepFlag) Set(text string) error { return k.Decode(text) }

// Type implements pflag.Value.
func (k *keepFlag) Type() string { return "RULE" }

func makeBackup(ctx context.Context, a *cli.App, dir, place string, keep backup.Keep) error {
	s, err := a.BackupSource(ctx, dir)
	if err != nil {
		return err
	}
	o, err := s.Options(place, keep)
	if err != nil {
		return err
	}
	made, err := backup.Make(ctx, o)
	if err != nil {
		return coded(err)
	}
	if a.JSON {
		return a.PrintJSON(made)
	}
	if _, err := fmt.Fprintf(a.Out, "%s: %s, read back and verified: %s\n", made.Name, terminal.SizeText(made.Size), contents(made.Manifest)); err != nil {
		return err
	}
	for _, name := range made.Removed {
		a.Note("removed the older %s", name)
	}
	if made.Manifest.Database == nil {
		a.Note("the database is PostgreSQL and is NOT in this backup: use pg_dump or WAL archiving (docs/operating.md#postgresql)")
	}
	a.Note("it has keys in it: keep it where only those who run Holdfast can read it")
	return nil
}

// contents says what is in a backup.
func contents(m backup.Manifest) string {
	var parts []string
	for _, member := range m.Members {
		parts = append(parts, member.Name)
	}
	text := strings.Join(parts, ", ")
	if d := m.Database; d != nil {
		text += fmt.Sprintf("; %s, %s, %s", terminal.Plural(d.Objects, "object", "objects"), terminal.Plural(d.Versions, "version", "versions"), terminal.Plural(d.Items, "item", "items"))
	}
	return text
}

func listCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list PLACE", Short: "List the backups in a folder or bucket",
		Args: cli.Needs("PLACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := backup.List(cmd.Context(), args[0])
			if err != nil {
				return coded(err)
			}
			l := cli.Lister[backup.File]{
				None: "there is no backup", Columns: []terminal.Column{{Name: "backup"}, {Name: "made"}, {Name: "size", Right: true}},
				Row: func(f backup.File) []string {
					return []string{f.Name, f.At.Format(time.RFC3339), terminal.SizeText(f.Size)}
				},
			}
			return l.Print(a, cli.Whole(all))
		},
	}
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cmd
}

func verifyCommand(a *cli.App) *cobra.Command {
	var temporary string
	cmd := &cobra.Command{
		Use: "verify BACKUP", Short: "Read a whole backup and check it with the database in it",
		Args: cli.Needs("BACKUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := backup.Verify(cmd.Context(), args[0], temporary)
			if err != nil {
				return coded(err)
			}
			if a.JSON {
				return a.PrintJSON(m)
			}
			_, err = fmt.Fprintf(a.Out, "right: of %s, made by holdfast %s: %s\n", m.At.Format(time.RFC3339), m.Version, contents(m))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&temporary, "temp", "", "a `FOLDER` with room for the database (default the system's for temporary files)")
	f.BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cmd
}

func restoreCommand(a *cli.App) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "restore BACKUP --dir DIR", Short: "Verify a backup and make a folder of it",
		Args: cli.Needs("BACKUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return exit.Usagef("--dir is missing: the folder to make")
			}
			m, err := backup.Restore(cmd.Context(), backup.RestoreOptions{From: args[0], Dir: dir, Lock: node.TakeLock})
			if err != nil {
				return coded(err)
			}
			if a.JSON {
				return a.PrintJSON(m)
			}
			if _, err := fmt.Fprintf(a.Out, "restored to %s, as of %s: %s\n", dir, m.At.Format(time.RFC3339), contents(m)); err != nil {
				return err
			}
			if m.Database == nil {
				a.Note("there is no database in it: it was PostgreSQL's; restore that with its own tools (docs/operating.md#postgresql)")
			} else {
				a.Note("before you start it, move the storage of the old folder into it; the record may be older than the storages, so what to do next: docs/receipt.md, \"After a backup was restored\"")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "", "the folder `DIR` to make; it must not exist, or be empty")
	f.BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cmd
}

// coded gives the errors of backups their exit codes and remedies.
func coded(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, backup.ErrDamaged), errors.Is(err, sqldb.ErrDamaged):
		return exit.Coded(exit.Failed, err.Error(), "use another backup, and find out what changed this one")
	case errors.Is(err, backup.ErrPlace):
		return exit.Usagef("%w", err)
	case errors.Is(err, backup.ErrFolder):
		return exit.Coded(exit.Usage, err.Error(), "name one of those that `holdfast backup list` shows for it")
	case errors.Is(err, backup.ErrNotEmpty):
		return exit.Coded(exit.Refused, err.Error(), "")
	case errors.Is(err, fs.ErrExist):
		return exit.Coded(exit.Temporary, err.Error(), "another backup of this second is there; try again")
	case errors.Is(err, node.ErrInUse):
		return exit.Coded(exit.Temporary, err.Error(), "wait for it to end")
	case errors.Is(err, fs.ErrNotExist):
		return exit.Fix(err, "check the address; a place of backups must exist")
	}
	return err
}
