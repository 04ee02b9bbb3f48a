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

// Web is how a process that serves the API and the pages meets browsers. The zero value has
// defaults.
type Web struct {
	Lifetime registry.Lifetime       // of sessions
	Proxies  webserver.Proxies       // whose word about clients is believed
	Provider *signin.ProviderOptions // where people sign in, too; nil: nowhere
	// TLSCert and TLSKey are PEM files of a certificate chain and its key, read again when they
	// change; "": plain HTTP is served.
	TLSCert, TLSKey string
	// ACME gets certificates by itself, where there is no TLSCert; without hosts: it does not.
	ACME webserver.ACMEOptions
	// Plain says that plain HTTP is meant for all, although others can reach the address. Without
	// it, [Proxies] alone are served by it there.
	Plain bool
	HSTS  time.Duration // how long browsers are kept on HTTPS; 0: they are not
}

// listenWeb binds the address of API and pages. Requests are served by TLS when there is a
// certificate; it is an error when they would not be although others can reach the address and
// nobody has said that this is meant. With proxies alone it is meant for them.
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
				Fix: "give the PEM files of a certificate chain and its key, as HOLDFAST_TLS_CERT and HOLDFAST_TLS_KEY",
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
		n.Log.WarnContext(ctx, "plain HTTP is served on an address that is not loopback: tokens and cookies can be read on the way", "address", l.Addr().String())
	case len(w.Proxies) > 0:
		n.proxied = true
	default:
		return nil, errors.Join(&NeedError{
			Setting: "HOLDFAST_LISTEN", What: "its own address", Err: webserver.ErrPlain,
			Fix: "give a certificate by HOLDFAST_TLS_CERT and HOLDFAST_TLS_KEY, or listen on loopback behind a reverse proxy, or name the proxy's network in " +
				"HOLDFAST_TRUSTED_PROXIES; if the network is private and plain HTTP is meant, set HOLDFAST_PLAIN_HTTP=yes (docs/security.md, TLS)",
		}, l.Close())
	}
	return l, nil
}

// SignInLink makes a link by which a browser signs in as the admin whose token [Up] has made, once,
// within signin.LinkGood.
func (n *Node) SignInLink(ctx context.Context) (string, error) {
	token, err := n.store.TokenByHash(ctx, signin.Hash(n.token))
	if err != nil {
		return "", err
	}
	path, _, err := signin.MakeLink(ctx, n.store, token.ID, time.Now())
	return n.url + path, err
}
