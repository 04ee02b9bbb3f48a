package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func (a *app) objectAuditCommand() *cobra.Command {
	var whole bool
	cmd := &cobra.Command{
		Use: "audit ID...|--all", Short: "Verify objects' event chains against receipts and checkpoints",
		Args: someOrAll(&whole),
		RunE: func(cmd *cobra.Command, args []string) error { return a.auditObjects(cmd.Context(), args, whole) },
	}
	cmd.Flags().BoolVar(&whole, "all", false, "audit every object, deleted ones too")
	return a.clientFlags(cmd)
}

func (a *app) objectAcceptOlderCommand() *cobra.Command {
	var r wire.AcceptanceRequest
	cmd := &cobra.Command{
		Use: "accept-older --reason TEXT|--approve [--agrees-to REQUEST]", Short: "Accept a record that is older than its checkpoints (needs two people)",
		Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.acceptOlder(cmd.Context(), r) },
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "make the request, with this reason; it is kept for ever")
	cmd.Flags().BoolVar(&r.Approve, "approve", false, "approve another person's request; it cannot be undone")
	cmd.Flags().StringVar(&r.AgreesTo, "agrees-to", "", "with --approve: agree to this `REQUEST`, as the command has shown it")
	return a.clientFlags(cmd)
}

func (a *app) acceptOlder(ctx context.Context, r wire.AcceptanceRequest) error {
	if (r.Reason != "") == r.Approve || r.AgreesTo != "" && !r.Approve {
		return usage("give either --reason TEXT or --approve")
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	done, err := c.AcceptOlder(ctx, r)
	if p := new(wire.Problem); r.AgreesTo == "" && errors.As(err, &p) && p.Code == wire.CodeConfirm {
		for _, text := range p.Consequences {
			a.note("%s", clean(text))
		}
		err = a.decide("accept that this is lost?", false)
		if undecided := new(undecidedError); errors.As(err, &undecided) {
			undecided.how = "--agrees-to " + p.AgreesTo
		}
		if err == nil {
			r.AgreesTo = p.AgreesTo
			done, err = c.AcceptOlder(ctx, r)
		}
	}
	switch {
	case errors.Is(err, registry.ErrSamePerson):
		return fix(err, "`holdfast object accept-older --approve` is for another person, with a token of their own")
	case err != nil:
		return err
	case a.json:
		return a.printJSON(done)
	case done.ApprovedBy == "":
		for _, l := range done.Lost {
			for _, text := range l.Text() {
				if _, err := fmt.Fprintln(a.out, clean(text)); err != nil {
					return err
				}
			}
		}
		if done.Replaces != "" {
			a.note("this takes the place of what %s had asked for and nobody had approved", clean(done.Replaces))
		}
		a.note("asked to accept it; another admin has until %s to approve it by `%s`", timeText(done.ExpiresAt), a.commandLine("object", "accept-older", "--approve"))
		return nil
	}
	for _, c := range done.Written {
		if _, err := fmt.Fprintf(a.out, "checkpoint written in storage %s\n", clean(c)); err != nil {
			return err
		}
	}
	a.note("accepted, as %s asked and %s agreed; every audit tells of it from now on", done.AskedBy, done.ApprovedBy)
	return nil
}

// auditing adds up what an audit came to.
type auditing struct {
	objects, tampered, events, receipts int64
	checkpoints, broken                 int64
	codes                               []outcome // of objects that could not be audited
}

func (a *app) auditObjects(ctx context.Context, ids []string, whole bool) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	var v auditing
	if whole {
		if err := v.compare(ctx, a, c, ""); err != nil {
			return err
		}
		_, err = a.eachObject(ctx, registry.ObjectQuery{}, func(o registry.Object) error { return v.object(ctx, a, c, o.ID) })
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
			v.codes = append(v.codes, outcome(codeOf(err)))
			a.complain(err)
		}
	}
	text := fmt.Sprintf("audited %s, %s, against %s and %s: ", plural(v.objects, "object", "objects"), plural(v.events, "event", "events"),
		plural(v.receipts, "receipt", "receipts"), plural(v.checkpoints, "checkpoint", "checkpoints"))
	if v.tampered+v.broken == 0 {
		a.note("%sall as they were signed", text)
		return asError(together(v.codes))
	}
	a.note("%s%s and %s do not agree with what was signed: have somebody look at the database, its backups and the storage before anything else is done",
		text, plural(v.tampered, "object", "objects"), plural(v.broken, "checkpoint", "checkpoints"))
	return asError(exitFailed) // whatever else happened: that is what somebody has to see to first
}

// object audits one object and prints what was found.
func (v *auditing) object(ctx context.Context, a *app, c *client.Client, id string) error {
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
	if a.json {
		return a.printJSON(r)
	}
	_, err = fmt.Fprintf(a.out, "%-8s  %s  %s, %s\n", verdict, r.ObjectID, plural(r.Events, "event", "events"), plural(r.Receipts, "receipt", "receipts"))
	for _, f := range r.Faults {
		if err == nil {
			_, err = fmt.Fprintf(a.out, "          %s%s\n", eventText(f.Event), clean(f.Message))
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

// compare compares the record with the checkpoints, of one object alone unless that is "".
func (v *auditing) compare(ctx context.Context, a *app, c *client.Client, id string) error {
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
	if a.json {
		return a.printJSON(r)
	}
	for _, s := range r.Storages {
		if err := printCheckpoint(a, s); err != nil {
			return err
		}
	}
	return nil
}

func printCheckpoint(a *app, s wire.CheckpointAudit) error {
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(a.out, format+"\n", args...)
		}
	}
	made := "made " + timeText(s.At)
	for _, g := range s.Accepted {
		line("ACCEPTED  in storage %s the last events of %s before checkpoint %s are lost: accepted %s, asked for by %s, approved by %s: %s",
			s.Storage, plural(g.Objects, "object", "objects"), g.Checkpoint, timeText(g.At), clean(g.AskedBy), clean(g.ApprovedBy), clean(g.Reason))
		for _, lost := range g.Gaps {
			line("          %s  events %d to %d", lost.ObjectID, lost.First, lost.Last)
		}
	}
	switch {
	case s.Name == "":
		line("none      no checkpoint in storage %s yet: one is made each day", s.Storage)
	case s.Valid:
		line("whole     checkpoint %s in storage %s, %s, %s", s.Name, s.Storage, made, plural(s.Objects, "object", "objects"))
	case s.Damage != "":
		line("TAMPERED  checkpoint %s in storage %s: %s", s.Name, s.Storage, clean(s.Damage))
	default:
		if s.Rewritten == 0 {
			line("OLDER     the record is older than checkpoint %s in storage %s, %s", s.Name, s.Storage, made)
			line("          of %s the last events are missing: they were cut off, or the database was restored from", plural(s.Older, "object", "objects"))
			line("          a backup from before: then two people accept that by `holdfast object accept-older` (docs/receipt.md)")
		} else {
			line("TAMPERED  the record is not what checkpoint %s in storage %s says, %s: %s rewritten, %s cut off", s.Name, s.Storage, made,
				plural(s.Rewritten, "object", "objects"), plural(s.Older, "object", "objects"))
		}
		for _, f := range s.Faults {
			line("          %s  event %d: %s", f.ObjectID, f.Event, clean(f.Message))
		}
	}
	return err
}
