package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// saving is what the flags of `collection create` and `update` say.
type saving struct {
	file    string
	dryRun  bool
	version int // that it is saved over; 0: the one that is there

	name, owner string
	memberOf    []string
}

func (s *saving) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "profile", "", "the profile, in YAML or JSON, in `FILE`; - is standard input")
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "validate the profile and report what would change; change nothing")
}

func (a *app) collectionCreateCommand() *cobra.Command {
	var s saving
	cmd := &cobra.Command{
		Use: "create NAME [--profile FILE]", Short: "Create a collection", Args: needs("NAME"),
		Example: "  holdfast collection create maps --profile maps.yaml\n  holdfast collection create maps --owner ark:/99999/owner --member-of ark:/99999/maps",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.file == "" && s.owner == "" {
				return usage("give --profile FILE, or --owner ARK and --member-of ARK")
			}
			return a.createCollection(cmd.Context(), args[0], s)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&s.name, "name", "", "the collection's name for people, in place of the profile's")
	cmd.Flags().StringVar(&s.owner, "owner", "", "the `ARK` that local ids are unique under, in place of the profile's")
	cmd.Flags().StringSliceVar(&s.memberOf, "member-of", nil, "an `ARK` that objects become members of, in place of the profile's; repeatable")
	return a.clientFlags(cmd)
}

func (a *app) collectionUpdateCommand() *cobra.Command {
	var s saving
	cmd := &cobra.Command{
		Use: "update NAME --profile FILE", Short: "Change a collection's profile for later submissions", Args: needs("NAME"),
		Example: "  holdfast collection show maps --profile > maps.yaml\n  holdfast collection update maps --profile maps.yaml --if-version 3\n" +
			"  holdfast collection show maps --version 2 --profile | holdfast collection update maps --profile -",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.file == "" {
				return usage("give --profile FILE")
			}
			if s.version < 0 || s.version == 0 && cmd.Flags().Changed("if-version") {
				return usage("--if-version is a version's number, from 1 on")
			}
			return a.updateCollection(cmd.Context(), args[0], s)
		},
	}
	s.flags(cmd)
	cmd.Flags().IntVar(&s.version, "if-version", 0, "refuse unless the profile is still at version `N`")
	return a.clientFlags(cmd)
}

func (a *app) createCollection(ctx context.Context, name string, s saving) error {
	doc := &profile.Document{}
	var err error
	if s.file != "" {
		if doc, err = a.readProfile(s.file); err != nil {
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
	c, err := a.connect()
	if err != nil {
		return err
	}
	made, err := c.SaveProfile(ctx, registry.Collection{Mnemonic: name, Profile: doc.Profile, Version: registry.NoVersion}, s.dryRun)
	if err != nil {
		return inFile(err, s.file, doc.Place)
	}
	if a.json {
		return a.printJSON(made)
	}
	if s.dryRun {
		a.note("collection %s would be created", clean(made.Mnemonic))
	} else {
		a.note("created: collection %s", clean(made.Mnemonic))
	}
	return nil
}

func (a *app) updateCollection(ctx context.Context, name string, s saving) error {
	doc, err := a.readProfile(s.file)
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	before, err := c.Collection(ctx, name)
	if err != nil {
		return err
	}
	over := before.Version // nobody gets in between
	if s.version > 0 {
		over = s.version
	}
	after, err := c.SaveProfile(ctx, registry.Collection{Mnemonic: name, Profile: doc.Profile, Version: over}, s.dryRun)
	if err != nil {
		return inFile(err, s.file, doc.Place)
	}
	if a.json {
		return a.printJSON(after)
	}
	changes, err := profile.Changes(before.Profile, after.Profile)
	if err != nil {
		return err
	}
	for _, line := range changes {
		if _, err := fmt.Fprintln(a.out, clean(line)); err != nil {
			return err
		}
	}
	switch {
	case after.Version == before.Version:
		a.note("nothing changes: the profile of %s is at version %d", clean(name), after.Version)
	case s.dryRun:
		a.note("this would be version %d of the profile of %s", after.Version, clean(name))
	default:
		a.note("changed: the profile of %s is at version %d", clean(name), after.Version)
	}
	return nil
}

// readProfile reads a profile from a file, or from standard input.
func (a *app) readProfile(file string) (*profile.Document, error) {
	text, err := a.readDocument(file)
	if err != nil {
		return nil, err
	}
	doc, err := profile.Parse(text)
	if faults := profile.Faults(nil); errors.As(err, &faults) {
		return nil, profileFaults(file, "is no profile that can be taken", faults)
	}
	return doc, err
}

// readDocument reads a file of at most the size that a profile may have and a byte, or standard input for "-".
func (a *app) readDocument(file string) (text []byte, err error) {
	in := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, cause(err))
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	if text, err = io.ReadAll(io.LimitReader(in, profile.MaxSize+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", documentName(file), cause(err))
	}
	return text, nil
}

func documentName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// profileFaults is what is wrong with a file, a line each.
func profileFaults(file, what string, faults profile.Faults) error {
	lines := []string{fmt.Sprintf("%s %s; correct it, nothing was changed", documentName(file), what)}
	for _, f := range faults {
		lines = append(lines, at(file, f.Place)+f.Message)
	}
	return &usageError{errors.New(strings.Join(lines, "\n"))}
}

// at is a place in a file as editors take it, and what separates it from what is said of it.
func at(file string, p profile.Place) string {
	text := documentName(file)
	if p.Line > 0 {
		text += fmt.Sprintf(":%d", p.Line)
	}
	if p.Column > 0 {
		text += fmt.Sprintf(":%d", p.Column)
	}
	return text + ": "
}

// inFile tells of each fault that the Registry found where in the file it stands.
func inFile(err error, file string, place func(location string) profile.Place) error {
	var p *wire.Problem
	if !errors.As(err, &p) || file == "" {
		return err
	}
	told := *p
	told.Faults = nil
	for _, f := range p.Faults {
		if name, ok := strings.CutPrefix(f.Location, "body"); ok {
			in := place(f.Location)
			f.Line, f.Column = in.Line, in.Column
			f.Location = strings.TrimSuffix(at(file, in)+strings.TrimPrefix(name, "."), ": ")
		}
		told.Faults = append(told.Faults, f)
	}
	return &told
}
