package generatedtest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplaced(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		ok, fails        bool
	}{
		{"between its lines", "a\n# generated: x, by y\nold\nold\n# end of x\nb\n", "a\n# generated: x, by y\nnew\n# end of x\nb\n", true, false},
		{"twice, in Markdown", "<!-- generated: x -->\n<!-- end of x -->\n<!-- generated: x -->\n1\n<!-- end of x -->", "<!-- generated: x -->\nnew\n<!-- end of x -->\n<!-- generated: x -->\nnew\n<!-- end of x -->", true, false},
		{"another's name", "# generated: xy\nold\n# end of xy\n", "# generated: xy\nold\n# end of xy\n", false, false},
		{"without an end", "# generated: x\nold\n# end of y\n", "", true, true},
	} {
		got, ok, err := replacePart(tt.text, "x", "new\n")
		if got != tt.want || ok != tt.ok || (err != nil) != tt.fails {
			t.Errorf("%s: %q, %t, %v; want %q, %t, an error: %t", tt.name, got, ok, err, tt.want, tt.ok, tt.fails)
		}
	}
}

// heard counts the failures that a check tells its test.
type heard struct {
	testing.TB
	failures int
}

func (h *heard) Helper()               {}
func (h *heard) Error(...any)          { h.failures++ }
func (h *heard) Errorf(string, ...any) { h.failures++ }

// A part that is out of date, missing or unmarked fails the test. With -update it is written, and
// the file's mode stays.
func TestChecks(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("go.mod", "", 0o600)
	put("script", "# generated: x\nold\n# end of x\n", 0o700)
	checks := func() int {
		h := &heard{TB: t}
		Part(h, "scr*", "x", "new\n")
		File(h, "whole", "all\n")
		return h.failures
	}
	if n := checks(); n != 2 {
		t.Errorf("%d failures of 2 files that are out of date", n)
	}
	*update = true
	n := checks()
	*update = false
	if n += checks(); n != 0 {
		t.Errorf("%d failures when both were written", n)
	}
	if info, err := os.Stat(filepath.Join(folder, "script")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the script's mode is now %v, %v", info.Mode(), err)
	}
	h := &heard{TB: t}
	Part(h, "scr*", "y", "")
	if h.failures != 1 {
		t.Error("it is content with a part that no file has")
	}
}
