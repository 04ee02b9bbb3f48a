package collection

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/payload"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// saving has the flags of `collection create` and `update`.
type saving struct {
	file    string
	dryRun  bool
	version int // the version to replace; 0: the present one

	name, owner string
	memberOf    []string
}

func (s *saving) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "profile", "", "the profile, in YAML or JSON, in `FILE`; - is standard input")
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "validate the profile and report what would change; change nothing")
}

func createCommand(a *cli.App) *cobra.Command {
	var s saving
	cmd := &cobra.Command{
		Use: "create NAME [--profile FILE]", Short: "Create a collection", Args: cli.Needs("NAME"),
		Example: "  holdfast collection create maps --profile maps.yaml\n  holdfast collection create maps --owner ark:/99999/owner --member-of ark:/99999/maps",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.file == "" && s.owner == "" {
				return exit.Usagef("give --profile FILE, or --owner ARK and --member-of ARK")
			}
			return createCollection(cmd.Context(), a, args[0], s)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&s.name, "name", "", "the collection's name for people; replaces the profile's")
	cmd.Flags().StringVar(&s.owner, "owner", "", "the owner's `ARK`, under which local ids are unique; replaces the profile's")
	cmd.Flags().StringSliceVar(&s.memberOf, "member-of", nil, "an `ARK` that objects become members of; replaces the profile's; repeatable")
	return a.ClientFlags(cmd)
}

func updateCommand(a *cli.App) *cobra.Command {
	var s saving
	cmd := &cobra.Command{
		Use: "update NAME --profile FILE", Short: "Change a collection's profile for later submissions", Args: cli.Needs("NAME"),
		Example: "  holdfast collection show maps --profile > maps.yaml\n  holdfast collection update maps --profile maps.yaml --if-version 3\n" +
			"  holdfast collection show maps --version 2 --profile | holdfast collection update maps --profile -",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.file == "" {
				return exit.Usagef("give --profile FILE")
			}
			if s.version < 0 || s.version == 0 && cmd.Flags().Changed("if-version") {
				return exit.Usagef("--if-version must be 1 or more")
			}
			return updateCollection(cmd.Context(), a, args[0], s)
		},
	}
	s.flags(cmd)
	cmd.Flags().IntVar(&s.version, "if-version", 0, "refuse unless the profile is still at version `N`")
	return a.ClientFlags(cmd)
}

func createCollection(ctx context.Context, a *cli.App, name string, s saving) error {
	doc := &profile.Document{}
	var err error
	if s.file != "" {
		if doc, err = readProfile(a, s.file); err != nil {
			return err
		}
	}
	if s.name != "" {
		doc.Profile.Name = s.name
	}
	if s.owner != "" {
		doc.Profile.Owner = s.owner
	}
	if len(s.memberOf) > 0 {
		doc.Profile.Collections = s.memberOf
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	made, err := c.SaveProfile(ctx, registry.Collection{Mnemonic: name, Profile: doc.Profile, Version: registry.NoVersion}, s.dryRun)
	if err != nil {
		return inFile(err, s.file, doc.Place)
	}
	if a.JSON {
		return a.PrintJSON(made)
	}
	if s.dryRun {
		a.Note("collection %s would be created", terminal.Clean(made.Mnemonic))
	} else {
		a.Note("created: collection %s", terminal.Clean(made.Mnemonic))
	}
	return nil
}

func updateCollection(ctx context.Context, a *cli.App, name string, s saving) error {
	doc, err := readProfile(a, s.file)
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	before, err := c.Collection(ctx, name)
	if err != nil {
		return err
	}
	over := before.Version // so that no concurrent change is lost
	if s.version > 0 {
		over = s.version
	}
	after, err := c.SaveProfile(ctx, registry.Collection{Mnemonic: name, Profile: doc.Profile, Version: over}, s.dryRun)
	if err != nil {
		return inFile(err, s.file, doc.Place)
	}
	if a.JSON {
		return a.PrintJSON(after)
	}
	changes, err := profile.Changes(before.Profile, after.Profile)
	if err != nil {
		return err
	}
	for _, line := range changes {
		if _, err := fmt.Fprintln(a.Out, terminal.Clean(line)); err != nil {
			return err
		}
	}
	switch {
	case after.Version == before.Version:
		a.Note("nothing changes: the profile of %s is at version %d", terminal.Clean(name), after.Version)
	case s.dryRun:
		a.Note("this would be version %d of the profile of %s", after.Version, terminal.Clean(name))
	default:
		a.Note("changed: the profile of %s is at version %d", terminal.Clean(name), after.Version)
	}
	return nil
}

// readProfile reads a profile from a file, or from standard input for "-".
func readProfile(a *cli.App, file string) (*profile.Document, error) {
	text, err := payload.ReadDocument(file, a.In)
	if err != nil {
		return nil, err
	}
	doc, err := profile.Parse(text)
	if faults := profile.Faults(nil); errors.As(err, &faults) {
		return nil, profileFaults(file, "is not a valid profile", faults)
	}
	return doc, err
}

// profileFaults returns the faults of a file as an error with a line for each.
func profileFaults(file, what string, faults profile.Faults) error {
	lines := []string{fmt.Sprintf("%s %s; nothing was changed; correct these faults:", payload.DocumentName(file), what)}
	for _, f := range faults {
		lines = append(lines, at(file, f.Place)+f.Message)
	}
	return exit.Usagef("%s", strings.Join(lines, "\n"))
}

// at returns a place in a file as FILE:LINE:COLUMN and ": ".
func at(file string, p profile.Place) string {
	text := payload.DocumentName(file)
	if p.Line > 0 {
		text += fmt.Sprintf(":%d", p.Line)
	}
	if p.Column > 0 {
		text += fmt.Sprintf(":%d", p.Column)
	}
	return text + ": "
}

// inFile adds to each fault from the Registry its place in the file.
func inFile(err error, file string, place func(location string) profile.Place) error {
	var p *wire.Problem
	if !errors.As(err, &p) || file == "" {
		return err
	}
	placed := *p
	placed.Faults = nil
	for _, f := range p.Faults {
		if name, ok := strings.CutPrefix(f.Location, "body"); ok {
			in := place(f.Location)
			f.Line, f.Column = in.Line, in.Column
			f.Location = strings.TrimSuffix(at(file, in)+strings.TrimPrefix(name, "."), ": ")
		}
		placed.Faults = append(placed.Faults, f)
	}
	return &placed
}
