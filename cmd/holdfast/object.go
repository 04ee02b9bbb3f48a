package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func (a *app) objectCommand() *cobra.Command {
	return group("object", "List, show, export, restore, verify and delete preserved objects",
		a.objectListCommand(), a.objectShowCommand(), a.objectFilesCommand(), a.objectEventsCommand(), a.receiptCommand(), a.exportCommand(), a.verifyCommand(), a.objectAuditCommand(), a.objectAcceptOlderCommand(), a.fixityCommand(), a.restoreCommand(), a.restoresCommand(), a.objectDeleteCommand(), a.objectDeletionsCommand())
}

func (a *app) objectListCommand() *cobra.Command {
	var q registry.ObjectQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List objects, newest first", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l := lister[registry.Object]{none: "no objects", row: objectRow, columns: []column{
				{name: "object"},
				{name: "version", right: true},
				{name: "files", right: true},
				{name: "size", right: true},
				{name: "collection", spare: 1},
				{name: "updated", spare: 2},
				{name: "title", flex: true},
				{name: "local ids", flex: true},
			}}
			return l.print(a, func(yield func(registry.Object) error) (bool, error) { return a.eachObject(cmd.Context(), q, yield) })
		},
	}
	cmd.Flags().StringVar(&q.Collection, "collection", "", "only objects of this collection")
	cmd.Flags().StringVar(&q.LocalID, "local-id", "", "only the object with this local id")
	cmd.Flags().StringVar(&q.Text, "text", "", "only objects with this text in ARK, title or creator")
	limitFlag(cmd, &q.Limit)
	return a.clientFlags(cmd)
}

func (a *app) eachObject(ctx context.Context, q registry.ObjectQuery, yield func(registry.Object) error) (bool, error) {
	c, err := a.connect()
	if err != nil {
		return false, err
	}
	return eachRow(ctx, q.Limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Object], error) {
		q.After, q.Limit = after, limit
		return c.Objects(ctx, q)
	}, yield)
}

func objectRow(o registry.Object) []string {
	head := strconv.Itoa(o.Head)
	if o.Gone != "" {
		head = string(o.Gone)
	}
	return []string{
		o.ID, head, registry.CountText(o.Files), sizeText(o.SizeBytes), o.Collection, timeText(o.UpdatedAt), o.Title,
		strings.Join(o.LocalIDs, "; "),
	}
}

func (a *app) objectShowCommand() *cobra.Command {
	var limit, version int
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show an object, its versions and its files", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showObject(cmd.Context(), args[0], version, limit)
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "the version to list (default the newest)")
	limitFlag(cmd, &limit)
	return a.clientFlags(cmd)
}

func (a *app) showObject(ctx context.Context, id string, version, limit int) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	o, err := c.Object(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(o)
	}
	if err := objectFacts(o).write(a.out); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	versions := lister[registry.ObjectVersion]{row: versionRow, columns: []column{
		{name: "version", right: true},
		{name: "files", right: true},
		{name: "size", right: true},
		{name: "created"},
		{name: "recorded"},
		{name: "item"},
	}}
	if err := versions.print(a, whole(o.Versions)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	replicas := lister[registry.Replica]{none: "no replicas", row: replicaRow, columns: []column{{name: "storage"}, {name: "verified"}}}
	if err := replicas.print(a, whole(replicasOf(o, version))); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	return a.printFiles(ctx, c, o.ID, version, limit)
}

// printFiles lists the files of an object's version.
func (a *app) printFiles(ctx context.Context, c *client.Client, id string, version, limit int) error {
	files := lister[registry.File]{none: "no files", row: fileRow, columns: []column{
		{name: "size", right: true}, {name: "since", right: true}, {name: "type", flex: true}, {name: "format", spare: 1}, {name: "path"},
	}}
	return files.print(a, func(yield func(registry.File) error) (bool, error) {
		return eachRow(ctx, limit, filePage(c, id, version), yield)
	})
}

func (a *app) objectFilesCommand() *cobra.Command {
	var limit, version int
	cmd := &cobra.Command{
		Use: "files ID", Short: "List the files of an object's version, with digests and formats", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			return a.printFiles(cmd.Context(), c, args[0], version, limit)
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "the version to list (default the newest)")
	limitFlag(cmd, &limit)
	return a.clientFlags(cmd)
}

func objectFacts(o registry.Object) *facts {
	f := &facts{}
	f.add("object", o.ID)
	f.add("title", o.Title)
	f.add("creator", o.Creator)
	f.add("date", o.Date)
	f.add("local ids", strings.Join(o.LocalIDs, "; "))
	f.add("collection", o.Collection)
	f.add("owner", o.Owner)
	f.add("version", strconv.Itoa(o.Head))
	f.add("files", registry.CountText(o.Files))
	f.add("size", exactSize(o.SizeBytes))
	f.add("created", timeText(o.CreatedAt))
	f.add("updated", timeText(o.UpdatedAt))
	f.add("all checked since", timeText(o.CheckedAt))
	f.add("longest unchecked", o.Unchecked)
	if o.CheckAsked != nil {
		f.add("check asked for", timeText(*o.CheckAsked))
	}
	if o.Damaged > 0 {
		f.add("DAMAGED", plural(o.Damaged, "stored file", "stored files"))
	}
	if d := o.Deletion; d != nil {
		f.add("deletion", d.Text())
		f.add("item", d.ItemID)
		f.add("last inventory", d.Last.Inventory)
		f.add("last files", d.Last.Files)
	}
	return f
}

func versionRow(v registry.ObjectVersion) []string {
	return []string{
		strconv.Itoa(v.Version), registry.CountText(v.Files), sizeText(v.SizeBytes), timeText(v.CreatedAt), timeText(v.RecordedAt),
		v.ItemID,
	}
}

// replicasOf are the replicas of an object's version, 0 being the newest.
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

func replicaRow(r registry.Replica) []string { return []string{r.Storage, timeText(r.VerifiedAt)} }

func fileRow(f registry.File) []string {
	puid := ""
	if f.Format != nil {
		puid = f.Format.PUID
	}
	return []string{sizeText(f.SizeBytes), "v" + strconv.Itoa(f.Version), f.MIMEType, puid, f.Path}
}

func (a *app) objectEventsCommand() *cobra.Command {
	var limit int
	var premis bool
	var out string
	cmd := &cobra.Command{
		Use: "events ID", Short: "List an object's preservation events, oldest first, or write its PREMIS document", Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if premis {
				return a.writePREMIS(cmd.Context(), c, args[0], out)
			}
			if out != "" {
				return usage("--out goes with --premis")
			}
			l := lister[registry.Premis]{none: "no events", row: premisRow, columns: []column{
				{name: "time"}, {name: "version", right: true}, {name: "event"}, {name: "outcome"}, {name: "agent"}, {name: "detail"},
			}}
			return l.print(a, func(yield func(registry.Premis) error) (bool, error) {
				return eachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Premis], error) {
					return c.PremisEvents(ctx, args[0], after, limit)
				}, yield)
			})
		},
	}
	limitFlag(cmd, &limit)
	cmd.Flags().BoolVar(&premis, "premis", false, "write object, versions, files, events and agents as a PREMIS 3 XML document")
	cmd.Flags().StringVar(&out, "out", "", "write the document to `FILE`, which must not exist yet (default standard output)")
	return a.clientFlags(cmd)
}

func (a *app) writePREMIS(ctx context.Context, c *client.Client, id, out string) error {
	body, err := c.PREMIS(ctx, id)
	if err != nil {
		return err
	}
	defer body.Close()
	return a.writeWhole(out, func(w io.Writer) error {
		if _, err := io.Copy(w, body); err != nil {
			return fmt.Errorf("read the PREMIS document of %s: %w", id, err)
		}
		return nil
	})
}

func premisRow(e registry.Premis) []string {
	return []string{timeText(e.At), strconv.Itoa(e.Version), e.Type, e.Outcome, e.Agent, e.Detail}
}

func (a *app) fixityCommand() *cobra.Command {
	var reason string
	var whole bool
	cmd := &cobra.Command{
		Use: "fixity ID...|--all", Short: "Check objects' stored files in every storage, and replace damaged ones by a good copy",
		Args: someOrAll(&whole),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			return a.eachOf(cmd.Context(), args, whole, func(id string) error {
				o, err := c.CheckObject(cmd.Context(), id, reason)
				if err != nil {
					return fmt.Errorf("ask for a check of %s: %w", id, err)
				}
				if a.json {
					return a.printJSON(o)
				}
				_, err = fmt.Fprintf(a.out, "%s: its files are checked one by one; see: holdfast object show %s\n", o.ID, o.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	cmd.Flags().BoolVar(&whole, "all", false, "every object")
	return a.clientFlags(cmd)
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
func (a *app) eachOf(ctx context.Context, ids []string, all bool, do func(id string) error) error {
	if all {
		_, err := a.eachObject(ctx, registry.ObjectQuery{}, func(o registry.Object) error {
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

func (a *app) verifyCommand() *cobra.Command {
	var whole bool
	cmd := &cobra.Command{
		Use: "verify ID...|--all", Short: "Verify objects: read every byte and compare it with the recorded digests and versions",
		Args: someOrAll(&whole),
		RunE: func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args, whole) },
	}
	cmd.Flags().BoolVar(&whole, "all", false, "verify every object")
	return a.clientFlags(cmd)
}

// verify checks objects one after the other and says of each at once what it found: with many, the first is done long
// before the last.
func (a *app) verify(ctx context.Context, ids []string, whole bool) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	var v verification
	err = a.eachOf(ctx, ids, whole, func(id string) error {
		report, err := c.Verify(ctx, id)
		if err != nil {
			if ctx.Err() != nil || whole {
				return fmt.Errorf("verify %s: %w", id, err)
			}
			v.codes = append(v.codes, outcome(codeOf(err)))
			a.complain(fmt.Errorf("verify %s: %w", id, err))
			return nil
		}
		return v.found(a, report)
	})
	if err != nil {
		return err
	}
	a.note("%s", v.text())
	return asError(v.code())
}
