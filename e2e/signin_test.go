package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// visitor is a browser: it keeps cookies, follows redirects, and sends the origin of forms.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
}

func newVisitor(t *testing.T, base string, trust *tls.Config) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: trust}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, base: strings.TrimSuffix(base, "/"), client: &http.Client{Transport: transport, Jar: jar, Timeout: patience}}
}

// send asks for an address, or for a path of the Holdfast's own, and returns the status, the page
// and where it was.
func (v *visitor) send(method, address string, form url.Values) (status int, page string, at *url.URL) {
	v.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = v.base + address
	}
	r, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	answer, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Request.URL
}

func (v *visitor) get(address string) (int, string) {
	v.t.Helper()
	status, text, _ := v.send(http.MethodGet, address, nil)
	return status, text
}

func (v *visitor) post(address string, form url.Values) (int, string) {
	v.t.Helper()
	status, text, _ := v.send(http.MethodPost, address, form)
	return status, text
}

// cookies are the values of the cookies that the browser would send, by name.
func (v *visitor) cookies() map[string]string {
	v.t.Helper()
	at, err := url.Parse(v.base)
	if err != nil {
		v.t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range v.client.Jar.Cookies(at) {
		all[c.Name] = c.Value
	}
	return all
}

// signedIn fails unless the pages are shown, to somebody of this name, and no cookie holds any of
// the tokens.
func (v *visitor) signedIn(name string, tokens ...string) {
	v.t.Helper()
	if status, text := v.get("/"); status != http.StatusOK || !strings.Contains(text, ">"+name+"</a>") || !strings.Contains(text, "Sign out") {
		v.t.Fatalf("not signed in as %s: %d\n%s", name, status, text)
	}
	cookies := v.cookies()
	if len(cookies) != 1 {
		v.t.Errorf("cookies %v, want one", cookies)
	}
	for _, value := range cookies {
		for _, token := range tokens {
			if strings.Contains(value, token) || strings.Contains(token, value) {
				v.t.Errorf("a cookie holds a token: %s", value)
			}
		}
	}
}

func (v *visitor) signedOut() {
	v.t.Helper()
	if status, text := v.get("/"); status != http.StatusUnauthorized || !strings.Contains(text, `name="token"`) {
		v.t.Errorf("still signed in: %d\n%s", status, text)
	}
}

// TestSignIn: people sign in by form and by link, sign out, and are signed out by others. Revoking
// a token ends its sessions.
func TestSignIn(t *testing.T) {
	t.Parallel()
	h := up(t)
	base, admin := h.address()
	viewer, viewerID := h.token("--name", "reading room", "--role", "viewer")

	form := newVisitor(t, base, nil)
	form.signedOut()
	form.post("/login", url.Values{"token": {viewer}})
	form.signedIn("reading room", viewer, admin)

	r := h.run("login")
	link := strings.TrimSpace(r.stdout)
	if r.code != 0 || !strings.HasPrefix(link, base+"/login?link=") || strings.Contains(link, admin) {
		t.Fatalf("login printed %q %s", r.stdout, r.stderr)
	}
	byLink := newVisitor(t, base, nil)
	byLink.get(link) // which alone does nothing
	_, page := byLink.get(link)
	secret := regexp.MustCompile(`name="link" value="([^"]+)"`).FindStringSubmatch(page)
	if secret == nil {
		t.Fatalf("the link shows no button:\n%s", page)
	}
	byLink.post("/login", url.Values{"link": {secret[1]}})
	byLink.signedIn("holdfast up", viewer, admin)
	again := newVisitor(t, base, nil)
	if status, _ := again.post("/login", url.Values{"link": {secret[1]}}); status != http.StatusUnauthorized {
		t.Errorf("a link that was used: %d", status)
	}

	// The admin's page lists both, and ends the other.
	_, page = byLink.get("/sessions")
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(id) != 1 || !strings.Contains(page, "reading room") {
		t.Fatalf("the page of sessions has %d buttons:\n%s", len(id), page)
	}
	byLink.post("/sessions/end", url.Values{"id": {id[0][1]}})
	form.signedOut()
	form.post("/login", url.Values{"token": {viewer}})
	form.signedIn("reading room", viewer)
	if r := h.run("token", "revoke", viewerID); r.code != 0 {
		t.Fatalf("revoke: %s", r.stderr)
	}
	form.signedOut()
	byLink.post("/logout", nil)
	byLink.signedOut()

	audit := h.run("audit", "list").stdout
	for _, want := range []string{"signed-in", "signed-out", "session-ended", "refused"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit log has no %s:\n%s", want, audit)
		}
	}
	if log := h.log.String(); strings.Contains(log, viewer) || strings.Contains(log, secret[1]) {
		t.Error("a secret is in the log")
	}
}

// TestUp_LinkForPeopleOnly: `up` prints the sign-in link to terminals only, because other outputs
// are logged.
func TestUp_LinkForPeopleOnly(t *testing.T) {
	t.Parallel()
	const wait = "Sign in:    "
	for name, terminal := range map[string]bool{"a pipe": false, "a terminal": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var read, write *os.File
			var err error
			if terminal {
				read, write, err = openTerminal()
			} else {
				read, write, err = os.Pipe()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			dir := filepath.Join(t.TempDir(), "data")
			cmd := exec.Command(binary, "up", "--dir", dir, "--listen", "127.0.0.1:0")
			cmd.Env, cmd.Stdout = (&holdfast{}).environment(), write
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
			defer kill.Stop()
			var printed strings.Builder
			for lines := bufio.NewScanner(read); lines.Scan(); {
				fmt.Fprintln(&printed, lines.Text())
				if strings.Contains(lines.Text(), wait) || strings.Contains(lines.Text(), "prints another") {
					break
				}
			}
			cmd.Process.Signal(os.Interrupt)
			go io.Copy(io.Discard, read)
			cmd.Wait()
			if got := strings.Contains(printed.String(), "/login?link="); got != terminal {
				t.Errorf("printed to %s:\n%s", name, printed.String())
			}
		})
	}
}

// openTerminal opens a pseudoterminal.
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
	}
	return master, slave, err
}
