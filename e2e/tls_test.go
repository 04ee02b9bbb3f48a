package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	numbers "math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issueCertificate replaces the files by a self-signed certificate for 127.0.0.1, whole.
func issueCertificate(t *testing.T, certFile, keyFile string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: numbers.NewInt(serial), Subject: pkix.Name{CommonName: "holdfast"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
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
		if err := os.WriteFile(name+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// TestTLS: pages and API are served by HTTPS, with secure cookies, and a certificate can be
// replaced while it is served.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := issueCertificate(t, cert, key, 1)
	h := up(t, "HOLDFAST_TLS_CERT="+cert, "HOLDFAST_TLS_KEY="+key)
	base, token := h.address()
	if !strings.HasPrefix(base, "https://127.0.0.1:") {
		t.Fatalf("the address is %s", base)
	}
	if r := h.run("batch", "list"); r.code != 0 { // by what the folder says of the certificate
		t.Fatalf("batch list: %s", r.stderr)
	}
	trust := x509.NewCertPool()
	trust.AddCert(first)
	v := newVisitor(t, base, &tls.Config{RootCAs: trust})
	v.post("/login", url.Values{"token": {token}})
	v.signedIn("holdfast up", token)
	for name := range v.cookies() {
		if !strings.HasPrefix(name, "__Host-") {
			t.Errorf("cookie %s", name)
		}
	}
	// By its name browsers are told to insist on HTTPS; an address is no name, and other services
	// may be there.
	for host, told := range map[string]bool{"archive.example.org": true, "": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/login", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := v.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Strict-Transport-Security"); (got != "") != told {
			t.Errorf("host %q: Strict-Transport-Security %q", host, got)
		}
	}

	// Somebody elsewhere knows the certificate by HOLDFAST_CA_FILE, and only by that.
	elsewhere := func(env ...string) result {
		cmd := exec.Command(binary, "batch", "list")
		cmd.Dir, cmd.Env = t.TempDir(), append(append(h.environment(), "HOLDFAST_URL="+base, "HOLDFAST_TOKEN="+token, "HOLDFAST_TLS_CERT=", "HOLDFAST_TLS_KEY="), env...)
		return h.finish(cmd)
	}
	if r := elsewhere("HOLDFAST_CA_FILE=" + cert); r.code != 0 {
		t.Errorf("with the certificate: %s", r.stderr)
	}
	if r := elsewhere(); r.code == 0 || !strings.Contains(r.stderr, "certificate") {
		t.Errorf("without it: %d %s", r.code, r.stderr)
	}

	issueCertificate(t, cert, key, 2)
	serial := func() int64 {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(base, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	for begun := time.Now(); serial() != 2; {
		if time.Since(begun) > patience {
			t.Fatalf("the new certificate is not served\n%s", h.log)
		}
	}
	if r := h.run("health"); r.code != 0 {
		t.Errorf("health after the change: %s", r.stderr)
	}
}

// TestPlainHTTP: plain HTTP on a reachable address is served only if it is allowed explicitly.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	h := &holdfast{t: t, dir: filepath.Join(t.TempDir(), "data")}
	cmd := exec.Command(binary, "up", "--dir", h.dir, "--listen", "0.0.0.0:0")
	cmd.Env = h.environment()
	if r := h.finish(cmd); r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, "plain HTTP") || !strings.Contains(r.stderr, "HOLDFAST_PLAIN_HTTP=yes") {
		t.Errorf("on all addresses: %d %s%s", r.code, r.stdout, r.stderr)
	}
	meant := upAt(t, "0.0.0.0:0", "HOLDFAST_PLAIN_HTTP=yes")
	if !strings.Contains(meant.log.String(), "serving plain HTTP on an address that is not loopback") {
		t.Errorf("no warning:\n%s", meant.log)
	}
}

// TestTrustedProxy: only a trusted proxy can say that a client came by HTTPS.
func TestTrustedProxy(t *testing.T) {
	t.Parallel()
	for name, network := range map[string]string{"trusted": "127.0.0.0/8", "not trusted": "192.0.2.0/24"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := up(t, "HOLDFAST_TRUSTED_PROXIES="+network)
			base, token := h.address()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://holdfast.example.org",
				"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "holdfast.example.org",
			} {
				r.Header.Set(name, value)
			}
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			cookies := answer.Cookies()
			if name != "trusted" {
				if answer.StatusCode != http.StatusForbidden || len(cookies) > 0 || answer.Header.Get("Strict-Transport-Security") != "" {
					t.Errorf("believed: %d %v", answer.StatusCode, cookies)
				}
				return
			}
			if len(cookies) != 1 || !cookies[0].Secure || cookies[0].Name != "__Host-holdfast_session" || answer.Header.Get("Strict-Transport-Security") == "" {
				t.Errorf("%d, cookies %v, header %v", answer.StatusCode, cookies, answer.Header)
			}
			if audit := h.run("audit", "list", "--types", "signed-in", "--json").stdout; !strings.Contains(audit, `"203.0.113.9"`) {
				t.Errorf("the audit log does not have the client's address: %s", audit)
			}
		})
	}
}
