package help

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
)

//go:generate go test . -run ^TestGenerated -update

// markup finds code spans, emphasis and links of Markdown, whose text is kept.
var markup = regexp.MustCompile("`([^`]*)`|\\*([^*]*)\\*|\\[([^\\]]*)\\]\\([^)]*\\)")

// TestGeneratedGlossary: the help has the concepts of docs/glossary.md that pages show.
func TestGeneratedGlossary(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	const shownAt = 5 // term, meaning, code, CLI and API, pages; before the first one there is a bar
	var all []Section
	words := false // of the present table: it has terms
	for line := range strings.Lines(string(raw)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			all, words = append(all, Section{Title: strings.TrimSpace(title)}), false
		}
		cells := strings.Split(line, "|")
		if strings.HasPrefix(line, "| term |") {
			words = true
			continue
		}
		if !words || len(cells) <= shownAt || strings.HasPrefix(line, "| ---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(markup.ReplaceAllString(cells[i], "$1$2$3"))
		}
		if cells[shownAt] != "" {
			last := &all[len(all)-1]
			last.Concepts = append(last.Concepts, Concept{cells[1], cells[2]})
		}
	}
	shown := all[:0]
	for _, one := range all {
		if len(one.Concepts) > 0 {
			shown = append(shown, one)
		}
	}
	const fewest = 2
	if len(shown) < fewest {
		t.Fatalf("the glossary has only %d sections", len(shown))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(shown); err != nil {
		t.Fatal(err)
	}
	generatedtest.File(t, "web/ui/help/glossary.json", b.String())
}
