// Package clitest runs commands as their users do, for tests.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
)

// Program is a program under test: it runs args and returns its exit code.
type Program func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) exit.Code

// Commands returns a program with only these commands.
func Commands(make func(a *cli.App) []*cobra.Command) Program {
	return func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) exit.Code {
		a := cli.New("dev", stdin, stdout, stderr)
		return a.Run(ctx, a.Root(make(a)...), args)
	}
}

// Run runs the program with a text on standard input.
func (p Program) Run(t *testing.T, stdin string, args ...string) Result {
	t.Helper()
	var out, errs bytes.Buffer
	code := p(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return Result{Code: code, Out: out.String(), Err: errs.String()}
}

// Result is the output and exit code of a run.
type Result struct {
	Code     exit.Code
	Out, Err string
}

// Wants fails the test unless the program ended with this code.
func (r Result) Wants(t *testing.T, code exit.Code) Result {
	t.Helper()
	if r.Code != code {
		t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", r.Code, code, r.Out, r.Err)
	}
	return r
}

// Says fails the test unless standard error has all of these.
func (r Result) Says(t *testing.T, parts ...string) Result {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.Err, p) {
			t.Errorf("stderr does not say %q:\n%s", p, r.Err)
		}
	}
	if strings.Contains(r.Err, "goroutine ") {
		t.Errorf("a stack trace for a user:\n%s", r.Err)
	}
	return r
}

// NoEnvironment unsets all our variables.
func NoEnvironment(t *testing.T) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, config.Prefix+"_") {
			t.Setenv(name, "")
		}
	}
}

// WriteFile writes a file and its parent folders, and returns its name.
func WriteFile(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// Fits fails the test unless an item's row on a terminal of 80 columns has all of these texts and
// no wider line.
func Fits(t *testing.T, columns []terminal.Column, row []string, id string, says ...string) {
	t.Helper()
	const limit = 80
	var out bytes.Buffer
	table := terminal.NewTable(&out, limit, columns...)
	if err := table.Row(row...); err != nil {
		t.Fatal(err)
	}
	if err := table.End(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), terminal.ShortID(id)) {
		t.Errorf("the id is not there:\n%s", out.String())
	}
	for line := range strings.Lines(out.String()) {
		if n := terminal.Cells(strings.TrimRight(line, "\n")); n > limit {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not there in full:\n%s", want, out.String())
		}
	}
}

// WriteDeposit makes a folder with names that are hard for tar, and returns its content.
func WriteDeposit(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{
		"b.txt": "b", "a.txt": "a", "sub/c": strings.Repeat("c", 1300), "sub/empty": "", "größe.txt": "ü",
		filepath.Join(strings.Repeat("d", 200), strings.Repeat("e", 200)): "deep",
	}
	for name, content := range files {
		WriteFile(t, filepath.Join(dir, name), content)
	}
	if err := os.Mkdir(filepath.Join(dir, "nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	return files
}

// Summary is the last line of a --json run.
type Summary struct {
	Type      string `json:"message_type"`
	BatchID   string `json:"batch_id"`
	State     string `json:"state"`
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	Duplicate bool   `json:"duplicate"`
	ExitCode  int    `json:"exit_code"`
	Jobs      []struct {
		ItemID   string `json:"item_id"`
		State    string `json:"state"`
		ARK      string `json:"ark"`
		ObjectID string `json:"object_id"`
		Version  int    `json:"version"`
		Error    string `json:"error"`
		Class    string `json:"error_class"`
	} `json:"jobs"`
}

// Summary decodes the last line of what a --json run printed.
func (r Result) Summary(t *testing.T) Summary {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Fatalf("not a JSON line: %q", l)
		}
	}
	var s Summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil || s.Type != "summary" {
		t.Fatalf("the last line is no summary (%v): %q\nstderr:\n%s", err, lines[len(lines)-1], r.Err)
	}
	return s
}
