package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	const head = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n"
	const rows = " 90.00    0.004000          20       200           fsync\n  9.00    0.000400           4       100        60 openat\n  1.00    0.000010           1         7           fdatasync\n"
	if c, complete := summary(head + rows); complete {
		t.Errorf("a summary without its total counts as complete: %+v", c)
	}
	c, complete := summary(head + rows + "100.00    0.004410          14       307        60 total\n")
	if want := (calls{syncs: 207, opens: 100}); !complete || c != want {
		t.Errorf("read %+v, complete %t, want %+v", c, complete, want)
	}
}

// A ratio that fell by more than a quarter is warned of, one that is missing is named, and the run
// goes on.
func TestCompareRatios(t *testing.T) {
	b := &bench{options: options{only: "small", scale: 0.5, rounds: 2, recordTo: filepath.Join(t.TempDir(), "ratios.json")}, load: "0.10"}
	b.table.parts = []part{{title: "small", base: [2]string{"curl && sync", "gone"}, rows: []row{
		{name: "holdfast up", ratio: [2]float64{0.8, 0.5}}, {name: "curl && sync", ratio: [2]float64{1, 2}},
	}}}
	if err := b.writeRatios(); err != nil {
		t.Fatal(err)
	}
	o := options{check: b.recordTo, scale: 1}
	was, err := o.readRatios()
	if err != nil || o.only != "small" || o.scale != 0.5 || o.rounds != 2 {
		t.Fatalf("the options are %+v after reading: %v", o, err)
	}
	var out strings.Builder
	if err := was.compare(&out, map[string]float64{"small: holdfast up, x curl && sync": 0.59}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-26 %", "WARNING", "not measured", "1 of 2 ratios fell"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if err := os.Remove(o.check); err != nil {
		t.Fatal(err)
	}
	if _, err := o.readRatios(); err == nil {
		t.Error("a missing file was read")
	}
}
