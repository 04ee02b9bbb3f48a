package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast/holdfast/internal/npmtest"
)

// axeVersion is the version of axe-core, which judges whether everybody can use a page.
const axeVersion = "4.14.1"

// Contrast is the rule of axe-core about colours: on a page that was judged, the one that a change of
// colours can break.
const Contrast = "color-contrast"

// Axe fails the test for each serious or critical violation that axe-core finds on the page: of some
// of its rules, or of all.
func (tab *Tab) Axe(rules ...string) {
	tab.t.Helper()
	if !Eval[bool](tab, "!!window.axe") {
		script, err := os.ReadFile(filepath.Join(npmtest.Folder(tab.ctx, tab.t, "axe-core", axeVersion), "axe.min.js"))
		if err != nil {
			tab.t.Fatal(err)
		}
		Eval[bool](tab, string(script)+";\ntrue")
	}
	only := ""
	if len(rules) > 0 {
		text, _ := json.Marshal(rules) // texts can be written
		only = "runOnly: " + string(text) + ","
	}
	type violation struct {
		ID     string   `json:"id"`
		Impact string   `json:"impact"`
		Nodes  []string `json:"nodes"`
	}
	run := `axe.run(document, { ` + only + ` resultTypes: ["violations"] }).then((r) => r.violations.map((v) => ({ id: v.id, impact: v.impact,
		nodes: v.nodes.slice(0, 4).map((n) => n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " ")) })))`
	for _, v := range Eval[[]violation](tab, run) {
		if v.Impact == "serious" || v.Impact == "critical" {
			tab.t.Errorf("%s: axe: %s (%s):\n%s", tab.Path(), v.ID, v.Impact, strings.Join(v.Nodes, "\n"))
		}
	}
}
