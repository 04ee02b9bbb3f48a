package sqldb

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// An address whose sslrootcert is the text of an authority reaches only a server that shows a
// certificate of it for its host.
func TestPostgreSQL_Authority(t *testing.T) {
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS()
	defer web.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	// reaches reports whether a client that trusts these roots speaks to the server under this name.
	reaches := func(host, roots string) (spoken bool) {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.ReadFull(conn, make([]byte, 8)) // SSLRequest
				_, _ = conn.Write([]byte("S"))
				secure := tls.Server(conn, web.TLS)
				n, _ := secure.Read(make([]byte, 1)) // the client sends only if it accepts the certificate
				spoken = spoken || n > 0
				_ = conn.Close()
			}
		}()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		d, err := newPostgres("postgres://u:pw@" + host + ":" + port + "/d?sslmode=verify-full&sslrootcert=" + url.QueryEscape(roots))
		if err != nil {
			t.Fatal(err)
		}
		write, read, err := d.open()
		if err != nil {
			t.Fatal(err)
		}
		_ = write.PingContext(t.Context()) // the server knows no more of the protocol
		_, _, _ = write.Close(), read.Close(), listener.Close()
		<-served
		return spoken
	}
	if !reaches("127.0.0.1", authority) {
		t.Error("a certificate of the authority is refused")
	}
	if reaches("localhost", authority) {
		t.Error("a certificate for another host is accepted")
	}
	if reaches("127.0.0.1", anotherAuthority) {
		t.Error("a certificate of another authority is accepted")
	}
	for _, address := range []string{
		"postgres://u:pw@h/d?sslmode=require&sslrootcert=" + url.QueryEscape(authority),
		"postgres://u:pw@h/d?sslrootcert=" + url.QueryEscape(authority),
		"postgres://u:pw@h/d?sslmode=verify-full&sslrootcert=" + url.QueryEscape("-----BEGIN nothing"),
	} {
		if _, err := newPostgres(address); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

const anotherAuthority = `-----BEGIN CERTIFICATE-----
MIIBdjCCAR2gAwIBAgIUWlvO+D3tuxUb/PgwbKikjNyBgbcwCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTI4MDcyNjA2WhgPMjEyNjExMDQwNzI2
MDZaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
sSpNbD7GQR17tS3IYy2BZE3xU0+OtNLJaGi/8MY0ab5t6AzqwtHDcDYIsuJksvfJ
yBzpD0ZKz2adlqf1V3E6mqNTMFEwHQYDVR0OBBYEFGUek8bZTKs7J/m7ltfKGzg+
OY+xMB8GA1UdIwQYMBaAFGUek8bZTKs7J/m7ltfKGzg+OY+xMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgeBt30Doe40G2c+XPzjXl+cBGk+eZM9pf
bkue1yoFszgCIE8BxwDV36txEklJtnw6xuqobl+8HfndwNYB5uxtWqWM
-----END CERTIFICATE-----
`
