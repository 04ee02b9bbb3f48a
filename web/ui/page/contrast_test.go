package page

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
)

//go:generate go test . -run ^TestGenerated -update

// Contrasts that WCAG 2.2 AA asks for: of text (1.4.3), and of what must be seen to use a page (1.4.11).
const (
	textContrast  = 4.5
	shapeContrast = 3.0
)

// pairs are the colours that stand on each other, by their tokens.
var pairs = []struct {
	front, back, what string
	least             float64
}{
	{"ink", "ground", "text", textContrast},
	{"ink", "raised", "text in tables and boxes", textContrast},
	{"ink", "sunken", "text in code and rows under the pointer", textContrast},
	{"ink", "active-bg", "text in the row with the focus", textContrast},
	{"quiet", "ground", "notes, labels", textContrast},
	{"quiet", "raised", "notes, heads of tables", textContrast},
	{"quiet", "sunken", "notes in rows under the pointer", textContrast},
	{"quiet", "active-bg", "notes in the row with the focus", textContrast},
	{"link", "ground", "links, and the focus", textContrast},
	{"link", "raised", "links in tables and boxes", textContrast},
	{"link", "sunken", "links in rows under the pointer", textContrast},
	{"link", "active-bg", "links in the row with the focus", textContrast},
	{"on-accent", "accent", "main buttons, the link to what is new", textContrast},
	{"accent", "raised", "main buttons and progress among tables", shapeContrast},
	{"good", "good-bg", "state: good", textContrast},
	{"good", "raised", "words that something is good", textContrast},
	{"bad", "bad-bg", "state: bad", textContrast},
	{"bad", "raised", "words that something is bad, dangerous buttons", textContrast},
	{"bad", "ground", "words that something is bad", textContrast},
	{"active", "active-bg", "state: active; the entry of the menu", textContrast},
	{"waiting", "waiting-bg", "state: waiting", textContrast},
	{"still", "still-bg", "state: still", textContrast},
	{"edge", "ground", "edges of fields and buttons", shapeContrast},
	{"edge", "raised", "edges of fields and buttons in boxes", shapeContrast},
}

// colour is a token's colour in the light and the dark scheme.
type colour struct{ light, dark string }

// token finds the declarations of colours in the style sheet.
var token = regexp.MustCompile(`--([a-z0-9-]+):\s*(?:light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\)|(#[0-9a-f]{6}));`)

func tokens(t *testing.T) map[string]colour {
	t.Helper()
	css, err := os.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]colour{}
	for _, m := range token.FindAllStringSubmatch(string(css), -1) {
		all[m[1]] = colour{m[2] + m[4], m[3] + m[4]}
	}
	return all
}

// luminance is the relative luminance of a colour such as #faf9f6 (WCAG 2.2).
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	part := func(from int) float64 {
		n, err := strconv.ParseUint(hex[from:from+2], 16, 8)
		if err != nil {
			t.Fatalf("colour %q: %v", hex, err)
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(1) + 0.7152*part(3) + 0.0722*part(5)
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestGeneratedContrast: every pair of colours that stand on each other can be told apart, in both
// schemes. docs/design-system.md has the figures.
func TestGeneratedContrast(t *testing.T) {
	all := tokens(t)
	if got := contrast(t, "#000000", "#ffffff"); got != 21 {
		t.Fatalf("black on white has the contrast %v", got)
	}
	var table strings.Builder
	table.WriteString("| on each other | for | least | light | dark |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range pairs {
		front, back := all[p.front], all[p.back]
		if front.light == "" || back.light == "" {
			t.Errorf("style.css has no --%s or --%s", p.front, p.back)
			continue
		}
		light, dark := contrast(t, front.light, back.light), contrast(t, front.dark, back.dark)
		if light < p.least || dark < p.least {
			t.Errorf("--%s on --%s: %.2f and %.2f, want at least %.1f", p.front, p.back, light, dark, p.least)
		}
		fmt.Fprintf(&table, "| `--%s` on `--%s` | %s | %.1f | %.1f | %.1f |\n", p.front, p.back, p.what, p.least, math.Floor(light*10)/10, math.Floor(dark*10)/10)
	}
	generatedtest.Part(t, "docs/design-system.md", "contrast", table.String())
}

// Colours are named: outside of its tokens the style sheet has none, but for shadows.
func TestStyle_Tokens(t *testing.T) {
	css, err := os.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, found := strings.Cut(string(css), "\n}\n")
	if !found {
		t.Fatal("the style sheet does not begin with its tokens")
	}
	if other := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b[^{}]*;`).FindAllString(rules, -1); len(other) > 0 {
		t.Errorf("colours without a name: %q", other)
	}
	for _, m := range regexp.MustCompile(`var\(--([a-z0-9-]+)\)`).FindAllStringSubmatch(rules, -1) {
		if !strings.Contains(string(css), "--"+m[1]+":") {
			t.Errorf("--%s is not defined", m[1])
		}
	}
}
