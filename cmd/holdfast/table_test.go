package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
)

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	generatedtest.File(t, "cmd/holdfast/testdata/"+name, got)
}

func TestTable_Golden(t *testing.T) {
	jobs := []registry.JobResult{
		{ItemID: "01a1fd25-0001", State: registry.StateCompleted, ARK: "ark:/99999/fk4b1", Version: 2, Name: "call911.checkm"},
		{
			ItemID: "01a1fd25-0002", State: registry.StateFailed, Name: "a name that is rather long, 図書館 and all.checkm",
			Error: "fetch https://example.org/a: 404 Not Found; correct the address in line 7", Class: registry.ContentFault,
		},
		{ItemID: "01a1fd25-0003", State: registry.StateCancelled, Name: "two\nlines\x1b[31m"},
	}
	for name, limit := range map[string]int{"table-pipe.txt": 0, "table-100.txt": 100, "table-40.txt": 40} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			table := newTable(&out, limit, jobColumns()...)
			for _, j := range jobs {
				if err := table.row(jobRow(j)...); err != nil {
					t.Fatal(err)
				}
			}
			if err := table.end(); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
			if limit == 100 {
				for line := range strings.Lines(out.String()) {
					if n := cells(strings.TrimRight(line, "\n")); n > limit {
						t.Errorf("a line of %d columns on a terminal of %d: %q", n, limit, line)
					}
				}
			}
		})
	}
}

func TestTable_AnyLength(t *testing.T) {
	var out bytes.Buffer
	table := newTable(&out, 0, column{name: "n", right: true}, column{name: "name"})
	const rows = 3 * tableBuffer
	for i := range rows {
		if err := table.row(strconv.Itoa(i), "name"); err != nil {
			t.Fatal(err)
		}
		if len(table.pending) > tableBuffer {
			t.Fatalf("%d rows are held back", len(table.pending))
		}
	}
	if err := table.end(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != rows+1 {
		t.Errorf("%d lines, want %d", n, rows+1)
	}
}

func TestTable_NoRows(t *testing.T) {
	var out bytes.Buffer
	if err := newTable(&out, 80, jobColumns()...).end(); err != nil || out.Len() > 0 {
		t.Errorf("wrote %q, %v; want nothing", out.String(), err)
	}
}

// On a narrow terminal columns that can be spared are left out before others are shortened beyond use.
func TestTable_Spare(t *testing.T) {
	columns := []column{{name: "id"}, {name: "size", spare: 1}, {name: "updated", spare: 2}, {name: "note", flex: true}}
	for limit, want := range map[int]string{
		0:  "ID        SIZE  UPDATED   NOTE\n01a1fd25  7 B   20:32:23  a note of a certain length\n",
		46: "ID        SIZE  UPDATED   NOTE\n01a1fd25  7 B   20:32:23  a note of a certain…\n",
		40: "ID        SIZE  NOTE\n01a1fd25  7 B   a note of a certain len…\n",
		28: "ID        NOTE\n01a1fd25  a note of a certa…\n",
		20: "ID        NOTE\n01a1fd25  a note of…\n",
	} {
		var out bytes.Buffer
		table := newTable(&out, limit, columns...)
		if err := table.row("01a1fd25", "7 B", "20:32:23", "a note of a certain length"); err != nil {
			t.Fatal(err)
		}
		if err := table.end(); err != nil || out.String() != want {
			t.Errorf("%d columns wide: %v\n%swant\n%s", limit, err, out.String(), want)
		}
	}
}
