package check

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/noid"
)

// TestCheck_NOID: with --noid, `check` refuses rows whose ARK is a mistyped name of the template.
func TestCheck_NOID(t *testing.T) {
	clitest.NoEnvironment(t)
	const head = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n"
	good := "99123/fk4bcdfghjk" + string(noid.CheckChar("99123/fk4bcdfghjk"))
	wrong := strings.Replace(good, "bcd", "bdc", 1)
	path := clitest.WriteFile(t, filepath.Join(t.TempDir(), "b.checkm"),
		head+"http://h.test/a | | | | | a | ark:/"+good+"\nhttp://h.test/b | | | | | b | ark:/"+wrong+"\n#%eof\n")
	runCheck(t, "check", path).Wants(t, exit.OK)
	r := runCheck(t, "check", "--noid", "99123/fk4{.reeeeeeeek}", path).Wants(t, exit.Content)
	for _, part := range []string{"line 4", "primary-identifier", "check character", good, "correct the ARK"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("%q is not in\n%s", part, r.Out)
		}
	}
	t.Log(r.Out)
	runCheck(t, "check", "--noid", "fk4{.reeeeeeeek}", path).Wants(t, exit.Usage).Says(t, "no NAAN")
}
