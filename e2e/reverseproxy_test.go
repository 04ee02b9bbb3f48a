package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast/holdfast/internal/proctest"
)

// reverseProxy is a program that stands in front of Holdfast as docs/security.md says.
type reverseProxy struct {
	program, install string
	// after begins the text before its block in the guide.
	after string
	// whole makes a configuration of the block, which listens at an address and keeps its files in a
	// folder.
	whole func(block, address, cert, key, folder string) string
	check func(file string) []string // the arguments that have the configuration checked
	run   func(file string) []string
}

var reverseProxies = []reverseProxy{
	{
		program: "/usr/sbin/nginx", install: "nginx-light", after: "\nnginx, with Holdfast on 127.0.0.1:8080",
		whole: func(block, address, cert, key, folder string) string {
			block = strings.NewReplacer("listen 443 ssl", "listen "+address+" ssl", "/etc/ssl/holdfast.pem", cert, "/etc/ssl/holdfast.key", key).Replace(block)
			temp := ""
			for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				temp += fmt.Sprintf("%s_temp_path %s/%s;\n", what, folder, what)
			}
			own := fmt.Sprintf("daemon off;\nmaster_process off;\npid %s/pid;\nerror_log stderr;\nevents {}\n", folder)
			return own + "http {\naccess_log off;\n" + temp + block + "}\n"
		},
		check: func(file string) []string { return []string{"-t", "-e", "stderr", "-c", file} },
		run:   func(file string) []string { return []string{"-e", "stderr", "-c", file} },
	},
	{
		program: "caddy", install: "caddy", after: "\nCaddy gets its certificate by itself",
		whole: func(block, address, cert, key, _ string) string {
			block = strings.Replace(block, "holdfast.example.org {", "https://"+address+" {\ntls "+cert+" "+key, 1)
			return "{\nadmin off\nauto_https disable_redirects\n}\n" + block
		},
		check: func(file string) []string {
			return []string{"validate", "--adapter", "caddyfile", "--config", file}
		},
		run: func(file string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} },
	},
}

// TestReverseProxies: behind nginx and Caddy, set up as docs/security.md says, people sign in with
// secure cookies, a stream of events arrives at once, and an upload has any size.
func TestReverseProxies(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	h := up(t, "HOLDFAST_TRUSTED_PROXIES=127.0.0.1")
	base, token := h.address()
	for _, p := range reverseProxies {
		t.Run(filepath.Base(p.program), func(t *testing.T) {
			program, err := exec.LookPath(p.program)
			if err != nil {
				proctest.Absent(t, p.program+" (apt-get install "+p.install+")", err)
			}
			_, rest, found := strings.Cut(string(guide), p.after)
			parts := strings.SplitN(rest, "```\n", 3)
			if !found || len(parts) < 3 {
				t.Fatalf("docs/security.md has no block after %q", p.after)
			}
			block := strings.ReplaceAll(parts[1], "127.0.0.1:8080", strings.TrimPrefix(base, "http://"))
			folder := t.TempDir()
			cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
			trust := x509.NewCertPool()
			trust.AddCert(issueCertificate(t, cert, key, 1))
			front := p.start(t, program, block, cert, key, folder, &tls.Config{RootCAs: trust})

			v := newVisitor(t, front, &tls.Config{RootCAs: trust})
			v.post("/login", url.Values{"token": {token}})
			v.signedIn("holdfast up", token)
			for name := range v.cookies() {
				if !strings.HasPrefix(name, "__Host-") {
					t.Errorf("cookie %s is not for HTTPS only", name)
				}
			}
			v.uploadsWhileFollowing(token)
		})
	}
}

// start starts the program and returns its address. It ends with the test.
func (p reverseProxy) start(t *testing.T, program, block, cert, key, folder string, trust *tls.Config) (front string) {
	t.Helper()
	file := filepath.Join(folder, "configuration")
	command := func(args []string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
		return cmd
	}
	var server *proctest.Server
	err := proctest.OnFreePort(t, func(address string) error {
		front = "https://" + address
		if err := os.WriteFile(file, []byte(p.whole(block, address, cert, key, folder)), 0o600); err != nil {
			return err
		}
		if out, err := command(p.check(file)).CombinedOutput(); err != nil {
			return fmt.Errorf("%s refuses the block of docs/security.md: %w\n%s", p.program, err, out)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
		var err error
		server, err = proctest.Start(command(p.run(file)), func(ctx context.Context) bool {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, front+"/healthz", nil)
			if err != nil {
				return false
			}
			answer, err := client.Do(r)
			if err != nil {
				return false
			}
			answer.Body.Close()
			return answer.StatusCode == http.StatusOK
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.End(syscall.SIGTERM) })
	return front
}

// uploadsWhileFollowing follows all events, submits a file that is larger than proxies take unless
// they are told, and requires that its submission is among the events while the stream is open.
func (v *visitor) uploadsWhileFollowing(token string) {
	v.t.Helper()
	request := func(method, path, kind string, body io.Reader) *http.Request {
		r, err := http.NewRequestWithContext(v.t.Context(), method, v.base+"/api/v1"+path, body)
		if err != nil {
			v.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", kind)
		return r
	}
	type ids struct {
		ID      string `json:"id"`
		BatchID string `json:"batch_id"`
	}
	post := func(path, kind, body string) (made ids) {
		answer, err := v.client.Do(request(http.MethodPost, path, kind, strings.NewReader(body)))
		if err != nil {
			v.t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, json.Unmarshal(text, &made)); err != nil || answer.StatusCode >= http.StatusMultipleChoices {
			v.t.Fatalf("%s: %s: %v\n%s", path, answer.Status, err, text)
		}
		return made
	}
	stream, err := v.client.Do(request(http.MethodGet, "/events", "", nil))
	if err != nil {
		v.t.Fatal(err)
	}
	defer stream.Body.Close()

	noise := make([]byte, 3<<20)                    // nginx itself takes 1 MiB
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // it never fails
	upload := post("/uploads?filename=noise.bin", "application/octet-stream", string(noise))
	batch := post("/batches", "application/json", fmt.Sprintf(`{"upload_id": %q, "title": %q}`, upload.ID, "through "+v.base)).BatchID
	for lines := bufio.NewScanner(stream.Body); !strings.Contains(lines.Text(), batch); {
		if !lines.Scan() {
			v.t.Fatalf("the stream ended without the submission of %s: %v", batch, lines.Err())
		}
	}
}
