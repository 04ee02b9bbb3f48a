package metadata

import (
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxDeleteSize is the largest mrt-delete.txt that ReadDelete accepts, in bytes. The names of the
// largest objects fit.
const MaxDeleteSize = 32 << 20

// Deletion is one line of mrt-delete.txt.
type Deletion struct {
	// Name is the file to delete, relative to the producer's files, without the leading "producer/"
	// that some producers write.
	Name    string
	Literal string // the line in the file
	Line    int    // counted from 1
}

// ReadDelete reads mrt-delete.txt, a producer's list of the files that an update removes, one name
// per line. Names are kept byte for byte. Blank lines and repeated names are skipped. There are no
// comments and escapes, because "#" and "%" may be parts of names.
//
// A name is a *SyntaxError if it is absolute, has ".", ".." or empty components, is not UTF-8, or
// contains a NUL. Up to 100 errors are joined, and no deletions are returned. A text above
// MaxDeleteSize is ErrTooLarge.
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

// badName returns why a name is invalid, or "".
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
