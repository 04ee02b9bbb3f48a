package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestInterfacesAreSmall checks that an interface has at most 12 methods of its own
// (docs/contributing.md), those of tests and of functions among them. One that is put together from
// such interfaces may have more.
func TestInterfacesAreSmall(t *testing.T) {
	const most = 12
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			of, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			seen++
			own := 0
			for _, m := range of.Methods.List {
				own += len(m.Names) // none: another interface, or types
			}
			if own > most {
				t.Errorf("%s: an interface with %d methods of its own; cut it into roles of at most %d", fset.Position(of.Pos()), own, most)
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("saw %d interfaces: %v", seen, err)
	}
}
