package cli

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/webserver"
)

// HealthAddress returns the address of the service whose health counts, and how to verify its
// certificate: of the folder of --dir, else of this machine's process with HOLDFAST_LISTEN, else of
// HOLDFAST_URL, else of the default folder. It asks Parameter Store only if neither of both is set
// otherwise.
func (a *App) HealthAddress(ctx context.Context) (string, *tls.Config, error) {
	defaults := config.Default()
	defaults.Listen = "" // to see whether it is set
	c, err := config.LoadFor(ctx, defaults, given(a.Dir, config.HealthNeeds)...)
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
		if unverified := (&tls.Config{InsecureSkipVerify: true}); at.CA == "" && len(c.ACMEHosts) == 0 && len(c.Parameters) > 0 && speaksTLS(ctx, c.Listen, unverified) { //nolint:gosec // this machine's own process, which gets no token
			// The process has its certificate from Parameter Store.
			own = unverified
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

// tlsWait is how long a process of this machine may take to begin TLS.
const tlsWait = 2 * time.Second

// speaksTLS reports whether the process that listens at addr on this machine serves TLS.
func speaksTLS(ctx context.Context, addr string, trust *tls.Config) bool {
	ctx, cancel := context.WithTimeout(ctx, tlsWait)
	defer cancel()
	conn, err := (&tls.Dialer{Config: trust}).DialContext(ctx, "tcp", strings.TrimPrefix(localURL(addr), "http://"))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
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
