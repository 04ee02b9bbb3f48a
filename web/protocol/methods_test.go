package protocol_test

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/protocol"
)

//go:generate go test . -run ^Test(Generated|Version$) -update

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

// TestVersion: what workers and Registry exchange is written down for each version of the protocol
// in testdata. What workers of a served version use must stay. A new method needs a new Version: raise
// it, and "go generate ./web/protocol" writes its file. While a version is not released, delete its
// file instead, and generate it again. New fields pass: whether an earlier Registry may overlook them
// is for their author to judge.
func TestVersion(t *testing.T) {
	now := exchanged()
	file := func(version int) string { return fmt.Sprintf("testdata/version-%d.txt", version) }
	if _, err := os.Stat(file(protocol.Version)); err != nil {
		generatedtest.File(t, filepath.Join("web/protocol", file(protocol.Version)), strings.Join(now, "\n")+"\n")
	}
	for version := protocol.Oldest; version <= protocol.Version; version++ {
		raw, err := os.ReadFile(file(version))
		if err != nil {
			t.Fatal(err)
		}
		then := strings.Split(strings.TrimSpace(string(raw)), "\n")
		for _, line := range then {
			if !slices.Contains(now, line) {
				t.Errorf("version %d has %q, which workers of that version use; keep it, or raise Oldest when none is left", version, line)
			}
		}
		if version < protocol.Version {
			continue
		}
		for _, line := range now {
			if strings.HasPrefix(line, "method ") && !slices.Contains(then, line) {
				t.Errorf("version %d has no %q; raise Version, or if it is not released yet, delete its file and generate it again", version, line)
			}
		}
	}
}

// exchanged describes the protocol: a line for each method, and for each field of what methods take
// and return.
func exchanged() (lines []string) {
	seen := map[reflect.Type]bool{}
	for _, name := range slices.Sorted(maps.Keys(protocol.Stages())) {
		in, out := protocol.Types(name)
		lines = append(lines, fmt.Sprintf("method %s: %s -> %s", name, in, out))
		lines = append(append(lines, fieldsOf(in, seen)...), fieldsOf(out, seen)...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// fieldsOf describes the fields of a type and of those within it, as JSON has them, but for types
// that were seen.
func fieldsOf(of reflect.Type, seen map[reflect.Type]bool) (lines []string) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, of.Kind()) {
		of = of.Elem()
	}
	own := of.Implements(reflect.TypeFor[json.Marshaler]()) || of.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	if of.Kind() != reflect.Struct || own || seen[of] {
		return nil
	}
	seen[of] = true
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() && !f.Anonymous || name == "-" || f.Anonymous && name == "" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s.%s %s", of, cmp.Or(name, f.Name), f.Type))
		lines = append(lines, fieldsOf(f.Type, seen)...)
	}
	return lines
}
