package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// ClientFlags adds --dir and --json, the flags of all commands that use a running service. It
// returns cmd.
func (a *App) ClientFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.StringVar(&a.Dir, "dir", "", "the folder `DIR` of a running up (default HOLDFAST_URL and HOLDFAST_TOKEN, else "+DefaultDir+")")
	f.BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	return cmd
}

// Connect returns a client of the service that Service finds.
func (a *App) Connect() (*client.Client, error) {
	at, err := a.Service()
	if err != nil {
		return nil, err
	}
	return a.ClientOf(at)
}

// ClientOf returns a client of a service.
func (a *App) ClientOf(at node.Client) (*client.Client, error) {
	roots, err := webserver.Trust(at.CA)
	if err != nil {
		return nil, err
	}
	return client.New(at.URL, at.Token, client.Options{UserAgent: wire.CommandAgent + a.Version, Roots: roots}), nil
}

// PlainTo is the format of the warning that the token travels unencrypted. It takes the address.
const PlainTo = "the token travels to %s unencrypted, by plain HTTP: use an https address, or in a private network set HOLDFAST_PLAIN_HTTP=yes"

// Settings reads the configuration of a command that needs these settings (config.LoadFor). It warns
// once of unknown names.
func (a *App) Settings(ctx context.Context, defaults config.Config, needs ...string) (config.Config, error) {
	c, err := config.LoadFor(ctx, defaults, needs...)
	if !a.unknown {
		a.unknown = true
		for _, u := range c.Unknown {
			a.Note("warning: %s", u)
		}
	}
	return c, err
}

// given returns no needs if a flag has a value instead of them.
func given(flag string, needs []string) []string {
	if flag != "" {
		return nil
	}
	return needs
}

// Service returns the address and token of the service: of the folder of --dir, else of the
// environment, else of the default folder. It warns once if the token travels by plain HTTP.
func (a *App) Service() (node.Client, error) {
	c, err := a.Settings(a.ctx, config.Default(), given(a.Dir, config.ClientNeeds)...)
	if err != nil {
		return node.Client{}, err
	}
	at := node.Client{URL: c.URL, Token: c.Token, CA: c.CAFile}
	if a.Dir != "" || c.URL == "" {
		if at, err = a.ReadClientFile(a.Dir); err != nil {
			return at, err
		}
	}
	if webserver.PlainTo(at.URL) && !bool(c.PlainHTTP) && !a.warned {
		a.warned = true
		a.Note("warning: "+PlainTo, at.URL)
	}
	if at.Token == "" {
		return at, exit.Fix(exit.Usagef("HOLDFAST_URL is set, but HOLDFAST_TOKEN is not"), "set it, or use --dir DIR of a running `holdfast up`")
	}
	return at, nil
}

// ReadClientFile reads the file that `up` writes into its folder. An empty dir is DefaultDir.
func (a *App) ReadClientFile(dir string) (node.Client, error) {
	var at node.Client
	name := filepath.Join(dir, node.ClientFile)
	if dir == "" {
		name = filepath.Join(DefaultDir, node.ClientFile)
	}
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return at, exit.Fix(exit.Usagef("no running Holdfast found: there is no %s", name),
			"start one by `holdfast up`, name its folder by --dir DIR, or set HOLDFAST_URL and HOLDFAST_TOKEN")
	} else if err != nil {
		return at, err
	}
	if err := json.Unmarshal(raw, &at); err != nil || at.URL == "" || at.Token == "" {
		return at, exit.Fix(fmt.Errorf("%s is damaged", name), "start `holdfast up` again: it writes a new one")
	}
	return at, nil
}

// DefaultDir is the default folder of `up`.
const DefaultDir = "./holdfast-data"
