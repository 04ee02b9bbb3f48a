package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/mint"
)

// TestCheck_NOID: with the template that names are drawn from, `check` refuses the rows whose ARK is a mistyped one of them.
func TestCheck_NOID(t *testing.T) {
	noEnvironment(t)
	const head = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n"
	good := "99123/fk4bcdfghjk" + string(mint.CheckChar("99123/fk4bcdfghjk"))
	wrong := strings.Replace(good, "bcd", "bdc", 1)
	path := writeFile(t, filepath.Join(t.TempDir(), "b.checkm"),
		head+"http://h.test/a | | | | | a | ark:/"+good+"\nhttp://h.test/b | | | | | b | ark:/"+wrong+"\n#%eof\n")
	holdfast(t, "check", path).wants(t, exitOK)
	r := holdfast(t, "check", "--noid", "99123/fk4{.reeeeeeeek}", path).wants(t, exitContent)
	for _, part := range []string{"line 4", "primary-identifier", "check character", good, "correct the ARK"} {
		if !strings.Contains(r.out, part) {
			t.Errorf("%q is not in\n%s", part, r.out)
		}
	}
	t.Log(r.out)
	holdfast(t, "check", "--noid", "fk4{.reeeeeeeek}", path).wants(t, exitUsage).says(t, "no NAAN")
}
