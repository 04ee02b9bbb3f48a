package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// TestManual: each command of docs/commands.md has a manual page with its flags, in which no line of
// a help text is an order to troff.
func TestManual(t *testing.T) {
	folder := t.TempDir()
	holdfast(t, "man", folder).Wants(t, exit.OK)
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	all := commands(root(cli.New("dev", strings.NewReader(""), io.Discard, io.Discard)))
	if want := len(all) + 1; len(pages) < want { // and one of holdfast itself
		t.Errorf("%d pages, want %d", len(pages), want)
	}
	for _, c := range all {
		raw, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		text := string(raw)
		for _, want := range []string{".TH ", ".SH NAME", ".SH DESCRIPTION", ".SH SEE ALSO\n.BR holdfast"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page of %s has no %q", c.CommandPath(), want)
			}
		}
		if c.Flags().Lookup("json") != nil && !strings.Contains(text, `\fB\-\-json\fR`) {
			t.Errorf("the page of %s does not explain --json", c.CommandPath())
		}
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
			if strings.HasPrefix(name, ".") && !strings.Contains(" .TH .SH .PP .TP .BR .br .nf .fi .nh ", " "+name+" ") || strings.HasPrefix(name, "'") {
				t.Errorf("the page of %s has the order %q", c.CommandPath(), line)
			}
		}
	}
}
