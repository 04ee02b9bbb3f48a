package node

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/webserver"
)

// Web has the options for browsers. The zero value has defaults.
type Web struct {
	Lifetime registry.Lifetime       // of sessions
	Proxies  webserver.Proxies       // whose X-Forwarded headers are believed
	Provider *signin.ProviderOptions // an OpenID provider; nil: none
	// TLSCert and TLSKey are PEM files of a certificate chain and its key, read again when they
	// change; "": plain HTTP.
	TLSCert, TLSKey string
	// ACME gets certificates, if there is no TLSCert and it has hosts.
	ACME webserver.ACMEOptions
	// Plain allows plain HTTP for all on an address that others can reach. Without it, only
	// [Proxies] may use it there.
	Plain bool
	HSTS  time.Duration // of Strict-Transport-Security; 0: not sent
}

// listenWeb binds the address of API and pages, with TLS if there is a certificate. It returns an
// error for plain HTTP on an address that others can reach, unless Plain or Proxies allow it.
func (n *Node) listenWeb(ctx context.Context, w Web) (net.Listener, error) {
	if w.ACME.Cache != "" {
		tighten(ctx, n.Log, w.ACME.Cache, privateFolder)
	}
	var certificate *webserver.Certificate
	if w.TLSCert != "" {
		var err error
		if certificate, err = webserver.LoadCertificate(w.TLSCert, w.TLSKey, n.Log); err != nil {
			return nil, &NeedError{
				Setting: "HOLDFAST_TLS_CERT", What: "the certificate of API and pages", Err: err,
				Fix: "set HOLDFAST_TLS_CERT and HOLDFAST_TLS_KEY to the PEM files of a certificate chain and its key",
			}
		}
	}
	l, err := n.listen(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case certificate != nil:
		n.tls = certificate.Config() //nolint:contextcheck // every handshake brings its own
		host, port, _ := net.SplitHostPort(l.Addr().String())
		n.url = "https://" + net.JoinHostPort(certificate.Name(host), port)
	case len(w.ACME.Hosts) > 0:
		n.tls = webserver.ACME(w.ACME)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		n.url = "https://" + net.JoinHostPort(w.ACME.Hosts[0], port)
	case !webserver.Reachable(l.Addr()):
	case w.Plain:
		n.Log.WarnContext(ctx, "serving plain HTTP on an address that is not loopback: others on the network can read tokens and cookies", "address", l.Addr().String())
	case len(w.Proxies) > 0:
		n.proxied = true
	default:
		return nil, errors.Join(&NeedError{
			Setting: "HOLDFAST_LISTEN", What: "its own address", Err: webserver.ErrPlain,
			Fix: "set HOLDFAST_TLS_CERT and HOLDFAST_TLS_KEY to a certificate, or listen on loopback behind a reverse proxy, or name the proxy's network in " +
				"HOLDFAST_TRUSTED_PROXIES; in a private network you can set HOLDFAST_PLAIN_HTTP=yes (docs/security.md, TLS)",
		}, l.Close())
	}
	return l, nil
}

// SignInLink makes a link that signs a browser in as the admin of [Up]'s token, once, within
// signin.LinkGood.
func (n *Node) SignInLink(ctx context.Context) (string, error) {
	token, err := n.store.TokenByHash(ctx, signin.Hash(n.token))
	if err != nil {
		return "", err
	}
	path, _, err := signin.MakeLink(ctx, n.store, token.ID, time.Now())
	return n.url + path, err
}
