package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/webserver"
)

// clientFlags adds what every command has that speaks to a running Holdfast.
func (a *app) clientFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.StringVar(&a.dir, "dir", "", "the folder `DIR` of a running up (default HOLDFAST_URL and HOLDFAST_TOKEN, else "+defaultDir+")")
	f.BoolVar(&a.json, "json", false, "print JSON, one object a line")
	return cmd
}

// connect returns a client of the service that a command is about.
func (a *app) connect() (*client.Client, error) {
	at, err := a.service()
	if err != nil {
		return nil, err
	}
	return clientOf(at)
}

// clientOf returns a client of a service.
func clientOf(at node.Client) (*client.Client, error) {
	roots, err := webserver.Trust(at.CA)
	if err != nil {
		return nil, err
	}
	return client.New(at.URL, at.Token, client.Options{UserAgent: "holdfast/" + version, Roots: roots}), nil
}

// plainTo warns of an address.
const plainTo = "the token travels to %s by plain HTTP, where it can be read on the way: use an https address; if the network is private and this is meant, set HOLDFAST_PLAIN_HTTP=yes"

// service finds the service that a command is about: the folder that was named, else the environment, else the default folder.
func (a *app) service() (node.Client, error) {
	c, err := config.Load(config.Default())
	if err != nil {
		return node.Client{}, err
	}
	at := node.Client{URL: c.URL, Token: c.Token, CA: c.CAFile}
	if a.dir != "" || c.URL == "" {
		if at, err = a.left(a.dir); err != nil {
			return at, err
		}
	}
	if webserver.PlainTo(at.URL) && !bool(c.PlainHTTP) && !a.warned {
		a.warned = true
		a.note("warning: "+plainTo, at.URL)
	}
	if at.Token == "" {
		return at, fix(&usageError{errors.New("HOLDFAST_URL is set, but HOLDFAST_TOKEN is not")}, "set it, or use --dir DIR of a running `holdfast up`")
	}
	return at, nil
}

// left reads what `up` left in its folder, the default one when dir is "".
func (a *app) left(dir string) (node.Client, error) {
	var at node.Client
	name := filepath.Join(dir, node.ClientFile)
	if dir == "" {
		name = filepath.Join(defaultDir, node.ClientFile)
	}
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return at, fix(&usageError{fmt.Errorf("no Holdfast to speak to: there is no %s", name)},
			"start one by `holdfast up`, name its folder by --dir DIR, or set HOLDFAST_URL and HOLDFAST_TOKEN")
	} else if err != nil {
		return at, err
	}
	if err := json.Unmarshal(raw, &at); err != nil || at.URL == "" || at.Token == "" {
		return at, fix(fmt.Errorf("%s is damaged", name), "start `holdfast up` again: it writes a new one")
	}
	return at, nil
}

// localURL is the address of a service that listens at addr, as seen from this machine.
func localURL(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
