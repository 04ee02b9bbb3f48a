package lang_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:generate go test . -run ^TestGenerated -update

// enumerations are the types of package registry, and of the vocabularies of PREMIS, whose values pages show as words, by {{term}}.
var enumerations = []string{
	"Act", "Action", "CatchUp", "CheckOutcome", "Commitment", "CredentialKind", "Decision", "DeletionStatus", "ErrorClass", "EventType", "FiringOutcome",
	"HoldScope", "MailKind", "OrphanKind", "Outcome", "Overlap", "PayloadType", "ProcessStatus", "RestorationStatus", "Role", "Stage", "State", "StorageState",
	"Status", "VolumeKind", "WaitFor",
}

// computed are the arguments of t and T that are no texts themselves, and where their texts come from.
var computed = map[string]string{
	".Title":           "the menu",
	"Label":            "labels of acts",
	"page.Label":       "labels of acts",
	"fmt.Sprint(word)": "enumerations",
	"string":           "enumerations",
	"fmt.Sprint(act)":  "enumerations",
	"own.text":         "refusals of package signin",
	"key":              "arguments of rich.T, and texts that are told to the producer",
}

// keys gathers the keys of all texts: those of templates and code below web/ui, of the menu, of acts
// and of enumerations.
type keys struct {
	t       *testing.T
	all     map[string]bool
	phrases map[string]bool // of all those that what is written elsewhere is recognised by
}

func allKeys(t *testing.T) *keys {
	t.Helper()
	k := &keys{t, map[string]bool{}, map[string]bool{}}
	gather := func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir() || strings.Contains(path, "uitest"):
			return err
		case strings.HasSuffix(path, ".html"):
			k.template(path)
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			k.code(path)
		}
		return nil
	}
	for _, folder := range []string{"..", "../../signin", "../../../registry/wording"} {
		if err := filepath.WalkDir(folder, gather); err != nil {
			t.Fatal(err)
		}
	}
	for _, act := range k.registry() {
		k.add(page.Label(act))
	}
	k.glossary()
	for folder, from := range sayings {
		k.said(folder, from)
	}
	const fewest = 100
	if len(k.all) < fewest {
		t.Fatalf("only %d texts were found", len(k.all))
	}
	return k
}

// glossary adds the words of the help, and what they mean.
func (k *keys) glossary() {
	raw, err := os.ReadFile("../help/glossary.json")
	if err != nil {
		k.t.Fatal(err)
	}
	for _, text := range regexp.MustCompile(`": ("(?:[^"\\]|\\.)*")`).FindAllSubmatch(raw, -1) {
		var key string
		if err := json.Unmarshal(text[1], &key); err != nil {
			k.t.Fatal(err)
		}
		k.add(key)
	}
}

func (k *keys) add(key string) {
	if key != "" {
		k.all[key] = true
	}
}

// template adds the texts of a template.
func (k *keys) template(path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		k.t.Fatal(err)
	}
	tree := parse.New(path)
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(string(raw), "", "", trees); err != nil {
		k.t.Fatal(err)
	}
	for _, one := range trees {
		k.node(path, one.Root)
	}
}

// node walks over a part of a template.
func (k *keys) node(path string, n parse.Node) {
	branch := func(b parse.BranchNode) {
		k.node(path, b.Pipe)
		k.node(path, b.List)
		if b.ElseList != nil {
			k.node(path, b.ElseList)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, one := range n.Nodes {
			k.node(path, one)
		}
	case *parse.IfNode:
		branch(n.BranchNode)
	case *parse.RangeNode:
		branch(n.BranchNode)
	case *parse.WithNode:
		branch(n.BranchNode)
	case *parse.ActionNode:
		k.node(path, n.Pipe)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			k.node(path, n.Pipe)
		}
	case *parse.PipeNode:
		for _, one := range n.Cmds {
			k.node(path, one)
		}
	case *parse.CommandNode:
		if called, ok := n.Args[0].(*parse.IdentifierNode); ok && called.Ident == "t" {
			k.argument(path, n)
		}
		for _, one := range n.Args {
			k.node(path, one)
		}
	}
}

// argument adds the text of a call of t.
func (k *keys) argument(path string, n *parse.CommandNode) {
	if len(n.Args) < 2 {
		k.t.Errorf("%s: %s has no text", path, n)
		return
	}
	if text, ok := n.Args[1].(*parse.StringNode); ok {
		k.add(text.Text)
	} else if called, ok := n.Args[1].(*parse.PipeNode); ok && k.returned(filepath.Dir(filepath.Dir(path)), calledBy(called)) {
		return
	} else if computed[n.Args[1].String()] == "" {
		k.t.Errorf("%s: %s: its text must be written there, or its source be named in %s", path, n, "computed")
	}
}

// calledBy is the name of the function that an argument in brackets calls.
func calledBy(p *parse.PipeNode) string {
	if called, ok := p.Cmds[0].Args[0].(*parse.IdentifierNode); ok {
		return called.Ident
	}
	return ""
}

// code adds the texts of a file of Go: arguments of T, and titles of the menu.
func (k *keys) code(path string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	isMenu := strings.HasSuffix(path, "menu.go")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			k.refused(path, n)
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "T" && len(n.Args) > 0 {
				if text, ok := literal(n.Args[0]); ok {
					k.add(text)
				} else if k.returned(filepath.Dir(path), source(n.Args[0])) {
					break
				} else if computed[source(n.Args[0])] == "" {
					k.t.Errorf("%s: T(%s): its text must be written there, or its source be named in %s", path, source(n.Args[0]), "computed")
				}
			}
		case *ast.KeyValueExpr:
			if name, ok := n.Key.(*ast.Ident); ok && isMenu && name.Name == "title" {
				text, _ := literal(n.Value)
				k.add(text)
			}
		case *ast.CompositeLit:
			if isMenu && len(n.Elts) > 0 {
				text, _ := literal(n.Elts[0]) // "" for all but the title of a group
				k.add(text)
			}
		}
		return true
	})
}

// refused adds the text of a refusal of package signin.
func (k *keys) refused(path string, n *ast.CallExpr) {
	at, ok := map[string]int{"unauthenticated": 0, "refused": 2}[exprName(n.Fun)]
	if !ok || !strings.Contains(path, "signin") {
		return
	}
	if text, ok := literal(n.Args[at]); ok {
		k.add(text)
	} else if source(n.Args[at]) != "text" {
		k.t.Errorf("%s: %s(%s): its text must be written there", path, exprName(n.Fun), source(n.Args[at]))
	}
}

// returned adds the texts that a function of a package returns; false if it returns none.
func (k *keys) returned(folder, function string) (found bool) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != function {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
					if text, ok := literal(r.Results[0]); ok {
						k.add(text)
						found = true
					}
				}
				return true
			})
		}
	}
	return found
}

// literal is the value of a string that is written in the code, in one or several parts.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// source names an expression: a function that is called, or fmt.Sprint with its argument.
func source(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return exprName(e)
	}
	name := exprName(call.Fun)
	if name == "fmt.Sprint" && len(call.Args) == 1 {
		name += "(" + exprName(call.Args[0]) + ")"
	}
	return name
}

func exprName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprName(e.X) + "." + e.Sel.Name
	}
	return "?"
}

// registry adds the values of the enumerations, and returns the acts.
func (k *keys) registry() (acts []registry.Act) {
	found := map[string]bool{}
	files, err := filepath.Glob("../../../registry/*.go")
	if err != nil {
		k.t.Fatal(err)
	}
	for _, path := range append(files, "../../../premis/vocabulary.go") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			k.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil || len(spec.Values) == 0 {
				return true
			}
			kind := exprName(spec.Type)
			text, ok := literal(spec.Values[0])
			if !ok || text == "" || !slices.Contains(enumerations, kind) {
				return true
			}
			found[kind] = true
			k.add(text)
			if kind == "Act" {
				acts = append(acts, registry.Act(text))
			}
			return true
		})
	}
	k.events()
	for _, kind := range enumerations {
		if !found[kind] {
			k.t.Errorf("package registry has no values of the type %s", kind)
		}
	}
	return acts
}

// eventName is the name of a constant with a type of events.
var eventName = regexp.MustCompile(`^[eE]vent[A-Z]`)

// events adds the types of events.
func (k *keys) events() {
	err := filepath.WalkDir("../../../registry", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && eventName.MatchString(spec.Names[0].Name) && len(spec.Values) > 0 {
				text, _ := literal(spec.Values[0]) // "" for what is no type
				k.add(text)
			}
			return true
		})
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// TestGeneratedEnglish: English has each text that pages use, and no other.
func TestGeneratedEnglish(t *testing.T) {
	texts := map[string]any{}
	for key := range allKeys(t).all {
		texts[key] = key
		if one, other, both := strings.Cut(key, "|"); both {
			texts[key] = map[string]string{"one": one, "other": other}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(texts); err != nil {
		t.Fatal(err)
	}
	generatedtest.File(t, "web/ui/lang/catalogue/en.json", b.String())
}

// TestGeneratedPhrases: the keys of phrases are those of the formats that the code has.
func TestGeneratedPhrases(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(slices.Sorted(maps.Keys(allKeys(t).phrases))); err != nil {
		t.Fatal(err)
	}
	generatedtest.File(t, "web/ui/lang/phrases.json", b.String())
}

// verb finds the verbs of a text.
var verb = regexp.MustCompile(`%(\[\d+\])?[.\d]*[a-zA-Z]`)

// TestCatalogues: each language has each text, in each of its plural forms, with the same verbs.
func TestCatalogues(t *testing.T) {
	english := read(t, "en")
	for _, one := range languages(t) {
		texts := read(t, one.Tag)
		for _, key := range slices.Sorted(maps.Keys(english)) {
			forms, ok := texts[key]
			if !ok {
				t.Errorf("%s lacks %q", one.Tag, key)
				continue
			}
			if (len(english[key]) > 1) != (len(forms) > 1) {
				t.Errorf("%s: %q has %d forms, as English has %d", one.Tag, key, len(forms), len(english[key]))
			}
			for form, text := range forms {
				want := verbs(english[key]["other"])
				if got := verbs(text); !slices.Equal(got, want) && (form == "other" || !slices.Equal(got, want[min(1, len(want)):])) {
					t.Errorf("%s: %q has the verbs %v, want %v", one.Tag, text, got, want)
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			if english[key] == nil {
				t.Errorf("%s has %q in vain", one.Tag, key)
			}
		}
	}
}

// verbs are the verbs of a text, in the order of their arguments.
func verbs(text string) []string {
	all := verb.FindAllString(strings.ReplaceAll(text, "%%", ""), -1)
	slices.Sort(all)
	for i := range all {
		all[i] = regexp.MustCompile(`\[\d+\]`).ReplaceAllString(all[i], "")
	}
	slices.Sort(all)
	return all
}

func languages(t *testing.T) []lang.Language {
	t.Helper()
	c, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	all := c.Languages()
	if len(all) < 2 || all[0].Tag != "en" {
		t.Fatalf("the languages are %v, want English and another one", all)
	}
	return all
}

// read reads a catalogue: for each key its forms; a text without plural forms has "other" alone.
func read(t *testing.T, tag string) map[string]map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("catalogue", tag+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]string{}
	for key, value := range values {
		var text string
		var forms map[string]string
		if json.Unmarshal(value, &text) == nil {
			forms = map[string]string{"other": text}
		} else if err := json.Unmarshal(value, &forms); err != nil {
			t.Fatalf("%s: %q: %v", tag, key, err)
		}
		all[key] = forms
	}
	return all
}
