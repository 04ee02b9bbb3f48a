package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
)

// shownCertificate returns the certificate that the server of an https address shows. It accepts any:
// whether the server is the right one is for other checks, and no data are sent.
func shownCertificate(ctx context.Context, address string) (*x509.Certificate, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("its address cannot be read")
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	d := tls.Dialer{Config: &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} //nolint:gosec // see above
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	if !ok || len(secure.ConnectionState().PeerCertificates) == 0 {
		return nil, errors.New("it shows no certificate")
	}
	return secure.ConnectionState().PeerCertificates[0], nil
}
