// Package credential has the commands that set, list and remove credentials of collections and
// subscriptions (Owner).
//
// A secret comes from a file, standard input or an unechoed terminal. It is never read from the
// command line, and never printed.
package credential

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// Owner describes the kind of owner: collection or subscription.
type Owner struct {
	Noun   string
	Set    *cobra.Command // Use and help
	Put    func(c *client.Client, ctx context.Context, name string, r wire.CredentialRequest) (wire.Credential, error)
	List   func(c *client.Client, ctx context.Context, name string) ([]wire.Credential, error)
	Remove func(c *client.Client, ctx context.Context, name, origin string) error
}

// Commands returns the command `credential` of an owner, with set, list and remove.
func Commands(a *cli.App, short string, o Owner) *cobra.Command {
	return cli.Group("credential", short, setCommand(a, o), listCommand(a, o), removeCommand(a, o))
}

// credentialFlags are the flags that choose the kind of credential.
type credentialFlags struct {
	basic, s3     string
	bearer, chain bool
	signing       bool
	secretFile    string
}

func setCommand(a *cli.App, o Owner) *cobra.Command {
	var r wire.CredentialRequest
	var f credentialFlags
	cmd := o.Set
	cmd.Args = cli.Needs("NAME", "ORIGIN")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.into(&r); err != nil {
			return err
		}
		r.Origin = args[1]
		return setCredential(cmd.Context(), a, o, args[0], r, f)
	}
	flags := cmd.Flags()
	flags.StringVar(&f.basic, "basic", "", "a user and a password, for a web server")
	flags.BoolVar(&f.bearer, "bearer", false, "a token, for a web server")
	flags.StringVar(&f.s3, "s3", "", "an access key's id and its secret key, for a bucket")
	flags.BoolVar(&f.chain, "default-chain", false, "for a bucket: the workers' own AWS credentials (default chain), no secret")
	flags.BoolVar(&f.signing, "signing", false, "a key that signs callbacks; its origin is signing:NAME")
	flags.StringVar(&f.secretFile, "secret-file", "", "the file with the secret (default standard input)")
	flags.StringVar(&r.Endpoint, "endpoint", "", "a bucket's service, if not AWS")
	flags.StringVar(&r.Region, "region", "", "a bucket's region")
	flags.BoolVar(&r.PathStyle, "path-style", false, "put the bucket's name into the path, as most services other than AWS require")
	return a.ClientFlags(cmd)
}

// into sets the kind in a request.
func (f credentialFlags) into(r *wire.CredentialRequest) error {
	kinds := map[registry.CredentialKind]bool{
		registry.CredentialBasic: f.basic != "", registry.CredentialBearer: f.bearer,
		registry.CredentialS3: f.s3 != "", registry.CredentialDefaultChain: f.chain, registry.CredentialSigning: f.signing,
	}
	given := 0
	for kind, set := range kinds {
		if set {
			given++
			r.Kind = string(kind)
		}
	}
	if given != 1 {
		return exit.Usagef("give one of --basic USER, --bearer, --s3 KEYID, --default-chain and --signing")
	}
	r.Name = f.basic + f.s3
	return nil
}

func setCredential(ctx context.Context, a *cli.App, o Owner, name string, r wire.CredentialRequest, f credentialFlags) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if !f.chain {
		if r.Secret, err = a.ReadSecret(f.secretFile); err != nil {
			return err
		}
	}
	set, err := o.Put(c, ctx, name, r)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(set)
	}
	a.Note("set: %s for %s in %s %s, encrypted with key %s", set.Kind, set.Origin, o.Noun, name, set.KeyID)
	return nil
}

func listCommand(a *cli.App, o Owner) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list NAME", Short: "List a " + o.Noun + "'s credentials, without their secrets", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := o.List(c, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			l := cli.Lister[wire.Credential]{None: "no credentials", Row: credentialRow, Columns: []terminal.Column{
				{Name: "origin"}, {Name: "kind"}, {Name: "name", Flex: true}, {Name: "at", Flex: true}, {Name: "set"}, {Name: "by", Flex: true}, {Name: "key"},
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func credentialRow(c wire.Credential) []string {
	at := strings.TrimSpace(c.Endpoint + " " + c.Region)
	return []string{c.Origin, string(c.Kind), c.Name, at, terminal.TimeText(c.CreatedAt), c.CreatedBy, c.KeyID}
}

func removeCommand(a *cli.App, o Owner) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "remove NAME ORIGIN", Short: "Remove a credential", Args: cli.Needs("NAME", "ORIGIN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if err := o.Remove(c, cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			a.Note("removed: %s of %s %s", args[1], o.Noun, args[0])
			return nil
		},
	})
}
