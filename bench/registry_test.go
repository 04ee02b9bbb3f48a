package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// A small database is filled and measured; what comes of the figures is for people to judge.
func TestRegistry(t *testing.T) {
	database := "sqlite:" + filepath.Join(t.TempDir(), "registry.db")
	bench := func(args ...string) (string, error) {
		var out, faults bytes.Buffer
		err := run(t.Context(), args, strings.NewReader(""), &out, &faults)
		return out.String() + faults.String(), err
	}
	out, err := bench("seed", "-database", database, "-items", "600", "-jobs", "20", "-collections", "3")
	if err != nil || !strings.Contains(out, "600 items") {
		t.Errorf("seed: %v; it says %q, want how many there are", err, out)
	}
	out, err = bench("registry", "-database", database, "-runs", "1", "-jobs", "2", "-json")
	if err != nil || !strings.Contains(out, `{"name":"count","rows":600,`) || !strings.Contains(out, `"name":"settle, empty, round 3"`) {
		t.Errorf("registry: %v; it does not have the count of all and the last settles:\n%s", err, out)
	}
	out, err = bench("objects", "-database", "sqlite:"+filepath.Join(t.TempDir(), "objects.db"), "-objects", "40", "-next", "2", "-runs", "1", "-callers", "3")
	if err != nil || strings.Count(out, "record version") != 2 || !strings.Contains(out, "list: its files") {
		t.Errorf("objects: %v; it does not have two records and the last list:\n%s", err, out)
	}
	for said, args := range map[string][]string{"-database": {"seed"}, "sqlite:PATH": {"seed", "-database", "mysql:x"}} {
		if _, err := bench(args...); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%v: %v, want an error that says %s", args, err, said)
		}
	}
}
