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
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// importing has the flags of `collection import`.
type importing struct {
	dryRun, update, credentials bool
	storages                    []string
}

func importCommand(a *cli.App) *cobra.Command {
	var i importing
	cmd := &cobra.Command{
		Use: "import FILE...", Short: "Create collections from Merritt's profiles", Args: cli.Needs("FILE..."),
		Example: "  holdfast collection import merritt_demo_content --dry-run\n  holdfast collection import profiles/*_content --storage 9501=main,second --set-credentials",
		RunE:    func(cmd *cobra.Command, args []string) error { return importProfiles(cmd.Context(), a, args, i) },
	}
	f := cmd.Flags()
	f.BoolVar(&i.dryRun, "dry-run", false, "report the outcome of each property; change nothing")
	f.BoolVar(&i.update, "update", false, "also update existing collections")
	f.StringArrayVar(&i.storages, "storage", nil, "the storages that replace a node: `NODE=NAME[,NAME]`; repeatable")
	f.BoolVar(&i.credentials, "set-credentials", false, "store the name and password of a callback's address, encrypted, as the collection's credential")
	return a.ClientFlags(cmd)
}

// Imported is the output of `collection import --json` for a file.
type Imported struct {
	File       string            `json:"file"`
	Collection string            `json:"collection,omitempty"`
	Outcome    string            `json:"outcome"` // created, changed, unchanged, would be created, would be changed, refused
	Version    int               `json:"version,omitempty"`
	Profile    *registry.Profile `json:"profile,omitempty"`
	Properties []profile.Fate    `json:"properties,omitempty"`
	// Credential is the origin whose credential was in the file. CredentialSet: it was stored.
	Credential    string `json:"credential,omitempty"`
	CredentialSet bool   `json:"credential_set,omitempty"`
	Error         string `json:"error,omitempty"`
}

func importProfiles(ctx context.Context, a *cli.App, files []string, i importing) error {
	nodes := map[string][]string{}
	for _, s := range i.storages {
		node, names, ok := strings.Cut(s, "=")
		if !ok || node == "" || names == "" {
			return exit.Usagef("--storage %s is not NODE=NAME[,NAME]", s)
		}
		nodes[node] = strings.Split(names, ",")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	codes := make([]exit.Code, 0, len(files))
	for _, file := range files {
		out, err := importProfile(ctx, a, c, file, nodes, i)
		if ctx.Err() != nil {
			return err
		}
		codes = append(codes, exit.Of(err))
		if err != nil {
			a.Complain(err)
			out.Error = err.Error()
		}
		if err := printImported(a, out); err != nil {
			return err
		}
	}
	return exit.Together(codes).Err()
}

func printImported(a *cli.App, out Imported) error {
	if a.JSON {
		return a.PrintJSON(out)
	}
	if out.Collection == "" {
		return nil // the reason was printed
	}
	text := fmt.Sprintf("%s: %s", out.Collection, out.Outcome)
	if out.Version > 0 {
		text += fmt.Sprintf(", version %d", out.Version)
	}
	_, err := fmt.Fprintln(a.Out, terminal.Clean(text))
	return err
}

// importProfile imports one file. With an error it returns the result so far.
func importProfile(ctx context.Context, a *cli.App, c *client.Client, file string, nodes map[string][]string, i importing) (Imported, error) {
	out := Imported{File: file, Outcome: "refused"}
	text, err := payload.ReadDocument(file, a.In)
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
		a.Note("%s%s: %s: %s", terminal.Clean(at(file, profile.Place{Line: f.Line})), terminal.Clean(strings.Join(f.Properties, ", ")), f.Kind, terminal.Clean(f.Text))
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

// saveImported saves a profile. It refuses to change an existing one without --update.
func saveImported(ctx context.Context, c *client.Client, m *profile.Merritt, i importing, out *Imported) (registry.Collection, error) {
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
		return before, exit.Fix(&registry.VersionError{Mnemonic: m.Mnemonic, Want: registry.NoVersion, Have: before.Version}, "or give --update")
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
