package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/item"
	"github.com/holdfast/holdfast/internal/generatedtest"
)

//go:generate go test . -run ^TestGenerated -update

const commandsIntro = `# Commands

<!-- Made by "go generate ./cmd/holdfast" from the commands and cmd/holdfast/*/help; do not edit. -->

` + "`holdfast COMMAND --help`" + ` prints the same. [depositing.md](depositing.md) and
[operating.md](operating.md) are the guides, [configuration.md](configuration.md) lists the settings,
[exit-codes.md](exit-codes.md) the exit codes.

## Contents

`

var docLink = regexp.MustCompile(`docs/([\w-]+\.(?:md|json))(#[\w-]+)?`)

// linked turns the names of documents in a help text into links.
func linked(text string) string { return docLink.ReplaceAllString(text, "[$1]($1$2)") }

// cell escapes a text for a table.
func cell(text string) string {
	return linked(strings.NewReplacer("|", "\\|", "<", "\\<", "*", "\\*", "\n", " ").Replace(text))
}

// commands lists the commands below cmd, in the order of the tree.
func commands(cmd *cobra.Command) (all []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			all = append(append(all, c), commands(c)...)
		}
	}
	return all
}

func commandsDoc() string {
	cobra.EnableCommandSorting = false // as the tree has them
	defer func() { cobra.EnableCommandSorting = true }()
	root := root(cli.New("dev", strings.NewReader(""), io.Discard, io.Discard))
	var b strings.Builder
	b.WriteString(commandsIntro)
	for _, c := range commands(root) {
		depth := strings.Count(c.CommandPath(), " ")
		fmt.Fprintf(&b, "%s- [%s](#%s): %s\n", strings.Repeat("  ", depth-1), strings.TrimPrefix(c.CommandPath(), "holdfast "),
			strings.ReplaceAll(c.CommandPath(), " ", "-"), strings.ReplaceAll(c.Short, "*", "\\*"))
	}
	for _, c := range commands(root) {
		describe(&b, c)
	}
	return b.String()
}

// describe writes the section of one command.
func describe(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n#%s %s\n\n", strings.Repeat("#", strings.Count(c.CommandPath(), " ")), c.CommandPath())
	if c.Runnable() && !c.HasSubCommands() {
		fmt.Fprintf(b, "    %s\n\n", strings.TrimSuffix(c.UseLine(), " [flags]"))
	}
	long := strings.Replace(c.Long, item.QueryHelp(), "QUERY is explained in docs/query.md.", 1)
	long = strings.Replace(long, strings.TrimSpace(cli.ExitHelp()), "docs/exit-codes.md lists the exit codes.", 1)
	b.WriteString(linked(long) + "\n")
	if c.Example != "" {
		b.WriteString("\nExamples:\n\n")
		for line := range strings.Lines(c.Example) {
			b.WriteString("    " + strings.TrimPrefix(line, "  "))
		}
		b.WriteString("\n")
	}
	var rows []string
	var common []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case c.CommandPath() != "holdfast up" && f.Name == "dir", f.Name == "json":
			common = append(common, "`--"+f.Name+"`")
		default:
			rows = append(rows, flagRow(f))
		}
	})
	if len(rows) > 0 {
		b.WriteString("\n| flag | default | meaning |\n| --- | --- | --- |\n" + strings.Join(rows, ""))
	}
	if len(common) > 0 {
		fmt.Fprintf(b, "\nTakes %s, too ([basics](#holdfast-basics)).\n", strings.Join(common, " and "))
	}
}

func flagRow(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	name := strings.TrimSpace("--" + f.Name + " " + value)
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	def := f.DefValue
	if slices.Contains([]string{"false", "[]", "0", "0s"}, def) {
		def = ""
	}
	if def != "" {
		def = "`" + def + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, def, cell(usage))
}

func TestGeneratedCommands(t *testing.T) {
	generatedtest.File(t, "docs/commands.md", commandsDoc())
}

// TestHelp: each help file belongs to a command, fits a terminal, and has the full names of
// settings.
func TestHelp(t *testing.T) {
	root := root(cli.New("dev", strings.NewReader(""), io.Discard, io.Discard))
	known := map[string]string{}
	for _, c := range commands(root) {
		known[strings.TrimPrefix(strings.ReplaceAll(c.CommandPath(), " ", "-"), "holdfast-")+".txt"] = c.Long
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the short help is %q; it must be a sentence without its full stop", c.CommandPath(), c.Short)
		}
	}
	files, err := filepath.Glob("*/help/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no help texts: %v", err)
	}
	setting := regexp.MustCompile(`(^|[^A-Z])_[A-Z]`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if long := known[filepath.Base(file)]; long == "" || !strings.HasPrefix(long, strings.TrimSpace(string(text))) {
			t.Errorf("%s is not what its command prints", file)
		}
		for line := range strings.Lines(string(text)) {
			if len([]rune(line)) > 81 && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s has a line of more than 80 columns: %s", file, line)
			}
			if setting.MatchString(line) {
				t.Errorf("%s names a setting by a part of its name: %s", file, line)
			}
		}
	}
}

const exitIntro = `# Exit codes

<!-- Made by "go generate ./cmd/holdfast" from cmd/holdfast/exit/code.go; do not edit. -->

Their meanings never change.

| code | meaning |
| --- | --- |
`

const exitOutro = `
- Code 6: the producer must correct the deposit, for instance a manifest with faults, a wrong digest
  or an empty file. Codes 1 and 5: a system fault; try again.
- With several payloads or ids the command ends with their common code. If they differ, the code is
  7 if anything is held, and 3 otherwise.
- Some commands have further rules: see [commands.md](commands.md).
`

func TestGeneratedExitCodes(t *testing.T) {
	var b strings.Builder
	b.WriteString(exitIntro)
	listed := map[string]bool{}
	for _, m := range exit.Meanings() {
		listed[strconv.Itoa(int(m.Code))] = true
		fmt.Fprintf(&b, "| %d | %s |\n", m.Code, strings.ReplaceAll(m.Text, "--wait", "`--wait`"))
	}
	b.WriteString(exitOutro)
	generatedtest.File(t, "docs/exit-codes.md", b.String())

	source, err := os.ReadFile("exit/code.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\s\w+\s+Code = (\d+)`).FindAllStringSubmatch(string(source), -1)
	for _, m := range declared {
		if !listed[m[1]] {
			t.Errorf("exit code %s has no meaning in exitMeanings", m[1])
		}
	}
	if len(declared) != len(listed) {
		t.Errorf("exit.go declares %d exit codes, exitMeanings has %d", len(declared), len(listed))
	}
}
