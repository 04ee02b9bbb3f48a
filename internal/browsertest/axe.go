package browsertest

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast/holdfast/internal/npmtest"
)

// axeVersion is the version of axe-core, which judges whether everybody can use a page.
const axeVersion = "4.14.1"

// Axe fails the test for each serious or critical violation that axe-core finds on the page.
func (tab *Tab) Axe() {
	tab.t.Helper()
	script, err := os.ReadFile(filepath.Join(npmtest.Folder(tab.ctx, tab.t, "axe-core", axeVersion), "axe.min.js"))
	if err != nil {
		tab.t.Fatal(err)
	}
	type violation struct {
		ID     string   `json:"id"`
		Impact string   `json:"impact"`
		Nodes  []string `json:"nodes"`
	}
	const run = `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) => ({ id: v.id, impact: v.impact,
		nodes: v.nodes.slice(0, 4).map((n) => n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " ")) })))`
	for _, v := range Eval[[]violation](tab, string(script)+";\n"+run) {
		if v.Impact == "serious" || v.Impact == "critical" {
			tab.t.Errorf("%s: axe: %s (%s):\n%s", tab.Path(), v.ID, v.Impact, strings.Join(v.Nodes, "\n"))
		}
	}
}
