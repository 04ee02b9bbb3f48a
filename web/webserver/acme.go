package webserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// ACMEOptions configure certificates by ACME (RFC 8555). Hosts and Cache must be set.
type ACMEOptions struct {
	Hosts     []string       // the only names to get certificates for
	Email     string         // the operator's address for the authority; "": none
	Directory string         // of the authority; "": Let's Encrypt
	Cache     string         // the folder for certificates and their keys; created if missing
	Roots     *x509.CertPool // to verify the authority's own certificate; nil: the machine's
}

// ACME returns a TLS configuration that gets a certificate at the first connection to a host, and
// renews it a month before it expires. The authority verifies the name with a TLS connection to its
// port 443 (RFC 8737), which must lead here. Using ACME accepts the authority's terms.
func ACME(o ACMEOptions) *tls.Config {
	manager := &autocert.Manager{
		Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(o.Hosts...), Cache: autocert.DirCache(o.Cache), Email: o.Email,
		Client: &acme.Client{DirectoryURL: o.Directory, UserAgent: "Holdfast", HTTPClient: &http.Client{
			Timeout: time.Minute,
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			},
		}},
	}
	config := manager.TLSConfig()
	config.MinVersion = tls.VersionTLS12
	return config
}
