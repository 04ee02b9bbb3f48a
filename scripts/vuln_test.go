// Package scripts_test runs the scripts that make calls.
package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// database makes a vulnerability database (https://go.dev/doc/security/vuln/database) in a folder,
// and returns its address. With a package's path it has one entry, about all versions of
// golang.org/x/text.
func database(t *testing.T, affected string) string {
	t.Helper()
	const id, at = "GO-2099-0001", "2099-01-01T00:00:00Z"
	files := map[string]string{"index/db.json": `{"modified":"` + at + `"}`, "index/modules.json": `[]`, "index/vulns.json": `[]`}
	if affected != "" {
		files["index/modules.json"] = fmt.Sprintf(`[{"path":"golang.org/x/text","vulns":[{"id":%q,"modified":%q}]}]`, id, at)
		files["index/vulns.json"] = fmt.Sprintf(`[{"id":%q,"modified":%q}]`, id, at)
		files["ID/"+id+".json"] = fmt.Sprintf(`{"schema_version":"1.3.1","id":%q,"modified":%q,"published":%[2]q,"summary":"made up by a test",
			"affected":[{"package":{"name":"golang.org/x/text","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
			"ecosystem_specific":{"imports":[{"path":%[3]q}]}}],"database_specific":{"url":"https://pkg.go.dev/vuln/%[1]s","review_status":"REVIEWED"}}`, id, at, affected)
	}
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + dir
}

// vuln runs make vuln on one package, which uses golang.org/x/text.
func vuln(t *testing.T, database, packages string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "..", "vuln", "PACKAGES="+packages)
	cmd.Env = append(os.Environ(), "GOVULNDB="+database)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A known vulnerability in code that we call fails make vuln, which make test runs. If the database
// does not answer, it is skipped with a message.
func TestVuln(t *testing.T) {
	for _, name := range []string{"vuln.sh", "../Makefile"} { // what go test must not take an earlier result for, once it has changed
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := vuln(t, database(t, ""), "-version"); err != nil {
		if os.Getenv("REQUIRE_SERVICES") != "" {
			t.Fatalf("govulncheck does not run: %v\n%s", err, out)
		}
		t.Skipf("govulncheck cannot be had here: %v\n%s", err, out)
	}
	plan, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "-C", "..", "test").CombinedOutput()
	if err != nil || !strings.Contains(string(plan), "scripts/vuln.sh") {
		t.Errorf("make test does not run it (%v):\n%s", err, plan)
	}
	for name, tt := range map[string]struct {
		database, says string
		fails          bool
	}{
		"used":        {database(t, "golang.org/x/text/unicode/norm"), "Your code is affected by 1 vulnerability from 1 module.", true},
		"not used":    {database(t, "golang.org/x/text/collate"), "No vulnerabilities found", false},
		"unreachable": {"http://127.0.0.1:1", "govulncheck: skipped, since http://127.0.0.1:1 does not answer from here", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := vuln(t, tt.database, "./pathset")
			if (err != nil) != tt.fails || !strings.Contains(out, tt.says) {
				t.Errorf("make vuln: %v, want an error %v and %q\n%s", err, tt.fails, tt.says, out)
			}
		})
	}
}
