// Package storages has the commands that list, fill and retire preservation storages.
package storages

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Commands returns the subcommands of `holdfast storage` that ask the Registry.
func Commands(a *cli.App) []*cobra.Command {
	all := []*cobra.Command{listCommand(a), addCommand(a), retireCommand(a), migrateCommand(a), keepCommand(a), setCommand(a), objectsCommand(a)}
	return cli.WithHelp(helpTexts, cli.Group("storage", "", all...)).Commands()
}

func listCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List storages: state, progress, and which collections have too few copies", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), a) },
	})
}

// listed is a row of `storage list`.
type listed struct {
	registry.Storage

	Address string `json:"address,omitempty"`
}

func list(ctx context.Context, a *cli.App) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	report, err := c.Storages(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(report)
	}
	rows := make([]listed, len(report.Storages))
	for i, s := range report.Storages {
		rows[i] = listed{s, report.Addresses[s.Name]}
	}
	l := cli.Lister[listed]{None: "there are no storages", Row: row, Columns: []terminal.Column{
		{Name: "storage"},
		{Name: "state"},
		{Name: "offsite", Spare: 2},
		{Name: "objects", Right: true},
		{Name: "missing", Right: true},
		{Name: "size", Right: true, Spare: 1},
		{Name: "ready in", Right: true},
		{Name: "failed", Right: true, Spare: 2},
		{Name: "address", Flex: true},
	}}
	if err := l.Print(a, cli.Whole(rows)); err != nil {
		return err
	}
	for _, s := range report.Storages {
		if s.Waits != nil {
			a.Note("%s is retired when %s; to see them: %s", s.Name, waiting(*s.Waits), a.CommandLine("storage", "objects", s.Name))
		}
		if s.State != registry.StorageRetired && report.Addresses[s.Name] == "" {
			a.Note("%s is used, but not in HOLDFAST_STORAGE_URL of the service", s.Name)
		}
	}
	for _, c := range report.Collections {
		if c.Short.Objects > 0 {
			a.Note("%s of %s objects of collection %s have fewer copies than its profile asks for (%d, off-site %d)",
				registry.CountText(c.Short.Objects), registry.CountText(c.Objects), c.Collection, c.Copies, c.Offsite)
			a.Note("to see them: %s", a.CommandLine("storage", "objects", "--collection", c.Collection))
		}
	}
	return nil
}

func row(s listed) []string {
	offsite, missing, size, rest, failed := "", "", "", "", ""
	if s.Offsite {
		offsite = "yes"
	}
	left := s.Missing
	if s.Waits != nil {
		left = s.Waits.Lacking
	}
	if left.Objects > 0 {
		missing, size = registry.CountText(left.Objects), terminal.SizeText(left.SizeBytes)
	}
	if s.RestSeconds > 0 {
		rest = terminal.SpanText(time.Duration(s.RestSeconds) * time.Second)
	}
	if s.Failed > 0 {
		failed = registry.CountText(s.Failed)
	}
	return []string{s.Name, string(s.State), offsite, registry.CountText(s.Objects), missing, size, rest, failed, s.Address}
}

func objectsCommand(a *cli.App) *cobra.Command {
	var q registry.StorageObjectsQuery
	cmd := &cobra.Command{
		Use: "objects [NAME]", Short: "List objects that lack copies, or that keep a storage from being retired", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.Storage = args[0]
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			l := cli.Lister[registry.StorageObject]{None: "no object lacks a copy", Row: lackingRow, Columns: []terminal.Column{
				{Name: "object"},
				{Name: "copies"},
				{Name: "off-site", Spare: 2},
				{Name: "size", Right: true, Spare: 1},
				{Name: "collection", Spare: 1},
				{Name: "storages", Spare: 1},
				{Name: "why", Flex: true},
				{Name: "title", Flex: true},
			}}
			limit := q.Limit
			return l.Print(a, func(yield func(registry.StorageObject) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.StorageObject], error) {
					q.After, q.Limit = after, limit
					return c.StorageObjects(ctx, q)
				}, yield)
			})
		},
	}
	cmd.Flags().StringVar(&q.Collection, "collection", "", "only objects of this collection")
	cli.LimitFlag(cmd, &q.Limit)
	return a.ClientFlags(cmd)
}

func lackingRow(o registry.StorageObject) []string {
	var why []string
	if o.Damaged {
		why = append(why, "damaged")
	}
	if o.Item != "" {
		why = append(why, fmt.Sprintf("copy %s, item %s", o.Status, o.Item))
	}
	return []string{
		o.ID, fmt.Sprintf("%d of %d", o.Has, o.Policy.Copies), fmt.Sprintf("%d of %d", o.Offsite, o.Policy.Offsite),
		terminal.SizeText(o.SizeBytes), o.Collection, strings.Join(o.Storages, ", "), strings.Join(why, "; "), o.Title,
	}
}

// waiting says what a retiring storage waits for.
func waiting(w registry.StorageWaits) string {
	var parts []string
	if w.Lacking.Objects > 0 {
		parts = append(parts, fmt.Sprintf("%s objects (%s) have their copies elsewhere", registry.CountText(w.Lacking.Objects), terminal.SizeText(w.Lacking.SizeBytes)))
	}
	if w.Items > 0 {
		parts = append(parts, fmt.Sprintf("%s jobs, copies and batches that write to it are over", registry.CountText(w.Items)))
	}
	if w.Damaged > 0 {
		parts = append(parts, fmt.Sprintf("the damaged files of %s are mended", terminal.Plural(w.Damaged, "object", "objects")))
	}
	if len(parts) == 0 {
		return "all objects were looked at once more"
	}
	return strings.Join(parts, ", and ")
}

// change is an act that a command asks for.
type change struct {
	name string
	yes  bool
	wire.StorageRequest
}

// command returns the command of an act on the storage that its first argument names, and for the one that
// its second names.
func (r *change) command(a *cli.App, act registry.StorageAct, use, short string, needs ...string) *cobra.Command {
	r.Act = string(act)
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.Needs(needs...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.name = args[0]; len(args) > 1 {
				r.To = args[1]
			}
			return r.run(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "the reason, recorded with the act")
	return a.ClientFlags(cmd)
}

// asks adds the flags of an act that is told beforehand.
func (r *change) asks(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "print what the act would do, and do nothing")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "skip the question")
}

// offsite adds --offsite.
func (r *change) offsite(cmd *cobra.Command) {
	cmd.Flags().BoolFunc("offsite", "the new storage is off-site (--offsite=false: it is not)", func(text string) error {
		is := text == "true" || text == ""
		if !is && text != "false" {
			return errors.New("it must be true or false")
		}
		r.Offsite = &is
		return nil
	})
}

func addCommand(a *cli.App) *cobra.Command {
	r := &change{}
	cmd := r.command(a, registry.ActFill, "add NAME", "Have collections use a storage, and copy there what they have", "NAME")
	cmd.Flags().StringArrayVar(&r.Collections, "collection", nil, "only this collection gets it; repeatable (default all)")
	r.offsite(cmd)
	r.asks(cmd)
	return cmd
}

func retireCommand(a *cli.App) *cobra.Command {
	r := &change{}
	cmd := r.command(a, registry.ActRetire, "retire NAME", "Write nothing new to a storage, and retire it when every object has its copies elsewhere", "NAME")
	r.asks(cmd)
	return cmd
}

func migrateCommand(a *cli.App) *cobra.Command {
	r := &change{}
	cmd := r.command(a, registry.ActRetire, "migrate OLD NEW", "Fill a storage in place of another one, which is then retired", "OLD", "NEW")
	r.offsite(cmd)
	r.asks(cmd)
	return cmd
}

func keepCommand(a *cli.App) *cobra.Command {
	r := &change{}
	cmd := r.command(a, registry.ActKeep, "keep NAME", "Take back that a storage is to be retired", "NAME")
	r.asks(cmd)
	return cmd
}

func setCommand(a *cli.App) *cobra.Command {
	r := &change{yes: true}
	cmd := r.command(a, registry.ActPlace, "set NAME --offsite", "Say whether a storage is off-site", "NAME")
	r.offsite(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if r.Offsite == nil {
			return exit.Usagef("give --offsite or --offsite=false")
		}
		return nil
	}
	return cmd
}

// run shows what the act does, asks, and carries it out.
func (r *change) run(ctx context.Context, a *cli.App) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if r.DryRun || !r.yes {
		asked := r.StorageRequest
		asked.DryRun = true
		would, err := c.ChangeStorage(ctx, r.name, asked)
		if err != nil {
			return err
		}
		if a.JSON && r.DryRun {
			return a.PrintJSON(would)
		}
		r.tell(a, would)
		if r.DryRun {
			return nil
		}
		if err := a.Decide(fmt.Sprintf("%s?", r.title()), false); err != nil {
			return err
		}
	}
	done, err := c.ChangeStorage(ctx, r.name, r.StorageRequest)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(done)
	}
	a.Note("storage %s: %s", done.Storage, done.State)
	if done.State == registry.StorageFilling || done.State == registry.StorageRetiring {
		a.Note("to follow it: %s", a.CommandLine("storage", "list"))
	}
	return nil
}

func (r *change) title() string {
	switch {
	case r.To != "":
		return fmt.Sprintf("fill storage %s in place of %s, and then retire %s", r.To, r.name, r.name)
	case r.Act == string(registry.ActFill):
		return "use and fill storage " + r.name
	}
	return r.Act + " storage " + r.name
}

// tell prints what the act would do.
func (r *change) tell(a *cli.App, would registry.StorageChanged) {
	for _, p := range would.Profiles {
		a.Note("collection %s: storages %s, until now %s", p.Collection, strings.Join(p.After, ", "), strings.Join(p.Before, ", "))
	}
	if n := would.Copies; n.Objects > 0 {
		a.Note("to be copied: %s, about %s", terminal.Plural(n.Objects, "object", "objects"), terminal.SizeText(n.SizeBytes))
	}
	if len(would.Profiles) == 0 && would.Copies.Objects == 0 {
		a.Note("no profile changes, and nothing is copied")
	}
}
