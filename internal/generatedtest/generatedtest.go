// Package generatedtest keeps checked-in files equal to what the code makes of them.
//
// A package that owns a fact has a test that makes text of it and hands it to [File] or [Part], and
// a line that runs this test with -update:
//
//	//go:generate go test . -run ^TestGenerated -update
//
// So `go generate ./...` writes all such files, and the tests themselves fail while one of them is
// out of date.
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

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write generated files instead of checking them")

// File checks that a file is what the code makes of it, and with -update writes it. The path begins
// at the top of the repository.
func File(t testing.TB, path, want string) {
	t.Helper()
	keep(t, filepath.Join(top(t), filepath.FromSlash(path)), want)
}

// Part is [File] for a part of a file: the lines between one that holds "generated: NAME" and the
// next that holds "end of NAME". The pattern is one of [filepath.Glob], from the top of the
// repository: a part may move to another file that matches. It fails when no file has such a part.
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
		switch whole, ok, err := replaced(string(text), name, want); {
		case err != nil:
			t.Errorf("%s: %v", file, err)
			found = true
		case ok:
			keep(t, file, whole)
			found = true
		}
	}
	if !found {
		t.Errorf("none of %s has a part that begins with a line \"generated: %s\"", pattern, name)
	}
}

// replaced returns text with the part of that name changed to want; ok is false when it has none.
func replaced(text, name, want string) (whole string, ok bool, err error) {
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

// line matches a line that holds these words and this name as a whole.
func line(words, name string) *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(words+name) + `(\W|$)`)
}

// keep compares a file with what it should be, or writes it and leaves its mode.
func keep(t testing.TB, file, want string) {
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

// top is the folder of go.mod.
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
