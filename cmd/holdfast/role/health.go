package role

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/webserver"
)

// healthTimeout is how long the service may take to answer.
const healthTimeout = 5 * time.Second

// HealthCommand returns the command `holdfast health`.
func HealthCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, a.ClientFlags(&cobra.Command{
		Use:   "health",
		Short: "Check whether a service is healthy; exit code 0 or 5",
		Args:  cli.Needs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return askHealth(cmd.Context(), a) },
	}))
}

func askHealth(ctx context.Context, a *cli.App) error {
	address, trust, err := healthAddress(ctx, a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	h, err := node.AskHealth(ctx, address, trust)
	if err != nil {
		a.Complain(fmt.Errorf("ask %s: %w", address, err))
		return exit.Temporary
	}
	if a.JSON {
		if err := a.PrintJSON(h); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(a.Out, strings.TrimSpace(h.Status+" "+h.Version)); err != nil {
		return err
	}
	if h.Status != "ok" {
		return exit.Temporary
	}
	return nil
}

// healthAddress returns the address to ask, and how to verify its certificate.
func healthAddress(ctx context.Context, a *cli.App) (string, *tls.Config, error) {
	defaults := config.Default()
	defaults.Listen = "" // to see whether it is set
	c, err := config.Load(ctx, defaults)
	if err != nil {
		return "", nil, err
	}
	at := node.Client{URL: c.URL, CA: c.CAFile}
	own := &tls.Config{}
	switch {
	case a.Dir == "" && c.Listen != "":
		at = node.Client{URL: localURL(c.Listen), CA: c.TLSCert}
		if c.TLSCert != "" {
			// Trust the process's own certificate, because it has another name than localhost.
			own, err = webserver.Own(c.TLSCert)
			at.URL = "https" + strings.TrimPrefix(at.URL, "http")
		}
		if len(c.ACMEHosts) > 0 {
			own.ServerName = c.ACMEHosts[0]
			at.URL = "https" + strings.TrimPrefix(at.URL, "http")
		}
	case a.Dir != "" || c.URL == "":
		at, err = a.ReadClientFile(a.Dir)
	}
	if err == nil && own.RootCAs == nil {
		own.RootCAs, err = webserver.Trust(at.CA)
	}
	return at.URL, own, err
}

// localURL returns the address, on this machine, of a service that listens at addr.
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
