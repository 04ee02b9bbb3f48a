package webserver_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/web/webserver"
)

// names answers DNS over TCP: every name is on 127.0.0.1, and has nothing but that address. It
// returns where it is.
func names(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answerNames(conn)
		}
	}()
	return listener.Addr().String()
}

// answerNames answers what comes on a connection (RFC 1035, sections 4.1 and 4.2.2).
func answerNames(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	for {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		asked := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, asked); err != nil {
			return
		}
		const header, typeA = 12, 1
		end := header + bytes.IndexByte(asked[min(len(asked), header):], 0)
		if end < header || end+5 > len(asked) {
			return
		}
		answer := append([]byte{asked[0], asked[1], 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, asked[header:end+5]...)
		if asked[end+2] == typeA {
			answer[7] = 1
			answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// pebble starts an ACME server that looks at a port of 127.0.0.1 whether a name is whose who asks
// for it (TLS-ALPN-01), and returns its directory, the pool that it is known by and the address of
// its own root certificate.
func pebble(t *testing.T, tlsPort int) (directory string, roots *x509.CertPool, rootAt string) {
	t.Helper()
	program := proctest.Built(t, "pebble")
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	issue(t, cert, key, 1)
	roots, err := webserver.Trust(cert)
	if err != nil {
		t.Fatal(err)
	}
	resolver := names(t)
	start := func(address string) error {
		host, text, _ := net.SplitHostPort(address)
		port, _ := strconv.Atoi(text)
		management := net.JoinHostPort(host, strconv.Itoa(port+1))
		config, err := json.Marshal(map[string]any{"pebble": map[string]any{
			"listenAddress": address, "managementListenAddress": management, "certificate": cert, "privateKey": key,
			"httpPort": 1, "tlsPort": tlsPort, "retryAfter": map[string]int{"authz": 1, "order": 1}, "keyAlgorithm": "ecdsa",
			"profiles": map[string]any{"default": map[string]any{"description": "default", "validityPeriod": 7776000}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "pebble.json")
		if err := os.WriteFile(name, config, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "-config", name, "-dnsserver", resolver)
		cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		server, err := proctest.Start(cmd, func(ctx context.Context) bool { return get(ctx, roots, "https://"+management+"/roots/0") != nil })
		if err != nil {
			return err
		}
		t.Cleanup(func() { server.End(os.Kill) })
		directory, rootAt = "https://"+address+"/dir", "https://"+management+"/roots/0"
		return nil
	}
	if err := proctest.OnFreePort(t, start); err != nil {
		t.Fatal(err)
	}
	return directory, roots, rootAt
}

// get returns what is at an address, nil when it does not answer.
func get(ctx context.Context, roots *x509.CertPool, address string) []byte {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil
	}
	return text
}

// TestACME gets a certificate from a real ACME server for the configured names only, and keeps it
// for the next start.
func TestACME(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	directory, roots, rootAt := pebble(t, listener.Addr().(*net.TCPAddr).Port)
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(get(t.Context(), roots, rootAt)) {
		t.Fatal("pebble has no root")
	}
	cache := filepath.Join(t.TempDir(), "acme")
	serve := func(directory string, at net.Listener) func(name string) error {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		if at != nil { // where the authority looks
			server.Listener.Close()
			server.Listener = at
		}
		server.TLS = webserver.ACME(webserver.ACMEOptions{Hosts: []string{"holdfast.test"}, Directory: directory, Cache: cache, Roots: roots})
		server.StartTLS()
		t.Cleanup(server.Close)
		return func(name string) error {
			conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{RootCAs: authority, ServerName: name})
			if err == nil {
				err = conn.Close()
			}
			return err
		}
	}
	dial := serve(directory, listener)
	if err := dial("holdfast.test"); err != nil {
		t.Error(err)
	}
	if dial("other.test") == nil {
		t.Error("a certificate for a name that is not ours")
	}
	if err := serve("https://127.0.0.1:1/nowhere", nil)("holdfast.test"); err != nil {
		t.Errorf("from the folder, while the authority is away: %v", err)
	}
}
