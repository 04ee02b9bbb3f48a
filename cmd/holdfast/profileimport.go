package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// importing is what the flags of `collection import` say.
type importing struct {
	dryRun, update, credentials bool
	storages                    []string
}

func (a *app) collectionImportCommand() *cobra.Command {
	var i importing
	cmd := &cobra.Command{
		Use: "import FILE...", Short: "Create collections from Merritt's profiles", Args: needs("FILE..."),
		Example: "  holdfast collection import merritt_demo_content --dry-run\n  holdfast collection import profiles/*_content --storage 9501=main,second --set-credentials",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.importProfiles(cmd.Context(), args, i) },
	}
	f := cmd.Flags()
	f.BoolVar(&i.dryRun, "dry-run", false, "report what would become of each property; change nothing")
	f.BoolVar(&i.update, "update", false, "also update existing collections")
	f.StringArrayVar(&i.storages, "storage", nil, "the storages that replace a node: `NODE=NAME[,NAME]`; repeatable")
	f.BoolVar(&i.credentials, "set-credentials", false, "store the name and password of a callback's address as the collection's credential, sealed")
	return a.clientFlags(cmd)
}

// imported is what `collection import --json` prints of a file.
type imported struct {
	File       string            `json:"file"`
	Collection string            `json:"collection,omitempty"`
	Outcome    string            `json:"outcome"` // created, changed, unchanged, would be created, would be changed, refused
	Version    int               `json:"version,omitempty"`
	Profile    *registry.Profile `json:"profile,omitempty"`
	Properties []profile.Fate    `json:"properties,omitempty"`
	// Credential is the origin whose credential was in the file; CredentialSet says that it was kept.
	Credential    string `json:"credential,omitempty"`
	CredentialSet bool   `json:"credential_set,omitempty"`
	Error         string `json:"error,omitempty"`
}

func (a *app) importProfiles(ctx context.Context, files []string, i importing) error {
	nodes := map[string][]string{}
	for _, s := range i.storages {
		node, names, ok := strings.Cut(s, "=")
		if !ok || node == "" || names == "" {
			return usage(fmt.Sprintf("--storage %s is not NODE=NAME[,NAME]", s))
		}
		nodes[node] = strings.Split(names, ",")
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	codes := make([]outcome, 0, len(files))
	for _, file := range files {
		out, err := a.importProfile(ctx, c, file, nodes, i)
		if ctx.Err() != nil {
			return err
		}
		codes = append(codes, outcome(codeOf(err)))
		if err != nil {
			a.complain(err)
			out.Error = err.Error()
		}
		if err := a.printImported(out); err != nil {
			return err
		}
	}
	return asError(together(codes))
}

func (a *app) printImported(out imported) error {
	if a.json {
		return a.printJSON(out)
	}
	if out.Collection == "" {
		return nil // it was told why
	}
	text := fmt.Sprintf("%s: %s", out.Collection, out.Outcome)
	if out.Version > 0 {
		text += fmt.Sprintf(", version %d", out.Version)
	}
	_, err := fmt.Fprintln(a.out, clean(text))
	return err
}

// importProfile imports one file. What it returns with an error is how far it came.
func (a *app) importProfile(ctx context.Context, c *client.Client, file string, nodes map[string][]string, i importing) (imported, error) {
	out := imported{File: file, Outcome: "refused"}
	text, err := a.readDocument(file)
	if err != nil {
		return out, err
	}
	m, err := profile.ParseMerritt(text, nodes)
	if faults := profile.Faults(nil); errors.As(err, &faults) {
		return out, profileFaults(file, "cannot be imported", faults)
	} else if err != nil {
		return out, err
	}
	out.Collection, out.Properties, out.Profile = m.Mnemonic, m.Fates, &m.Profile
	for _, f := range m.Fates {
		a.note("%s%s: %s: %s", clean(at(file, profile.Place{Line: f.Line})), clean(strings.Join(f.Properties, ", ")), f.Kind, clean(f.Text))
	}
	saved, err := saveImported(ctx, c, m, i, &out)
	if err != nil {
		return out, inFile(err, file, m.Place)
	}
	out.Version, out.Profile = saved.Version, &saved.Profile
	if m.Login == nil {
		return out, nil
	}
	out.Credential = m.Login.Origin
	if i.dryRun || !i.credentials {
		return out, nil
	}
	_, err = c.PutCredential(ctx, m.Mnemonic, wire.CredentialRequest{
		Origin: m.Login.Origin, Kind: string(registry.CredentialBasic), Name: m.Login.User, Secret: m.Login.Password(),
	})
	if err != nil {
		return out, fmt.Errorf("%s: the collection is saved, but the credential of its callback is not: %w", file, err)
	}
	out.CredentialSet = true
	return out, nil
}

// saveImported makes a profile the collection's, unless there is another and that was not to be changed.
func saveImported(ctx context.Context, c *client.Client, m *profile.Merritt, i importing, out *imported) (registry.Collection, error) {
	before, err := c.Collection(ctx, m.Mnemonic)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return before, err
	}
	to := registry.Collection{Mnemonic: m.Mnemonic, Profile: m.Profile}
	would, err := c.SaveProfile(ctx, to, true)
	if err != nil {
		return before, err
	}
	there := before.Version > 0
	switch {
	case there && would.Version == before.Version:
		out.Outcome = "unchanged"
		return before, nil
	case there && !i.update:
		return before, fix(&registry.VersionError{Mnemonic: m.Mnemonic, Want: registry.NoVersion, Have: before.Version}, "or give --update")
	case i.dryRun && there:
		out.Outcome = "would be changed"
		return would, nil
	case i.dryRun:
		out.Outcome = "would be created"
		return would, nil
	}
	to.Version = registry.NoVersion
	done := "created"
	if there {
		to.Version, done = before.Version, "changed"
	}
	saved, err := c.SaveProfile(ctx, to, false)
	if err == nil {
		out.Outcome = done
	}
	return saved, err
}
