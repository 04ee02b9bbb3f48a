package object

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func auditCommand(a *cli.App) *cobra.Command {
	var whole bool
	cmd := &cobra.Command{
		Use: "audit ID...|--all", Short: "Verify objects' event chains against receipts and checkpoints",
		Args: someOrAll(&whole),
		RunE: func(cmd *cobra.Command, args []string) error { return auditObjects(cmd.Context(), a, args, whole) },
	}
	cmd.Flags().BoolVar(&whole, "all", false, "audit every object, including deleted ones")
	return a.ClientFlags(cmd)
}

func acceptOlderCommand(a *cli.App) *cobra.Command {
	var r wire.AcceptanceRequest
	cmd := &cobra.Command{
		Use: "accept-older --reason TEXT|--approve [--agrees-to REQUEST]", Short: "Accept a record that is older than its checkpoints (needs two people)",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return acceptOlder(cmd.Context(), a, r) },
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "request acceptance, with this reason, which is kept for ever")
	cmd.Flags().BoolVar(&r.Approve, "approve", false, "approve another person's request; this cannot be undone")
	cmd.Flags().StringVar(&r.AgreesTo, "agrees-to", "", "with --approve: approve this `REQUEST`, which the command printed")
	return a.ClientFlags(cmd)
}

func acceptOlder(ctx context.Context, a *cli.App, r wire.AcceptanceRequest) error {
	if (r.Reason != "") == r.Approve || r.AgreesTo != "" && !r.Approve {
		return exit.Usagef("give either --reason TEXT or --approve")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	done, err := c.AcceptOlder(ctx, r)
	if p := new(wire.Problem); r.AgreesTo == "" && errors.As(err, &p) && p.Code == wire.CodeConfirm {
		for _, text := range p.Consequences {
			a.Note("%s", terminal.Clean(text))
		}
		err = a.Decide("accept this loss for good?", false)
		if undecided := new(exit.UndecidedError); errors.As(err, &undecided) {
			undecided.How = "--agrees-to " + p.AgreesTo
		}
		if err == nil {
			r.AgreesTo = p.AgreesTo
			done, err = c.AcceptOlder(ctx, r)
		}
	}
	switch {
	case errors.Is(err, registry.ErrSamePerson):
		return exit.Fix(err, "they run `holdfast object accept-older --approve`")
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(done)
	case done.ApprovedBy == "":
		for _, l := range done.Lost {
			for _, text := range l.Text() {
				if _, err := fmt.Fprintln(a.Out, terminal.Clean(text)); err != nil {
					return err
				}
			}
		}
		if done.Replaces != "" {
			a.Note("this replaces the unapproved request of %s", terminal.Clean(done.Replaces))
		}
		a.Note("requested; another admin can approve it until %s with `%s`", terminal.TimeText(done.ExpiresAt), a.CommandLine("object", "accept-older", "--approve"))
		return nil
	}
	for _, c := range done.Written {
		if _, err := fmt.Fprintf(a.Out, "checkpoint written in storage %s\n", terminal.Clean(c)); err != nil {
			return err
		}
	}
	a.Note("accepted: requested by %s, approved by %s; every later audit shows it", done.AskedBy, done.ApprovedBy)
	return nil
}

// auditing sums up an audit.
type auditing struct {
	objects, tampered, events, receipts int64
	checkpoints, broken                 int64
	codes                               []exit.Code // of objects that could not be audited
}

func auditObjects(ctx context.Context, a *cli.App, ids []string, whole bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	var v auditing
	if whole {
		if err := v.compare(ctx, a, c, ""); err != nil {
			return err
		}
		_, err = eachObject(ctx, a, registry.ObjectQuery{}, func(o registry.Object) error { return v.object(ctx, a, c, o.ID) })
		if err != nil {
			return err
		}
	}
	for _, id := range ids {
		err := v.object(ctx, a, c, id)
		if err == nil {
			err = v.compare(ctx, a, c, id)
		}
		if ctx.Err() != nil {
			return err
		} else if err != nil {
			v.codes = append(v.codes, exit.Of(err))
			a.Complain(err)
		}
	}
	text := fmt.Sprintf("audited %s, %s, against %s and %s: ", terminal.Plural(v.objects, "object", "objects"), terminal.Plural(v.events, "event", "events"),
		terminal.Plural(v.receipts, "receipt", "receipts"), terminal.Plural(v.checkpoints, "checkpoint", "checkpoints"))
	if v.tampered+v.broken == 0 {
		a.Note("%sall match what was signed", text)
		return exit.Together(v.codes).Err()
	}
	a.Note("%s%s and %s differ from what was signed: examine the database, its backups and the storage before you do anything else",
		text, terminal.Plural(v.tampered, "object", "objects"), terminal.Plural(v.broken, "checkpoint", "checkpoints"))
	return exit.Failed // takes precedence: a person must act
}

// object audits one object and prints the findings.
func (v *auditing) object(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	r, err := c.AuditObject(ctx, id)
	if err != nil {
		return fmt.Errorf("audit %s: %w", id, err)
	}
	v.objects, v.events, v.receipts = v.objects+1, v.events+r.Events, v.receipts+r.Receipts
	verdict := "whole"
	if !r.Valid {
		v.tampered++
		verdict = "TAMPERED"
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	_, err = fmt.Fprintf(a.Out, "%-8s  %s  %s, %s\n", verdict, r.ObjectID, terminal.Plural(r.Events, "event", "events"), terminal.Plural(r.Receipts, "receipt", "receipts"))
	for _, f := range r.Faults {
		if err == nil {
			_, err = fmt.Fprintf(a.Out, "          %s%s\n", eventText(f.Event), terminal.Clean(f.Message))
		}
	}
	return err
}

func eventText(seq int64) string {
	if seq == 0 {
		return ""
	}
	return fmt.Sprintf("event %d: ", seq)
}

// compare compares the record with the checkpoints: of one object, or of all if id is "".
func (v *auditing) compare(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	r, err := c.AuditCheckpoints(ctx, id)
	if err != nil {
		return fmt.Errorf("compare with the checkpoints: %w", err)
	}
	for _, s := range r.Storages {
		if s.Name != "" {
			v.checkpoints++
		}
		if !s.Valid {
			v.broken++
		}
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	for _, s := range r.Storages {
		if err := printCheckpoint(a, s); err != nil {
			return err
		}
	}
	return nil
}

func printCheckpoint(a *cli.App, s wire.CheckpointAudit) error {
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(a.Out, format+"\n", args...)
		}
	}
	made := "made " + terminal.TimeText(s.At)
	for _, g := range s.Accepted {
		line("ACCEPTED  in storage %s the last events of %s before checkpoint %s are lost: accepted %s, asked for by %s, approved by %s: %s",
			s.Storage, terminal.Plural(g.Objects, "object", "objects"), g.Checkpoint, terminal.TimeText(g.At), terminal.Clean(g.AskedBy), terminal.Clean(g.ApprovedBy), terminal.Clean(g.Reason))
		for _, lost := range g.Gaps {
			line("          %s  events %d to %d", lost.ObjectID, lost.First, lost.Last)
		}
	}
	switch {
	case s.Name == "":
		line("none      no checkpoint in storage %s yet: one is made each day", s.Storage)
	case s.Valid:
		line("whole     checkpoint %s in storage %s, %s, %s", s.Name, s.Storage, made, terminal.Plural(s.Objects, "object", "objects"))
		if s.Buried > 0 {
			line("          of %s the record has no events; the signed tombstones say where they ended", terminal.Plural(s.Buried, "deleted object", "deleted objects"))
		}
	case s.Damage != "":
		line("TAMPERED  checkpoint %s in storage %s: %s", s.Name, s.Storage, terminal.Clean(s.Damage))
	default:
		if s.Rewritten == 0 {
			line("OLDER     the record is older than checkpoint %s in storage %s, %s", s.Name, s.Storage, made)
			line("          of %s the last events are missing: they were cut off, or the database was restored from", terminal.Plural(s.Older, "object", "objects"))
			line("          a backup from before: then two people accept that by `holdfast object accept-older` (docs/receipt.md)")
		} else {
			line("TAMPERED  the record is not what checkpoint %s in storage %s says, %s: %s rewritten, %s cut off", s.Name, s.Storage, made,
				terminal.Plural(s.Rewritten, "object", "objects"), terminal.Plural(s.Older, "object", "objects"))
		}
		for _, f := range s.Faults {
			line("          %s  event %d: %s", f.ObjectID, f.Event, terminal.Clean(f.Message))
		}
	}
	return err
}
