package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// credentialOwner is what has credentials: a collection, or a subscription.
type credentialOwner struct {
	noun   string
	set    *cobra.Command // its words
	put    func(c *client.Client, ctx context.Context, name string, r wire.CredentialRequest) (wire.Credential, error)
	list   func(c *client.Client, ctx context.Context, name string) ([]wire.Credential, error)
	remove func(c *client.Client, ctx context.Context, name, origin string) error
}

func (a *app) credentialCommand() *cobra.Command {
	return a.credentialsOf("Set, list and remove what the sources of a collection's deposits ask for", credentialOwner{
		noun: "collection", put: (*client.Client).PutCredential, list: (*client.Client).Credentials, remove: (*client.Client).RemoveCredential,
		set: &cobra.Command{
			Use:   "set NAME ORIGIN --basic USER | --bearer | --s3 KEYID | --default-chain | --signing",
			Short: "Set a collection's credential for https://HOST[:PORT] or s3://BUCKET, or its key signing:NAME",
		},
	})
}

func (a *app) credentialsOf(short string, o credentialOwner) *cobra.Command {
	return group("credential", short, a.credentialSetCommand(o), a.credentialListCommand(o), a.credentialRemoveCommand(o))
}

// credentialFlags say what kind of credential is meant.
type credentialFlags struct {
	basic, s3     string
	bearer, chain bool
	signing       bool
	secretFile    string
}

func (a *app) credentialSetCommand(o credentialOwner) *cobra.Command {
	var r wire.CredentialRequest
	var f credentialFlags
	cmd := o.set
	cmd.Args = needs("NAME", "ORIGIN")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.into(&r); err != nil {
			return err
		}
		r.Origin = args[1]
		return a.setCredential(cmd.Context(), o, args[0], r, f)
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
	flags.BoolVar(&r.PathStyle, "path-style", false, "put the bucket's name into the path, as most services other than AWS want it")
	return a.clientFlags(cmd)
}

// into puts the kind into a request.
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
		return usage("give one of --basic USER, --bearer, --s3 KEYID, --default-chain and --signing")
	}
	r.Name = f.basic + f.s3
	return nil
}

func (a *app) setCredential(ctx context.Context, o credentialOwner, name string, r wire.CredentialRequest, f credentialFlags) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	if !f.chain {
		if r.Secret, err = a.secret(f.secretFile); err != nil {
			return err
		}
	}
	set, err := o.put(c, ctx, name, r)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(set)
	}
	a.note("set: %s for %s in %s %s, sealed under key %s", set.Kind, set.Origin, o.noun, name, set.KeyID)
	return nil
}

// secret reads a secret without the end of its line. At a terminal it is not shown.
func (a *app) secret(file string) (string, error) {
	const most = 64 << 10
	var raw []byte
	var err error
	switch in, ok := a.in.(*os.File); {
	case file != "":
		raw, err = os.ReadFile(file)
	case ok && term.IsTerminal(int(in.Fd())):
		_, _ = fmt.Fprint(a.err, "secret: ")
		raw, err = term.ReadPassword(int(in.Fd()))
		_, _ = fmt.Fprintln(a.err)
	default:
		raw, err = io.ReadAll(io.LimitReader(a.in, most))
	}
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	if len(raw) == 0 {
		return "", usage("no secret: give it on standard input, or in a file by --secret-file")
	}
	return string(raw), nil
}

func (a *app) credentialListCommand(o credentialOwner) *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "list NAME", Short: "List a " + o.noun + "'s credentials, without their secrets", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := o.list(c, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			l := lister[wire.Credential]{none: "no credentials", row: credentialRow, columns: []column{
				{name: "origin"}, {name: "kind"}, {name: "name", flex: true}, {name: "at", flex: true}, {name: "set"}, {name: "by", flex: true}, {name: "key"},
			}}
			return l.print(a, whole(all))
		},
	})
}

func credentialRow(c wire.Credential) []string {
	at := strings.TrimSpace(c.Endpoint + " " + c.Region)
	return []string{c.Origin, string(c.Kind), c.Name, at, timeText(c.CreatedAt), c.CreatedBy, c.KeyID}
}

func (a *app) credentialRemoveCommand(o credentialOwner) *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "remove NAME ORIGIN", Short: "Remove a credential", Args: needs("NAME", "ORIGIN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := o.remove(c, cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			a.note("removed: %s of %s %s", args[1], o.noun, args[0])
			return nil
		},
	})
}
