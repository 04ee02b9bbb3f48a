package protocol_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/protocol"
)

//go:generate go test . -run ^TestGenerated -update

// TestGeneratedOperations checks that docs/security.md lists what the token of each stage may call
// in addition.
func TestGeneratedOperations(t *testing.T) {
	table := protocol.Stages()
	var every []string
	own := map[registry.Stage][]string{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if table[name] == nil {
			every = append(every, "`"+name+"`")
		}
		for _, stage := range table[name] {
			own[stage] = append(own[stage], "`"+name+"`")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Every stage: %s.\n\n| stage | also |\n| --- | --- |\n", strings.Join(every, ", "))
	for _, stage := range registry.AllStages() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", stage, cmp.Or(strings.Join(own[stage], ", "), "nothing more"))
	}
	generatedtest.Part(t, "docs/security.md", "operations", b.String())
}
