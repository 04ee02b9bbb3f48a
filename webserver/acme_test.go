package webserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/webserver"
)

// pebble starts an ACME server that believes whoever asks, and returns its directory, the pool that it is known by and
// the address of its own root certificate.
func pebble(t *testing.T) (directory string, roots *x509.CertPool, rootAt string) {
	t.Helper()
	binary := proctest.Built(t, "pebble")
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	issue(t, cert, key, 1)
	roots, err := webserver.Trust(cert)
	if err != nil {
		t.Fatal(err)
	}
	start := func(address string) error {
		host, text, _ := net.SplitHostPort(address)
		port, _ := strconv.Atoi(text)
		management := net.JoinHostPort(host, strconv.Itoa(port+1))
		config, err := json.Marshal(map[string]any{"pebble": map[string]any{
			"listenAddress": address, "managementListenAddress": management, "certificate": cert, "privateKey": key,
			"httpPort": 1, "tlsPort": 1, "retryAfter": map[string]int{"authz": 1, "order": 1}, "keyAlgorithm": "ecdsa",
			"profiles": map[string]any{"default": map[string]any{"description": "default", "validityPeriod": 7776000}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "pebble.json")
		if err := os.WriteFile(name, config, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "-config", name)
		cmd.Env = append(os.Environ(), "PEBBLE_VA_ALWAYS_VALID=1", "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
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

// A certificate is got from a real ACME server for the names that are ours, kept for the next start, and got for no other name.
func TestACME(t *testing.T) {
	directory, roots, rootAt := pebble(t)
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(get(t.Context(), roots, rootAt)) {
		t.Fatal("pebble has no root")
	}
	cache := filepath.Join(t.TempDir(), "acme")
	serve := func(directory string) func(name string) error {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
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
	dial := serve(directory)
	if err := dial("holdfast.test"); err != nil {
		t.Error(err)
	}
	if dial("other.test") == nil {
		t.Error("a certificate for a name that is not ours")
	}
	if err := serve("https://127.0.0.1:1/nowhere")("holdfast.test"); err != nil {
		t.Errorf("from the folder, while the authority is away: %v", err)
	}
}
