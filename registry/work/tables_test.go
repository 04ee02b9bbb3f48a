package work_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownTables are the tables that the engine's statements may name. setting belongs to all subjects.
var ownTables = []string{
	"alone", "attempt", "attempt_log", "command", "event", "graph", "graph_node", "hold", "kept_room", "lane", "lock", "lock_wait", "program_day", "promised", "pulse",
	"putback", "reservation", "setting", "work_dep", "work_detail", "work_item", "work_limit", "worker", "worker_stage",
}

var (
	tableMade  = regexp.MustCompile(`CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+)`)
	tableNamed = regexp.MustCompile(`\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)`)
)

// The engine knows no subject's tables: what it needs of a subject is one of its hooks.
func TestEngineNamesOnlyItsOwnTables(t *testing.T) {
	migrations, err := filepath.Glob("../sqldb/migration/*.sql")
	if err != nil || len(migrations) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	var subjects []string // the other tables
	for _, name := range migrations {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, made := range tableMade.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(ownTables, made[1]) {
				subjects = append(subjects, made[1])
			}
		}
	}
	if !slices.Contains(subjects, "token") || slices.Contains(subjects, "work_item") {
		t.Fatalf("the migrations were not understood: %q", subjects)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING || text.Value[0] != '`' { // SQL is written between backquotes
				return true
			}
			for _, named := range tableNamed.FindAllStringSubmatch(text.Value, -1) {
				if slices.Contains(subjects, named[1]) {
					t.Errorf("%s: a statement names table %s, which belongs to a subject: add a hook to Hooks", files.Position(text.Pos()), named[1])
				}
			}
			return true
		})
	}
}
