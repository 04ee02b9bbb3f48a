package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
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

// TestPackagesAreSmall checks that a package has at most 40 files besides its tests, and at most
// 8 % of the product's lines (docs/contributing.md).
func TestPackagesAreSmall(t *testing.T) {
	const mostFiles, mostPercent = 40, 8
	files, lines, total := map[string]int{}, map[string]int{}, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		n := strings.Count(string(raw), "\n")
		files[filepath.Dir(path)]++
		lines[filepath.Dir(path)] += n
		total += n
		return err
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("saw %d packages: %v", len(files), err)
	}
	for folder, n := range files {
		if n > mostFiles {
			t.Errorf("%s has %d files, more than %d", folder, n, mostFiles)
		}
		if percent := lines[folder] * 100 / total; percent > mostPercent {
			t.Errorf("%s has %d %% of the product's lines, more than %d", folder, percent, mostPercent)
		}
	}
}
