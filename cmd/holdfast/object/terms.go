package object

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/payload"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// setting has the flags of `object terms`.
type setting struct {
	file, reason string
	none         bool
}

func termsCommand(a *cli.App) *cobra.Command {
	var s setting
	cmd := &cobra.Command{
		Use: "terms ID", Short: "Show or replace an object's rights, preservation level and embargo",
		Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return objectTerms(cmd.Context(), a, args[0], s) },
	}
	cmd.Flags().StringVar(&s.file, "set", "", "replace them with those of a `FILE` in YAML or JSON (-: standard input)")
	cmd.Flags().BoolVar(&s.none, "none", false, "remove them all; an embargo ends")
	cmd.Flags().StringVar(&s.reason, "reason", "", "the reason, which is kept for ever")
	return a.ClientFlags(cmd)
}

func objectTerms(ctx context.Context, a *cli.App, id string, s setting) error {
	changes := s.file != "" || s.none
	switch {
	case s.file != "" && s.none:
		return exit.Usagef("give one of --set FILE and --none")
	case changes && s.reason == "":
		return exit.Usagef("give --reason TEXT; it is kept for ever")
	case !changes && s.reason != "":
		return exit.Usagef("--reason is for a change: give --set FILE or --none, too")
	}
	var terms registry.Terms
	if s.file != "" {
		var err error
		if terms, err = payload.ReadTerms(s.file, a.In); err != nil {
			return err
		}
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	var o registry.Object
	if changes {
		o, err = c.SetTerms(ctx, id, terms, s.reason)
	} else {
		o, err = c.Object(ctx, id)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(o.Terms)
	}
	if o.Terms.IsZero() {
		a.Note("%s has no rights, preservation level or embargo", o.ID)
		return nil
	}
	return termsFacts(&terminal.Facts{}, o.Terms).Write(a.Out)
}

// termsFacts adds terms to the facts of an object.
func termsFacts(f *terminal.Facts, t registry.Terms) *terminal.Facts {
	if t.Rights != nil {
		f.Add("rights", t.Rights.String())
	}
	f.Add("preservation level", t.PreservationLevel)
	f.Add("embargo until", t.EmbargoUntil)
	f.Add("embargo reason", t.EmbargoReason)
	return f
}
