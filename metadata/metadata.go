// Package metadata reads and writes the small descriptive files of an object: ANVL records
// including the ERC, Dublin Core and DataCite XML, and the system files named mrt-*.
//
// It makes three promises:
//   - A writer writes the whole file, or on an error nothing. The same value always gives the same
//     bytes.
//   - A reader returns what a writer wrote: values are escaped, never cut or changed, except for
//     white space in XML.
//   - A reader limits its input, so a file of any size needs little memory.
//
// Sources: draft-kunze-anvl (ANVL), draft-kunze-erc (ERC and its codes for missing values), DCMI
// Metadata Element Set 1.1, DataCite kernels 2 to 4, and Merritt's system files (docs/design.md,
// "Where we differ from what might be expected").
package metadata

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The metadata files of a deposit.
const (
	ERCFile        = "mrt-erc.txt"
	DataCiteFile   = "mrt-datacite.xml"
	DublinCoreFile = "mrt-dc.xml"
	DeleteFile     = "mrt-delete.txt" // of an update
)

// MaxSize is the largest metadata file that readers accept, in bytes, except for ReadDelete.
const MaxSize = 4 << 20

const byteOrderMark = "\ufeff"

// Errors of readers that concern the whole file.
var (
	// ErrTooLarge says that a file is larger than MaxSize, or MaxDeleteSize for ReadDelete.
	ErrTooLarge = errors.New("metadata file too large")
	// ErrNoMetadata says that a well-formed file has no metadata of the expected kind.
	ErrNoMetadata = errors.New("no metadata of that kind in the file")
)

// SyntaxError is a fault in a line of a file. A reader joins several; errors.As returns the first.
type SyntaxError struct {
	Line   int // from 1
	Reason string
}

// Error implements error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Malformed reports whether a reader's error is a fault of the file: a *SyntaxError, ErrNoMetadata
// or ErrTooLarge.
func Malformed(err error) bool {
	return errors.As(err, new(*SyntaxError)) || errors.Is(err, ErrNoMetadata) || errors.Is(err, ErrTooLarge)
}

// FieldError says which value a writer refused, and why. Nothing was written.
type FieldError struct {
	File   string // such as "mrt-mom.txt"; "ANVL" for WriteANVL
	Field  string
	Reason string
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s %s", e.File, e.Field, e.Reason) }

// Code is one of ERC's codes for a missing value.
type Code string

// Unassigned says that nobody has given a value. Writers use it for missing values.
const Unassigned Code = "(:unas)"

// ParseCode splits a value such as "(:unkn) unknown" into the code in lower case and the words
// after it. It returns false if the value does not begin with "(:letters)".
func ParseCode(value string) (code Code, words string, ok bool) {
	v := strings.TrimSpace(value)
	end := strings.IndexByte(v, ')')
	if !strings.HasPrefix(v, "(:") || end < 3 {
		return "", "", false
	}
	for _, c := range []byte(v[2:end]) {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return "", "", false
		}
	}
	return Code(strings.ToLower(v[:end+1])), strings.TrimSpace(v[end+1:]), true
}

// readAll reads at most limit bytes and drops a byte order mark.
func readAll(r io.Reader, limit int64) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return "", fmt.Errorf("read metadata: %w", err)
	}
	if int64(len(b)) > limit {
		return "", fmt.Errorf("read metadata: %w: more than %d bytes", ErrTooLarge, limit)
	}
	return strings.TrimPrefix(string(b), byteOrderMark), nil
}

// splitLines splits text at LF, CRLF and lone CR. The last line may be unfinished.
func splitLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
