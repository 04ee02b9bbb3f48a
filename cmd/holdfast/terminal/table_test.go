package terminal

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
)

//go:generate go test . -run _Golden -update

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	generatedtest.File(t, "cmd/holdfast/terminal/testdata/"+name, got)
}

func TestTable_Golden(t *testing.T) {
	columns := []Column{
		{Name: "item", ID: true}, {Name: "state"}, {Name: "ark"}, {Name: "version", Right: true, Spare: 1}, {Name: "name", Flex: true}, {Name: "error", Flex: true, Below: 8},
	}
	rows := [][]string{
		{"01a1fd25-0001", "Completed", "ark:/99999/fk4b1", "2", "call911.checkm", ""},
		{
			"01a1fd25-0002", "Failed", "", "", "a name that is rather long, 図書館 and all.checkm",
			"content: fetch https://example.org/a: 404 Not Found; correct the address in line 7",
		},
		{"01a1fd25-0003", "Cancelled", "", "", "two\nlines\x1b[31m", ""},
	}
	for name, limit := range map[string]int{"table-pipe.txt": 0, "table-100.txt": 100, "table-40.txt": 40} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			table := NewTable(&out, limit, columns...)
			for _, row := range rows {
				if err := table.Row(slices.Clone(row)...); err != nil {
					t.Fatal(err)
				}
			}
			if err := table.End(); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
			if limit == 100 {
				for line := range strings.Lines(out.String()) {
					if n := Cells(strings.TrimRight(line, "\n")); n > limit {
						t.Errorf("a line of %d columns on a terminal of %d: %q", n, limit, line)
					}
				}
			}
		})
	}
}

func TestTable_AnyLength(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&out, 0, Column{Name: "n", Right: true}, Column{Name: "name"})
	const rows = 3 * tableBuffer
	for i := range rows {
		if err := table.Row(strconv.Itoa(i), "name"); err != nil {
			t.Fatal(err)
		}
		if len(table.pending) > tableBuffer {
			t.Fatalf("%d rows are held back", len(table.pending))
		}
	}
	if err := table.End(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != rows+1 {
		t.Errorf("%d lines, want %d", n, rows+1)
	}
}

func TestTable_NoRows(t *testing.T) {
	var out bytes.Buffer
	if err := NewTable(&out, 80, Column{Name: "name"}).End(); err != nil || out.Len() > 0 {
		t.Errorf("wrote %q, %v; want nothing", out.String(), err)
	}
}

// On a narrow terminal spare columns are hidden before others become unreadable.
func TestTable_Spare(t *testing.T) {
	columns := []Column{{Name: "id"}, {Name: "size", Spare: 1}, {Name: "updated", Spare: 2}, {Name: "note", Flex: true}}
	for limit, want := range map[int]string{
		0:  "ID        SIZE  UPDATED   NOTE\n01a1fd25  7 B   20:32:23  a note of a certain length\n",
		46: "ID        SIZE  UPDATED   NOTE\n01a1fd25  7 B   20:32:23  a note of a certain…\n",
		40: "ID        SIZE  NOTE\n01a1fd25  7 B   a note of a certain len…\n",
		28: "ID        NOTE\n01a1fd25  a note of a certa…\n",
		20: "ID        NOTE\n01a1fd25  a note of…\n",
	} {
		var out bytes.Buffer
		table := NewTable(&out, limit, columns...)
		if err := table.Row("01a1fd25", "7 B", "20:32:23", "a note of a certain length"); err != nil {
			t.Fatal(err)
		}
		if err := table.End(); err != nil || out.String() != want {
			t.Errorf("%d columns wide: %v\n%swant\n%s", limit, err, out.String(), want)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		most int
		want []string
	}{
		{"short", "one two", 3, []string{"one two"}},
		{"two lines", "one two three", 3, []string{"one two", "three"}},
		{"a word that is longer than a line", "see https://example.org/a it", 3, []string{"see", "https://example.org/a", "it"}},
		{"too many lines", "one two three four five", 2, []string{"one two", "three fo…"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Wrapped(tt.text, 9, tt.most)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Ids are cut only if they still differ.
func TestTable_IDsNotToldApart(t *testing.T) {
	const id, other = "01a20514-45c2-7b38-9d9b-d8137c33ac0f", "01a20514-45c2-7b49-b986-e271d07fa566"
	long := strings.Repeat("a long name ", 9) + ".tiff"
	var out bytes.Buffer
	table := NewTable(&out, 40, Column{Name: "id", ID: true}, Column{Name: "name", Flex: true})
	for _, same := range []string{id, id[:shownID] + other[shownID:]} {
		if err := table.Row(same, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.End(); err != nil {
		t.Fatal(err)
	}
	for _, whole := range []string{id, id[:shownID] + other[shownID:]} {
		if !strings.Contains(out.String(), whole) {
			t.Errorf("%s is not there in whole:\n%s", whole, out.String())
		}
	}
}

// Colours of a column change no width, and the head has none.
func TestTable_Painted(t *testing.T) {
	write := func(p Paint) string {
		var out bytes.Buffer
		table := NewTable(&out, 80, Column{Name: "state", Right: true, Meaning: StateMeaning}, Column{Name: "name"}).ForScreen(p)
		for _, state := range []string{"Completed", "Failed", "Held", "Pending"} {
			if err := table.Row(state, "x"); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.End(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := "    STATE  NAME\n\x1b[32mCompleted\x1b[0m  x\n   \x1b[1;31mFailed\x1b[0m  x\n     \x1b[33mHeld\x1b[0m  x\n  Pending  x\n"
	if diff := cmp.Diff(want, write(true)); diff != "" {
		t.Error(diff)
	}
	if plain := write(false); strings.Contains(plain, "\x1b") {
		t.Errorf("colours that nobody wants: %q", plain)
	}
}

// Every state of items has a meaning that somebody decided on.
func TestStateMeaning(t *testing.T) {
	for _, s := range registry.States() {
		plain := s == registry.StatePrepare || s == registry.StatePending
		if (StateMeaning(string(s)) == Plain) != plain {
			t.Errorf("%s: meaning %d", s, StateMeaning(string(s)))
		}
	}
}
