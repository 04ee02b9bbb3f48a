package lang_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// saying is where code of a package writes texts that pages show by Texts.Said: in fields of values, and as
// arguments of functions. Of those, what is put together from parts is no such text.
type saying struct {
	fields    []string
	functions map[string][]int // by name: which arguments
	formats   map[string][]int // the same, where the arguments are formats: those without verbs are texts
	element   int              // of each value in a list of values without names of fields; 0: none
}

// sayings are the packages that write such texts.
var sayings = map[string]saying{
	"checkm": {fields: []string{"Expected", "Fix"}, functions: map[string][]int{
		"warn": {2, 4}, "refuse": {2, 4}, "condemn": {2, 4}, "fault": {1, 2}, "report": {2},
	}},
	"intake":             {fields: []string{"Message", "Expected", "Fix"}},
	"noid":               {formats: map[string][]int{"notARK": {1}}},
	"registry/query":     {element: 2},
	"registry":           {functions: map[string][]int{"New": {0}}, formats: map[string][]int{"Errorf": {0}}},
	"web/api/endpoint":   {fields: []string{"Message", "Fix"}, element: 3},
	"web/api/submission": {fields: []string{"Message", "Fix"}, formats: map[string][]int{"fault": {0}}},
	"web/ui/deposit":     {formats: map[string][]int{"Invalid": {0}}},
	"web/ui/page":        {formats: map[string][]int{"Invalid": {0}, "NewProblem": {2}}},
	"web/ui/queue":       {formats: map[string][]int{"Invalid": {0}, "Refused": {0}}},
	"web/ui/search":      {formats: map[string][]int{"Invalid": {0}}},
	"web/api/valid":      {fields: []string{"Message", "Fix"}},
}

// said adds what a package says.
func (k *keys) said(folder string, from saying) {
	paths, err := filepath.Glob(filepath.Join("../../..", folder, "*.go"))
	if err != nil {
		k.t.Fatal(err)
	}
	s := sayer{keys: k, from: from, constants: map[string]ast.Expr{}}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			k.t.Fatal(err)
		}
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					s.constants[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	for _, file := range files {
		ast.Inspect(file, s.node)
	}
	if s.found == 0 {
		k.t.Errorf("package %s says nothing that pages show", folder)
	}
}

// sayer gathers what a package says.
type sayer struct {
	*keys

	from      saying
	constants map[string]ast.Expr
	found     int
}

func (s *sayer) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if name, ok := n.Key.(*ast.Ident); ok && slices.Contains(s.from.fields, name.Name) {
			s.text(n.Value)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if field, ok := to.(*ast.SelectorExpr); ok && n.Tok == token.ASSIGN && len(n.Lhs) == len(n.Rhs) && slices.Contains(s.from.fields, field.Sel.Name) {
				s.text(n.Rhs[i])
			}
		}
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if one, ok := e.(*ast.CompositeLit); ok && s.from.element > 0 && len(one.Elts) > s.from.element {
				s.text(one.Elts[s.from.element])
			}
		}
	case *ast.CallExpr:
		name := exprName(n.Fun)
		name = name[strings.LastIndex(name, ".")+1:]
		for _, at := range s.from.functions[name] {
			if at < len(n.Args) {
				s.text(n.Args[at])
			}
		}
		for _, at := range s.from.formats[name] {
			text, ok := literal(n.Args[at])
			if text = strings.TrimPrefix(text, "%w: "); ok && len(verbs(text)) == 0 { // what is wrapped is told by the problem's code
				s.key(text)
			}
		}
	}
	return true
}

// text adds a text that is written in one piece.
func (s *sayer) text(e ast.Expr) {
	if name, ok := e.(*ast.Ident); ok && s.constants[name.Name] != nil {
		e = s.constants[name.Name]
	}
	if text, ok := literal(e); ok {
		s.key(strings.ReplaceAll(text, "%", "%%"))
	}
}

// key adds a key, unless it is that of a single word, which may be a value, or would have two forms.
func (s *sayer) key(key string) {
	if strings.Contains(key, " ") && !strings.Contains(key, "|") {
		s.add(key)
		s.found++
	}
}
