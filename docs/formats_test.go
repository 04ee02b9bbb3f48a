package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFormatsListWords checks that no text is made of a slice by %v, %s or %q: people would read Go's brackets,
// "one of [expand scan]". Such a text takes registry.OneOf or registry.AllOf.
func TestFormatsListWords(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,Module", "./...")
	cmd.Dir = root
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	type one struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
		Module                  *struct{ Main bool }
	}
	exports, ours := map[string]string{}, []one{}
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p one
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main && !forEngineers.MatchString(p.ImportPath) {
			ours = append(ours, p)
		}
	}
	fset := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	seen := 0
	for _, p := range ours {
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		if _, err := config.Check(p.ImportPath, fset, files, &info); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					seen += formatted(call, &info, func(format string, of types.Type) {
						t.Errorf("%s: %q shows a value of %s with Go's brackets; use registry.OneOf or registry.AllOf", fset.Position(call.Pos()), format, of)
					})
				}
				return true
			})
		}
	}
	if seen < 1000 {
		t.Errorf("saw %d formats", seen)
	}
}

// forEngineers are the packages whose texts only engineers read: test kits and measurements.
var forEngineers = regexp.MustCompile(`/(bench|internal|[a-z]+test|registrybench)(/|$)`)

// worded reports whether a type words its values itself.
func worded(of types.Type) bool {
	all := types.NewMethodSet(of)
	return all.Lookup(nil, "Error") != nil || all.Lookup(nil, "String") != nil
}

// formatVerb is a verb of a format.
var formatVerb = regexp.MustCompile(`%%|%(?:\[(\d+)\])?[#+\- .\d]*([a-zA-Z])`)

// formatted calls found for each slice that a call's formats show, and returns how many values they show.
// Bytes are a text.
func formatted(call *ast.CallExpr, info *types.Info, found func(format string, of types.Type)) (shown int) {
	if fun, ok := call.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "Appendf" || call.Ellipsis.IsValid() {
		return 0 // the former is read by no people
	}
	for i, arg := range call.Args {
		value := info.Types[arg].Value
		if value == nil || value.Kind() != constant.String {
			continue
		}
		next := 0
		for _, verb := range formatVerb.FindAllStringSubmatch(constant.StringVal(value), -1) {
			if verb[2] == "" {
				continue
			}
			if n, err := strconv.Atoi(verb[1]); err == nil {
				next = n - 1
			}
			at := i + 1 + next
			next++
			if at >= len(call.Args) {
				break
			}
			shown++
			of := info.Types[call.Args[at]].Type
			if list, ok := of.Underlying().(*types.Slice); ok && strings.Contains("vsq", verb[2]) && !types.Identical(list.Elem(), types.Typ[types.Uint8]) && !worded(of) {
				found(constant.StringVal(value), of)
			}
		}
	}
	return shown
}
