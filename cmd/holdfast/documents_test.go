package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
)

// block is a fenced block of a document.
type block struct {
	file string
	line int    // of its fence
	lang string // what follows the fence: "", "console", "yaml profile" ...
	text string
}

func (b block) String() string {
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(b.file, "../../"), b.line)
}

// blocks returns all fenced blocks of the documents.
func blocks(t *testing.T) (out []block) {
	t.Helper()
	fence := regexp.MustCompile("^ *```(.*)$")
	for _, file := range documents(t) {
		open := false
		for i, line := range strings.Split(readFile(t, file), "\n") {
			switch m := fence.FindStringSubmatch(line); {
			case m == nil && open:
				out[len(out)-1].text += line + "\n"
			case m != nil && !open:
				out = append(out, block{file: file, line: i + 1, lang: m[1]})
				open = true
			case m != nil:
				open = false
			case strings.HasPrefix(line, "    "):
				out = append(out, block{file: file, line: i + 1, text: line + "\n"}) // a block without a fence
			}
		}
	}
	return out
}

var (
	continued   = regexp.MustCompile(`\\\n\s*`)
	command     = regexp.MustCompile(`(?:^|[|(;&]|\bsudo|\bexec)\s*(?:[A-Z_]+=\S+\s+)*(?:\S*/)?holdfast\s+(.*)`)
	substituted = regexp.MustCompile(`\$\([^()]*\)`)
)

// commands returns the arguments of each call of holdfast in a block of commands.
func (b block) commands() (out [][]string) {
	for line := range strings.Lines(continued.ReplaceAllString(b.text, " ")) {
		line = strings.TrimSpace(line)
		if b.lang == "console" && !strings.HasPrefix(line, "$ ") {
			continue // output
		}
		line = substituted.ReplaceAllString(strings.TrimPrefix(line, "$ "), "SUBSTITUTED")
		if m := command.FindStringSubmatch(line); m != nil {
			out = append(out, words(m[1]))
		}
	}
	return out
}

// words splits a command at spaces as a shell does, up to its end: a comment, a pipe, a
// redirection, or a part that may be left out.
func words(line string) (out []string) {
	var word strings.Builder
	begun := false
	var quote rune
	end := func() {
		if begun {
			out = append(out, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == ' ':
			end()
		case strings.ContainsRune("|><;&)", c), (c == '#' || c == '[') && !begun:
			if c == '>' && word.String() == "2" {
				begun = false // the number of what is redirected
			}
			end()
			return out
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	end()
	return out
}

// TestDocuments_Commands checks that all commands of holdfast in blocks of the documents exist, with
// their flags and their number of arguments.
func TestDocuments_Commands(t *testing.T) {
	clitest.NoEnvironment(t)
	checked := 0
	for _, b := range blocks(t) {
		switch b.lang {
		case "", "sh", "console":
		default:
			continue
		}
		for _, args := range b.commands() {
			if len(args) == 0 || args[0] == "…" || args[0] == "..." {
				continue // a word of a picture
			}
			checked++
			if err := parse(t, args); err != nil {
				t.Errorf("%s: holdfast %s: %v", b, strings.Join(args, " "), err)
			}
		}
	}
	if checked < 70 {
		t.Errorf("found only %d commands", checked)
	}
	// In a sentence a command may stand without its arguments.
	named := regexp.MustCompile(` is missing$|^give one of |^flag needs an argument|^pflag: help requested$`)
	for file, span := range inline(t) {
		if strings.Contains(span, " ACT ") || file == "commands.md" {
			continue // any of several; generated, with an example of what is misspelt
		}
		if err := parse(t, words(strings.TrimPrefix(span, "holdfast "))); err != nil && !named.MatchString(err.Error()) {
			t.Errorf("%s: %s: %v", file, span, err)
		}
	}
	for _, wrong := range [][]string{{"sumbit", "x"}, {"submit", "--titel", "t", "x"}, {"batch", "show", "a", "b"}, {"item", "explode", "x"}} {
		if parse(t, wrong) == nil {
			t.Errorf("holdfast %s was accepted", strings.Join(wrong, " "))
		}
	}
}

// inline yields the commands that stand within the text of the documents, with their document.
func inline(t *testing.T) iter.Seq2[string, string] {
	t.Helper()
	fenced, span := regexp.MustCompile("(?ms)^ *```.*?^ *```"), regexp.MustCompile("`(holdfast [^`]+)`")
	return func(yield func(string, string) bool) {
		for _, file := range documents(t) {
			for _, m := range span.FindAllStringSubmatch(fenced.ReplaceAllString(readFile(t, file), ""), -1) {
				if !yield(filepath.Base(file), strings.Join(strings.Fields(m[1]), " ")) {
					return
				}
			}
		}
	}
}

// parse reads a command line as the program does, and runs nothing.
func parse(t *testing.T, args []string) error {
	t.Helper()
	top := root(cli.New("dev", strings.NewReader(""), io.Discard, io.Discard))
	top.SetContext(t.Context())
	found, rest, err := top.Find(args)
	if err != nil {
		return err
	}
	if found == top || !found.Runnable() {
		return fmt.Errorf("no such command")
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	given := found.Flags().Args()
	for _, a := range given {
		if a == "..." || a == "…" {
			return nil // more arguments
		}
	}
	if err := found.ValidateArgs(given); err != nil {
		return err
	}
	return subcommandMissing(found, given)
}

// subcommandMissing refuses an argument of a group, which is no command of it.
func subcommandMissing(c *cobra.Command, args []string) error {
	if c.HasSubCommands() && len(args) > 0 {
		return fmt.Errorf("%s has no command %s", c.CommandPath(), args[0])
	}
	return nil
}

// TestDocuments_Settings checks that each variable HOLDFAST_... in the documents is a setting, and
// that the blocks of settings (```env) are valid.
func TestDocuments_Settings(t *testing.T) {
	clitest.NoEnvironment(t)
	known := map[string]bool{"HOLDFAST_VERSION": true, "HOLDFAST_TEST_NSQD_ADDR": true} // of docker/compose.yaml and of tests
	all, _, err := config.InForce(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		known[s.Name] = true
	}
	ofStage := map[string]bool{}
	for _, s := range registry.AllStages() {
		ofStage["HOLDFAST_"+strings.ToUpper(string(s))+"_"] = true
	}
	name := regexp.MustCompile(`\bHOLDFAST_[A-Z0-9_]*[A-Z0-9]\b`)
	assigned := regexp.MustCompile(`(?m)^(HOLDFAST_\w+)=(.*)$`)
	for _, b := range blocks(t) {
		for _, n := range name.FindAllString(b.text, -1) {
			stage, rest, _ := strings.Cut(strings.TrimPrefix(n, "HOLDFAST_"), "_")
			ofOne := ofStage["HOLDFAST_"+stage+"_"] && known["HOLDFAST_"+rest]
			if !known[n] && !ofOne && !strings.HasPrefix(n, "HOLDFAST_TOKEN") {
				t.Errorf("%s: %s is no setting", b, n)
			}
		}
		if b.lang != "env" {
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "holdfast.env")
			clitest.WriteFile(t, file, b.text)
			t.Setenv("HOLDFAST_CONFIG_FILE", file)
			if len(assigned.FindAllString(b.text, -1)) == 0 {
				t.Error("no setting in it")
			}
			if c, err := config.Load(context.Background(), config.Default()); err != nil || len(c.Unknown) > 0 {
				t.Error(err, c.Unknown)
			}
		})
	}
}

// TestDocuments_Data checks that the blocks of JSON and YAML are such, that each profile in a
// block "yaml profile" is one that holdfast collection accepts, and that code in Go uses what our packages
// have.
func TestDocuments_Data(t *testing.T) {
	checked := 0
	for _, b := range blocks(t) {
		var v any
		var err error
		switch b.lang {
		case "json":
			err = json.Unmarshal([]byte(b.text), &v)
		case "yaml":
			err = yaml.Unmarshal([]byte(b.text), &v)
		case "yaml profile":
			_, err = profile.Parse([]byte(b.text))
		case "go":
			err = codeOfPrograms(t, b.text)
		default:
			continue
		}
		checked++
		if err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	if checked < 3 {
		t.Errorf("found only %d blocks", checked)
	}
}

// TestDocuments_Reasons checks that docs/waiting.md has a section for each reason why an item may
// wait, and for nothing else, and that each says what lets the item go on, by commands and pages that
// there are.
func TestDocuments_Reasons(t *testing.T) {
	clitest.NoEnvironment(t)
	_, declared, _ := strings.Cut(readFile(t, "../../registry/why.go"), "// What a statement says of why an item waits")
	declared, _, ok := strings.Cut(declared, "\n)\n")
	reasons := map[string]bool{}
	for _, m := range regexp.MustCompile(`Says = "([a-z-]+)"`).FindAllStringSubmatch(declared, -1) {
		reasons[m[1]] = true
	}
	if !ok || len(reasons) < 20 {
		t.Fatalf("found %d reasons in registry/why.go", len(reasons))
	}
	spanned := regexp.MustCompile("`([^`]+)`")
	pages := source(t)
	for _, section := range strings.Split(readFile(t, "../../docs/waiting.md"), "\n## ")[1:] {
		reason, text, _ := strings.Cut(section, "\n")
		if !reasons[reason] {
			t.Errorf("docs/waiting.md has a section %s, which is no reason or has one already", reason)
		}
		delete(reasons, reason)
		for _, part := range []string{"\nGoes on: ", "\nCommand: `holdfast ", "Page: `/"} {
			if !strings.Contains(text, part) {
				t.Errorf("the section %s of docs/waiting.md does not say %q", reason, strings.TrimSpace(part))
			}
		}
		for _, m := range spanned.FindAllStringSubmatch(text, -1) {
			if args, ok := strings.CutPrefix(m[1], "holdfast "); ok {
				if err := parse(t, words(args)); err != nil {
					t.Errorf("the section %s of docs/waiting.md: %s: %v", reason, m[1], err)
				}
			}
			if page, ok := strings.CutPrefix(m[1], "/"); ok && !strings.Contains(pages, `"/`+strings.TrimSuffix(page, "ID")) && !strings.Contains(pages, `"GET /`+strings.TrimSuffix(page, "ID")) {
				t.Errorf("the section %s of docs/waiting.md names the page /%s, which no source has", reason, page)
			}
		}
	}
	for reason := range reasons {
		t.Errorf("docs/waiting.md has no section %s: say what it means, what lets the item go on, the command and the page", reason)
	}
}

// TestDocuments_Messages checks that a text of the program has each message of
// docs/troubleshooting.md, and that each is there once.
func TestDocuments_Messages(t *testing.T) {
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(readFile(t, "../../docs/troubleshooting.md"), -1)
	if len(messages) < 50 {
		t.Fatalf("found %d messages", len(messages))
	}
	texts, seen := literals(source(t)), map[string]bool{}
	for _, m := range messages {
		if !strings.Contains(texts, m[1]) {
			t.Errorf("docs/troubleshooting.md explains %q, which no message has", m[1])
		}
		if seen[m[1]] || strings.Contains(m[1], "%") {
			t.Errorf("docs/troubleshooting.md explains %q, which is there twice or is not what people see", m[1])
		}
		seen[m[1]] = true
	}
	if strings.Contains(texts, "checks that a text of the program has each message") || !strings.Contains(literals(`a := "said" // kept`), "said\n") {
		t.Error("comments count as texts")
	}
}

// literals returns the strings in Go code, each on a line; comments are none.
func literals(code string) string {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(code)), []byte(code), nil, 0)
	var out strings.Builder
	for {
		switch _, tok, lit := s.Scan(); tok {
		case token.EOF:
			return out.String()
		case token.STRING:
			text, err := strconv.Unquote(lit)
			if err == nil {
				out.WriteString(text + "\n")
			}
		default:
		}
	}
}

// source returns all Go code but tests and test kits.
func source(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(filepath.Dir(path), "test") {
			all.WriteString(readFile(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
