package object

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func showCommand(a *cli.App) *cobra.Command {
	var limit, version int
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show an object, its versions and its files", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showObject(cmd.Context(), a, args[0], version, limit)
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "the version to list (default the newest)")
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

func showObject(ctx context.Context, a *cli.App, id string, version, limit int) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	o, err := c.Object(ctx, id)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(o)
	}
	if err := objectFacts(o).Write(a.Out); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	versions := cli.Lister[registry.ObjectVersion]{Row: versionRow, Columns: []terminal.Column{
		{Name: "version", Right: true},
		{Name: "files", Right: true},
		{Name: "size", Right: true},
		{Name: "created"},
		{Name: "recorded"},
		{Name: "item"},
	}}
	if err := versions.Print(a, cli.Whole(o.Versions)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	replicas := cli.Lister[registry.Replica]{None: "no replicas", Row: replicaRow, Columns: []terminal.Column{{Name: "storage"}, {Name: "verified"}}}
	if err := replicas.Print(a, cli.Whole(replicasOf(o, version))); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return printFiles(ctx, a, c, o.ID, version, limit)
}

// printFiles lists the files of an object's version.
func printFiles(ctx context.Context, a *cli.App, c *client.Client, id string, version, limit int) error {
	files := cli.Lister[registry.File]{None: "no files", Row: fileRow, Columns: []terminal.Column{
		{Name: "size", Right: true}, {Name: "since", Right: true}, {Name: "type", Flex: true}, {Name: "format", Spare: 1}, {Name: "path"},
	}}
	return files.Print(a, func(yield func(registry.File) error) (bool, error) {
		return cli.EachRow(ctx, limit, filePage(c, id, version), yield)
	})
}

func filesCommand(a *cli.App) *cobra.Command {
	var limit, version int
	cmd := &cobra.Command{
		Use: "files ID", Short: "List the files of an object's version, with digests and formats", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			return printFiles(cmd.Context(), a, c, args[0], version, limit)
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "the version to list (default the newest)")
	cli.LimitFlag(cmd, &limit)
	return a.ClientFlags(cmd)
}

func objectFacts(o registry.Object) *terminal.Facts {
	f := &terminal.Facts{}
	f.Add("object", o.ID)
	f.Add("title", o.Title)
	f.Add("creator", o.Creator)
	f.Add("date", o.Date)
	f.Add("local ids", strings.Join(o.LocalIDs, "; "))
	f.Add("collection", o.Collection)
	f.Add("owner", o.Owner)
	termsFacts(f, o.Terms)
	f.Add("version", strconv.Itoa(o.Head))
	f.Add("files", registry.CountText(o.Files))
	f.Add("size", terminal.ExactSize(o.SizeBytes))
	f.Add("created", terminal.TimeText(o.CreatedAt))
	f.Add("updated", terminal.TimeText(o.UpdatedAt))
	f.Add("all checked since", terminal.TimeText(o.CheckedAt))
	f.Add("longest unchecked", o.Unchecked)
	if o.CheckAsked != nil {
		f.Add("check requested", terminal.TimeText(*o.CheckAsked))
	}
	if o.Damaged > 0 {
		f.Add("DAMAGED", terminal.Plural(o.Damaged, "stored file", "stored files"))
		for _, d := range o.DamagedIn {
			f.Add("damaged in "+d.Storage, terminal.Plural(d.Files, "file", "files"))
		}
		for _, d := range o.Damages {
			for _, c := range d.Replicas {
				f.Add(string(c.Outcome)+" in "+c.Storage, d.File)
			}
		}
	}
	if c := o.Copies; c != nil && !c.Met {
		f.Add("TOO FEW COPIES", fmt.Sprintf("%d of %d, off-site %d of %d", c.Has, c.Policy.Copies, c.Offsite, c.Policy.Offsite))
	}
	if d := o.Deletion; d != nil {
		f.Add("deletion", d.Text())
		f.Add("item", d.ItemID)
		f.Add("last inventory", d.Last.Inventory)
		f.Add("last files", d.Last.Files)
	}
	return f
}

func versionRow(v registry.ObjectVersion) []string {
	return []string{
		strconv.Itoa(v.Version), registry.CountText(v.Files), terminal.SizeText(v.SizeBytes), terminal.TimeText(v.CreatedAt), terminal.TimeText(v.RecordedAt),
		v.ItemID,
	}
}

// replicasOf returns the replicas of an object's version (0: the newest).
func replicasOf(o registry.Object, version int) []registry.Replica {
	if version == 0 {
		version = o.Head
	}
	for _, v := range o.Versions {
		if v.Version == version {
			return v.Replicas
		}
	}
	return nil
}

func replicaRow(r registry.Replica) []string {
	return []string{r.Storage, terminal.TimeText(r.VerifiedAt)}
}

func fileRow(f registry.File) []string {
	puid := ""
	if f.Format != nil {
		puid = f.Format.PUID
	}
	return []string{terminal.SizeText(f.SizeBytes), "v" + strconv.Itoa(f.Version), f.MIMEType, puid, f.Path}
}

func filePage(c *client.Client, object string, version int) cli.Fetch[registry.File] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.File], error) {
		rows, err := c.Files(ctx, object, version, after, limit)
		return cli.PageOf(rows, err, limit, func(f registry.File) string { return f.Path })
	}
}
