package webserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/webserver"
)

// issue writes a self-signed certificate for localhost with this serial number.
func issue(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"holdfast.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The certificate that is served is that of the files as they are; while only one of them is new, the one from before.
func TestCertificate_Reloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		issue(t, cert, key, 1)
		c, err := webserver.LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		serial := func() int64 {
			time.Sleep(time.Second)
			served, err := c.Config().GetCertificate(&tls.ClientHelloInfo{})
			if err != nil {
				t.Fatal(err)
			}
			return served.Leaf.SerialNumber.Int64()
		}
		if serial() != 1 {
			t.Fatal("not the certificate of the files")
		}
		newCert, newKey := filepath.Join(dir, "new-cert.pem"), filepath.Join(dir, "new-key.pem")
		issue(t, newCert, newKey, 2)
		if err := os.Rename(newCert, cert); err != nil {
			t.Fatal(err)
		}
		if got := serial(); got != 1 {
			t.Errorf("half replaced: %d", got)
		}
		if err := os.Rename(newKey, key); err != nil {
			t.Fatal(err)
		}
		if got := serial(); got != 2 {
			t.Errorf("replaced: %d", got)
		}
		if err := os.Remove(cert); err != nil {
			t.Fatal(err)
		}
		if got := serial(); got != 2 {
			t.Errorf("removed: %d", got)
		}
	})
}

func TestCertificate_Served(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if _, err := webserver.LoadCertificate(cert, key, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("loaded what is not there")
	}
	issue(t, cert, key, 7)
	c, err := webserver.LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Name("127.0.0.2"); got != "holdfast.test" {
		t.Errorf("name %q", got)
	}
	if got := c.Name("holdfast.test"); got != "holdfast.test" {
		t.Errorf("name %q", got)
	}
	pool, err := webserver.Trust(cert)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := webserver.Trust(key); err == nil {
		t.Error("a key is taken for an authority")
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = c.Config()
	server.StartTLS()
	defer server.Close()
	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: "holdfast.test", MinVersion: version, MaxVersion: version})
		if (err == nil) != ok {
			t.Errorf("TLS %x: %v", version, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

func TestReachable(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:1": false, "127.9.9.9:1": false, "[::1]:1": false, "0.0.0.0:1": true, "[::]:1": true, "192.0.2.1:1": true} {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := webserver.Reachable(a); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}
