package metadata

import (
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxDeleteSize is the largest mrt-delete.txt that ReadDelete takes, in bytes: room for the names
// of the largest objects.
const MaxDeleteSize = 32 << 20

// Deletion is one line of mrt-delete.txt.
type Deletion struct {
	// Name is the file to delete, relative to the producer's files. A leading "producer/", which
	// some producers put before it, is dropped.
	Name    string
	Literal string // the line as it stands
	Line    int    // counted from 1
}

// ReadDelete reads mrt-delete.txt, a producer's list of the files that an update is to remove, one
// name a line. Names are kept byte for byte; blank lines are skipped and a name given twice is
// returned once. There are no comments and no escapes, since "#" and "%" are parts of names.
//
// A name that leaves its folder (absolute, or with "." or ".." or empty components), is not UTF-8
// or holds a NUL is a *SyntaxError; up to 100 are joined and no deletions returned. ErrTooLarge is
// returned above MaxDeleteSize.
func ReadDelete(r io.Reader) ([]Deletion, error) {
	text, err := readAll(r, MaxDeleteSize)
	if err != nil {
		return nil, err
	}
	var deletions []Deletion
	var faults []error
	seen := make(map[string]bool)
	for i, line := range splitLines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name := strings.TrimPrefix(line, "producer/")
		if reason := badName(name); reason != "" {
			if len(faults) < maxFaults {
				faults = append(faults, &SyntaxError{Line: i + 1, Reason: reason})
			}
			continue
		}
		if !seen[name] {
			seen[name] = true
			deletions = append(deletions, Deletion{Name: name, Literal: line, Line: i + 1})
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return deletions, nil
}

// badName says why a name is no name of a file in an object, or "".
func badName(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.ContainsRune(name, 0):
		return "the name holds a NUL"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return "the name is absolute, or one of its components is empty, \".\" or \"..\""
		}
	}
	return ""
}
