package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/webserver"
)

// healthTimeout is how long a service may take to say that it is well.
const healthTimeout = 5 * time.Second

func (a *app) healthCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use:   "health",
		Short: "Check whether a service is healthy; exit code 0 or 5",
		Args:  needs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.health(cmd.Context()) },
	})
}

func (a *app) health(ctx context.Context) error {
	address, trust, err := a.healthAddress()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	h, err := node.AskHealth(ctx, address, trust)
	if err != nil {
		a.complain(fmt.Errorf("ask %s: %w", address, err))
		return exitTemporary
	}
	if a.json {
		if err := a.printJSON(h); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(a.out, strings.TrimSpace(h.Status+" "+h.Version)); err != nil {
		return err
	}
	if h.Status != "ok" {
		return exitTemporary
	}
	return nil
}

// healthAddress is whom to ask, and how it is known by TLS.
func (a *app) healthAddress() (string, *tls.Config, error) {
	defaults := config.Default()
	defaults.Listen = "" // so as to see whether it is set
	c, err := config.Load(defaults)
	if err != nil {
		return "", nil, err
	}
	at := node.Client{URL: c.URL, CA: c.CAFile}
	own := &tls.Config{}
	switch {
	case a.dir == "" && c.Listen != "":
		at = node.Client{URL: localURL(c.Listen), CA: c.TLSCert}
		if c.TLSCert != "" {
			// The certificate is for the name that others use.
			own, err = webserver.Own(c.TLSCert)
			at.URL = "https" + strings.TrimPrefix(at.URL, "http")
		}
		if len(c.ACMEHosts) > 0 {
			own.ServerName = c.ACMEHosts[0]
			at.URL = "https" + strings.TrimPrefix(at.URL, "http")
		}
	case a.dir != "" || c.URL == "":
		at, err = a.left(a.dir)
	}
	if err == nil && own.RootCAs == nil {
		own.RootCAs, err = webserver.Trust(at.CA)
	}
	return at.URL, own, err
}
