// Package docs tests that the documents agree with the code and with each other: links, anchors,
// and every name of code.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const root = ".."

// documents are the Markdown files that are checked, as paths from this folder.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("*.md")
	if err != nil || len(docs) < 5 {
		t.Fatalf("found the documents %q: %v", docs, err)
	}
	return append(docs, "../README.md", "../CHANGELOG.md", "../ecs/README.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	mermaid  = regexp.MustCompile("(?ms)^```mermaid$.*?^```")
	codeSpan = regexp.MustCompile("`[^`]+`") // which may go on in the next line
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	anchorID = regexp.MustCompile(`<a id="([^"]+)">`)
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	notSlug  = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// spans returns the code spans of a text without fenced blocks.
func spans(text string) (out []string) {
	for _, span := range codeSpan.FindAllString(text, -1) {
		out = append(out, strings.Join(strings.Fields(strings.Trim(span, "`")), " "))
	}
	return out
}

// anchors returns what a link to a document may name behind #, as GitHub makes it of headings.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	text = fence.ReplaceAllString(text, "")
	for _, m := range anchorID.FindAllStringSubmatch(text, -1) {
		out[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := linkText.ReplaceAllString(strings.TrimSpace(m[1]), "$1")
		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		for n, s := 1, slug; ; n++ {
			if !out[s] {
				out[s] = true
				break
			}
			s = slug + "-" + strconv.Itoa(n)
		}
	}
	return out
}

func TestLinks(t *testing.T) {
	checked := 0
	for _, doc := range documents(t) {
		prose := codeSpan.ReplaceAllString(fence.ReplaceAllString(read(t, doc), ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], ":") {
				continue // an address, not a file of ours
			}
			checked++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := doc
			if path != "" {
				target = filepath.Join(filepath.Dir(doc), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
				continue
			}
			if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s, which has no heading or anchor of that name", doc, m[1])
			}
		}
	}
	if checked < 20 {
		t.Errorf("found only %d links", checked)
	}
}

// code is what the repository declares.
type code struct {
	files    map[string]bool // every file and folder, as a path from the root
	packages map[string]bool // the last element of each package's path
	names    map[string]bool // PACKAGE.Name and PACKAGE.Type.Name, of functions, types, fields, constants and variables
	inFile   map[string]bool // PATH:Name and PATH:Type.Name
	tests    map[string]bool // names of test functions
	comments map[string]string
	subtests string // everything that tests and test kits say
}

var load = sync.OnceValues(func() (*code, error) {
	c := &code{
		files: map[string]bool{}, packages: map[string]bool{}, names: map[string]bool{},
		inFile: map[string]bool{}, tests: map[string]bool{}, comments: map[string]string{},
	}
	var said strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() && (rel == ".git" || rel == "bin") {
			return filepath.SkipDir // bin is there once make has built it: documents are the same before and after
		}
		if e.IsDir() && e.Name() == "testdata" {
			c.files[rel] = true
			return filepath.SkipDir
		}
		c.files[rel] = true
		if e.IsDir() || !strings.HasSuffix(rel, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(rel, "test") {
			said.Write(text)
		}
		return c.add(rel, text)
	})
	c.subtests = said.String()
	return c, err
})

func (c *code) add(path string, text []byte) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var comments strings.Builder
	for _, g := range f.Comments {
		comments.WriteString(g.Text())
	}
	c.comments[path] = comments.String()
	pkg := filepath.Base(filepath.Dir(path))
	c.packages[pkg] = true
	declare := func(name string) {
		c.names[pkg+"."+name] = true
		c.inFile[path+":"+name] = true
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				declare(d.Name.Name)
				if strings.HasSuffix(path, "_test.go") {
					c.tests[d.Name.Name] = true
				}
				continue
			}
			declare(receiver(d.Recv.List[0].Type) + "." + d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					declare(s.Name.Name)
					for _, member := range members(s.Type) {
						declare(s.Name.Name + "." + member)
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						declare(n.Name)
					}
				}
			}
		}
	}
	return nil
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members returns the fields of a struct, or the methods of an interface.
func members(e ast.Expr) (out []string) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			out = append(out, n.Name)
		}
	}
	return out
}

var (
	goFile    = regexp.MustCompile(`^([\w./-]+\.go)(?::([\w.]+))?$`)
	inPicture = regexp.MustCompile(`[a-z0-9]+(?:/[a-z0-9]+)+`)
	goName    = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)$`)
	testName  = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz|Example)[A-Z_]\w*$`)
	subtest   = regexp.MustCompile(`^[RI]\d{1,2}[_ ][\w ]+$`)
	path      = regexp.MustCompile(`^[\w.-]+(?:/[\w.-]+)+/?$`)
)

// aboutCode are the documents that also name what packages keep to themselves.
var aboutCode = []string{"architecture.md", "contributing.md", "design.md", "glossary.md", "invariants.md"}

// fault says what is wrong with a name of code in a document; "" when it exists, or is no name of
// our code.
func (c *code) fault(span string) string {
	span = strings.TrimSuffix(span, "()")
	switch {
	case goFile.MatchString(span):
		m := goFile.FindStringSubmatch(span)
		found := false
		for f := range c.files {
			if f == m[1] || strings.HasSuffix(f, "/"+m[1]) {
				found = found || m[2] == "" || c.inFile[f+":"+m[2]]
			}
		}
		if !found {
			return "no such file, or it does not declare the name"
		}
	case testName.MatchString(span):
		if !c.tests[span] {
			return "no test has this name"
		}
	case subtest.MatchString(span):
		if !strings.Contains(c.subtests, `"`+span+`"`) {
			return "no subtest has this name"
		}
	case goName.MatchString(span):
		m := goName.FindStringSubmatch(span)
		if c.packages[m[1]] && !c.names[span] && !c.files[span] {
			return "package " + m[1] + " does not declare it"
		}
	case path.MatchString(span) && !strings.HasPrefix(span, "."):
		span = strings.TrimSuffix(span, "/")
		first, _, _ := strings.Cut(span, "/")
		if c.files[first] && !c.files[span] {
			return "no such file or folder"
		}
	}
	return ""
}

// TestCodeNames checks every file, function, type and test that a document names in a code span.
// docs/contributing.md says how they are written.
func TestCodeNames(t *testing.T) {
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range documents(t) {
		if strings.HasSuffix(doc, "CHANGELOG.md") {
			continue // history: what it names may be gone
		}
		prose := fence.ReplaceAllString(read(t, doc), "")
		for _, span := range spans(prose) {
			if m := goName.FindStringSubmatch(span); m != nil && !ast.IsExported(m[2]) && !slices.Contains(aboutCode, doc) {
				continue // a file such as bagit.txt, or a field such as mail.to
			}
			if fault := c.fault(span); fault != "" {
				t.Errorf("%s names `%s`: %s", doc, span, fault)
			}
		}
	}
	for _, picture := range mermaid.FindAllString(read(t, "architecture.md"), -1) {
		for _, name := range inPicture.FindAllString(strings.ReplaceAll(picture, "<br/>", " "), -1) {
			if !c.files[name] {
				t.Errorf("the picture in architecture.md names %s: no such file or folder", name)
			}
		}
	}
	for span, want := range map[string]bool{
		"docs/docs_test.go":              true,
		"docs/docs_test.go:code.fault":   true,
		"docs/docs_test.go:code.missing": false,
		"docs/none.go":                   false,
		"docs.code.fault":                true,
		"docs.none":                      false,
		"docs/none":                      false,
		"TestCodeNames":                  true,
		"TestNone":                       false,
		"R99_none" + "_such":             false,
		"items/ITEM":                     true, // of no folder of ours
	} {
		if fault := c.fault(span); (fault == "") != want {
			t.Errorf("judged %s: %q", span, fault)
		}
	}
}

var (
	rule     = regexp.MustCompile(`\b([RI])0?(\d{1,2})\b`)
	citation = regexp.MustCompile(`\bdocs/[\w-]+\.(?:md|json)\b`)
	absent   = regexp.MustCompile(`safety-rules|design(?:\.md)?,? \(?sections? \d|\(design\)`)
)

// TestCitations checks that code cites only documents, rules and invariants that there are, and
// that each rule in invariants.md names a test.
func TestCitations(t *testing.T) {
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	stand := anchors(read(t, "invariants.md"))
	for path, text := range c.comments {
		for _, m := range rule.FindAllStringSubmatch(text, -1) {
			if m[1]+m[2] != "R004" && !stand[strings.ToLower(m[1]+m[2])] {
				t.Errorf("%s cites %s, which invariants.md does not have", path, m[0])
			}
		}
		for _, doc := range citation.FindAllString(text, -1) {
			if !c.files[doc] {
				t.Errorf("%s cites %s, which does not exist", path, doc)
			}
		}
		if m := absent.FindString(strings.Join(strings.Fields(text), " ")); m != "" {
			t.Errorf("%s cites %q, which is no document of this repository", path, m)
		}
	}
	for _, r := range rules(t) {
		tested := slices.ContainsFunc(spans(r.text), func(span string) bool {
			return testName.MatchString(span) || subtest.MatchString(span)
		})
		if !tested {
			t.Errorf("invariants.md names no test of %s", r.anchor)
		}
	}
}

// TestPackagesAreNamed checks that architecture.md has a place for every package that is not a
// test's.
func TestPackagesAreNamed(t *testing.T) {
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	named := spans(fence.ReplaceAllString(read(t, "architecture.md"), ""))
	checked := map[string]bool{}
	for file := range c.comments {
		dir := filepath.ToSlash(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, "tools/") || checked[dir] {
			continue
		}
		checked[dir] = true
		if !slices.Contains(named, dir) {
			t.Errorf("architecture.md does not name the package %s: give it a place in its table of layers", dir)
		}
	}
	if len(checked) < 40 {
		t.Errorf("found only %d packages", len(checked))
	}
}

type paragraph struct{ anchor, text string }

// rules are the paragraphs of invariants.md, each from its anchor to the next: I1 to I12 and R0 to
// R30, each once.
func rules(t *testing.T) (out []paragraph) {
	t.Helper()
	text := read(t, "invariants.md")
	at := anchorID.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out = append(out, paragraph{anchor: text[m[2]:m[3]], text: text[m[0]:end]})
	}
	var want []string
	for n := range 12 {
		want = append(want, "i"+strconv.Itoa(n+1))
	}
	for n := range 31 {
		want = append(want, "r"+strconv.Itoa(n))
	}
	slices.Sort(want)
	var got []string
	for _, p := range out {
		got = append(got, p.anchor)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("invariants.md has %v, want %v", got, want)
	}
	return out
}
