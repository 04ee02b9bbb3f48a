package webserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// ACMEOptions says how certificates are got by ACME (RFC 8555). Hosts and Cache must be set.
type ACMEOptions struct {
	Hosts     []string       // the names that certificates are got for, and no others
	Email     string         // at which the authority reaches the operator; "": it does not
	Directory string         // of the authority; "": Let's Encrypt
	Cache     string         // the folder that certificates and their keys are kept in; made when it is missing
	Roots     *x509.CertPool // by which the authority itself is known; nil: the machine's
}

// ACME serves certificates that are got when a browser first asks for one of the hosts, and renewed
// a month before they end. The authority proves the name by a TLS connection to port 443 of it (RFC
// 8737), which must lead here. To use it is to accept the authority's terms.
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
