package webserver_test

import (
	"bytes"
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
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/web/webserver"
)

// issue writes a self-signed certificate for holdfast.test and 127.0.0.1 with this serial number.
func issue(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	issueFor(t, certFile, keyFile, serial, "holdfast.test")
}

func issueFor(t *testing.T, certFile, keyFile string, serial int64, names ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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

// TestCertificate_Reloaded checks that the certificate in the files is served, and the previous one
// while only one file is new.
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

// TestCertificate_TriedAgain checks that an unreadable certificate is tried again, and that the
// same fault is logged once.
func TestCertificate_TriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		issue(t, cert, key, 1)
		var log bytes.Buffer
		c, err := webserver.LoadCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
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
		newCert, newKey := filepath.Join(dir, "new-cert.pem"), filepath.Join(dir, "new-key.pem")
		issue(t, newCert, newKey, 2)
		if err := os.Rename(newCert, cert); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := serial(); got != 1 {
				t.Errorf("half replaced: %d", got)
			}
		}
		if got := strings.Count(log.String(), "certificate failed"); got != 1 {
			t.Errorf("logged %d times, want once:\n%s", got, &log)
		}
		// The right key, in a file that looks as it did: it was being written when it was looked
		// at, within one tick of the file system's clock.
		before, err := os.Stat(key)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(newKey)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(key, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(key, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		if got := serial(); got != 2 {
			t.Errorf("readable again: %d", got)
		}
	})
}

// TestOwn checks that a process on the same machine recognises a server by its certificate's file.
func TestOwn(t *testing.T) {
	for name, names := range map[string][]string{"a name": {"holdfast.test"}, "a wildcard": {"*.holdfast.test"}, "an address only": nil} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
			issueFor(t, cert, key, 1, names...)
			chain, err := os.ReadFile(cert)
			if err != nil {
				t.Fatal(err)
			}
			private, err := os.ReadFile(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cert, slices.Concat([]byte("our certificate\n"), private, chain), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := webserver.LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			// Not httptest, which has a certificate of its own for who names no host.
			l, err := tls.Listen("tcp", "127.0.0.1:0", c.Config())
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
			served := make(chan error, 1)
			go func() { served <- server.Serve(l) }()
			defer func() {
				server.Close()
				<-served
			}()
			own, err := webserver.Own(cert)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := tls.Dial("tcp", l.Addr().String(), own)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
	key := filepath.Join(t.TempDir(), "key.pem")
	issue(t, filepath.Join(t.TempDir(), "cert.pem"), key, 1)
	if _, err := webserver.Own(key); err == nil {
		t.Error("a key alone is taken for a certificate")
	}
}

// TestCertificate_Name checks that the name is one of the certificate's, never one made up for a
// wildcard.
func TestCertificate_Name(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string // of 192.0.2.7
	}{
		{[]string{"*.holdfast.test", "holdfast.test"}, "holdfast.test"}, {[]string{"*.holdfast.test"}, "127.0.0.1"}, {nil, "127.0.0.1"},
	} {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		issueFor(t, cert, key, 1, c.names...)
		loaded, err := webserver.LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.Name("192.0.2.7"); got != c.want {
			t.Errorf("%v: %q, want %q", c.names, got, c.want)
		}
	}
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

func TestPlainTo(t *testing.T) {
	for address, want := range map[string]bool{
		"http://holdfast.test": true, "http://192.0.2.1:8080/": true, "HTTP://[2001:db8::1]:80": true,
		"https://holdfast.test": false, "http://127.0.0.1:8080": false, "http://[::1]": false, "http://localhost:1": false, "": false,
	} {
		if got := webserver.PlainTo(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}
