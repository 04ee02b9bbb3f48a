// Package generatedtest keeps checked-in files equal to the text that code generates.
//
// A package that owns a fact has a test that generates text from it and passes it to [File] or
// [Part], and a line that runs this test with -update:
//
//	//go:generate go test . -run ^TestGenerated -update
//
// `go generate ./...` thus writes all such files, and the tests fail while one of them is out of
// date.
package generatedtest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write generated files instead of checking them")

// File checks that a file equals the generated text; with -update it writes the file. The path is
// relative to the top of the repository.
func File(t testing.TB, path, want string) {
	t.Helper()
	compareOrWrite(t, filepath.Join(top(t), filepath.FromSlash(path)), want)
}

// Part is [File] for a part of a file: the lines between one that contains "generated: NAME" and
// the next that contains "end of NAME". The pattern is that of [filepath.Glob], relative to the top
// of the repository, so that a part may move to another matching file. It fails if no file has such
// a part.
func Part(t testing.TB, pattern, name, want string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top(t), filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch whole, ok, err := replacePart(string(text), name, want); {
		case err != nil:
			t.Errorf("%s: %v", file, err)
			found = true
		case ok:
			compareOrWrite(t, file, whole)
			found = true
		}
	}
	if !found {
		t.Errorf("none of %s has a part that begins with a line \"generated: %s\"", pattern, name)
	}
}

// replacePart returns text with the named part replaced by want. ok is false if there is no such
// part.
func replacePart(text, name, want string) (whole string, ok bool, err error) {
	begin, end := line("generated: ", name), line("end of ", name)
	var b strings.Builder
	within := false
	for line := range strings.Lines(text) {
		switch {
		case !within && begin.MatchString(line):
			b.WriteString(line + want)
			within, ok = true, true
		case within && end.MatchString(line):
			b.WriteString(line)
			within = false
		case !within:
			b.WriteString(line)
		}
	}
	if within {
		return "", true, fmt.Errorf("no line \"end of %s\" ends the part", name)
	}
	return b.String(), ok, nil
}

// line returns an expression for a line with these words and this whole name.
func line(words, name string) *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(words+name) + `(\W|$)`)
}

// compareOrWrite compares a file with the text, or with -update writes it and keeps its mode.
func compareOrWrite(t testing.TB, file, want string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil && (!*update || !errors.Is(err, fs.ErrNotExist)) {
		t.Errorf("%v; go generate ./... writes it", err)
		return
	}
	if *update && (err != nil || !bytes.Equal(got, []byte(want))) {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Error(err)
		}
		return
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s is out of date; go generate ./... writes it (-has +want):\n%s", file, diff)
	}
}

// top returns the folder of go.mod.
func top(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		up := filepath.Dir(folder)
		if up == folder {
			t.Fatal("no folder above has a go.mod")
		}
		folder = up
	}
}

// Wrap breaks the lines of a Markdown text at 100 columns. It keeps tables and code, and indents the
// continuation of a list's item.
func Wrap(text string) string {
	const most = 100
	var b strings.Builder
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(line) <= most+1 || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") {
			b.WriteString(line)
			continue
		}
		indent := ""
		if strings.HasPrefix(line, "- ") {
			indent = "  "
		}
		column := 0
		for i, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case column+1+n > most:
				b.WriteString("\n" + indent)
				column = len(indent)
			default:
				b.WriteString(" ")
				column++
			}
			b.WriteString(word)
			column += n
		}
		b.WriteString("\n")
	}
	return b.String()
}
