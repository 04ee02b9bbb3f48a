package e2e

import (
	"encoding/pem"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sitePassword opens the guarded site.
const sitePassword = "geheim-und-lang-7d1f"

// guardedSite is a depositor's web server with TLS, whose files need a password. ca is the file of
// its authority.
func guardedSite(t *testing.T) (address, ca string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != sitePassword {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "the file at "+r.URL.Path)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return srv.URL, ca
}

// TestCredentials: a credential set on the command line opens a collection's source. Neither it nor
// an address with a password appears in any file, log or answer.
func TestCredentials(t *testing.T) {
	t.Parallel()
	site, ca := guardedSite(t)
	h := up(t, "SSL_CERT_FILE="+ca)
	credentialsKept(t, h, site)
	said := h.log.String()
	h.stop()
	dump := ""
	for _, table := range h.query("registry.db", `SELECT name FROM sqlite_master WHERE type = 'table'`) {
		if !strings.HasPrefix(table, "item_text") { // of words of other tables
			dump += strings.Join(h.query("registry.db", "SELECT * FROM "+table), "\n")
		}
	}
	noSecret(t, h, map[string]string{"log": said, "tables": dump})
	h.start() // the folder's own key still opens it
	if s, code := h.submit(site + "/again.txt"); code != 0 || s.Completed != 1 {
		t.Errorf("after a restart: %d, %+v", code, s)
	}
}

// TestPostgreSQL_Credentials repeats TestCredentials on PostgreSQL, with a configured key.
func TestPostgreSQL_Credentials(t *testing.T) {
	t.Parallel()
	site, ca := guardedSite(t)
	const key = "0123456789abcdef0123456789abcdef-of-the-test"
	h, _ := onPostgreSQL(t, "SSL_CERT_FILE="+ca, "HOLDFAST_SECRET_KEY="+key)
	for _, e := range h.env {
		if url, ok := strings.CutPrefix(e, "HOLDFAST_DATABASE_URL="); ok {
			h.database = url
		}
	}
	credentialsKept(t, h, site)
	dump := ""
	for _, table := range h.query("registry.db", `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`) {
		dump += strings.Join(h.query("registry.db", "SELECT CAST(row_to_json(t) AS TEXT) FROM "+table+" t"), "\n")
	}
	noSecret(t, h, map[string]string{"log": h.log.String(), "tables": dump}, key)
}

// credentialsKept sets a credential, fetches with it, and reads everything that could show it.
func credentialsKept(t *testing.T, h *holdfast, site string) {
	t.Helper()
	said := ""
	note := func(r result) result { said += r.stdout + r.stderr; return r }
	set := exec.Command(binary, "collection", "credential", "set", "default", site, "--basic", "ann", "--dir", h.dir)
	set.Env, set.Stdin = h.environment(), strings.NewReader(sitePassword+"\n")
	if r := note(h.finish(set)); r.code != 0 {
		t.Fatalf("set ended with %d: %s", r.code, r.stderr)
	}
	s, code := h.submit(site + "/there.txt")
	if code != 0 || s.Completed != 1 {
		t.Fatalf("with the credential: %d, %+v", code, s)
	}
	within := strings.Replace(site, "https://", "https://ann:"+sitePassword+"@", 1)
	if r := note(h.run("submit", within+"/x", "--wait")); r.code != 2 || !strings.Contains(r.stderr, "credential set") {
		t.Errorf("a password in the address: %d, %s", r.code, r.stderr)
	}
	for _, args := range [][]string{
		{"collection", "credential", "list", "default", "--json"},
		{"audit", "list", "--json"},
		{"events", "--json"},
		{"batch", "list", "--json"},
		{"item", "show", s.Jobs[0].ItemID, "--json"},
		{"item", "history", s.Jobs[0].ItemID, "--json"},
		{"object", "events", s.Jobs[0].ARK, "--json"},
	} {
		if r := note(h.run(args...)); r.code != 0 {
			t.Errorf("%v ended with %d: %s", args, r.code, r.stderr)
		}
	}
	if strings.Contains(said, sitePassword) || !strings.Contains(said, "credential-set") {
		t.Errorf("what was said has the password, or no entry of the audit log:\n%s", said)
	}
}

// noSecret fails if the password, or its basic encoding, is in the texts or in any file of the
// folder.
func noSecret(t *testing.T, h *holdfast, texts map[string]string, secrets ...string) {
	t.Helper()
	secrets = append(secrets, sitePassword, "YW5uOmdlaGVpbS11bmQ")
	if !strings.Contains(texts["tables"], "hf1.") {
		t.Errorf("the tables hold no sealed text: they were not read")
	}
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		texts[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range texts {
		for i, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("secret %d stands in %s", i, where)
			}
		}
	}
}
