// Package metadata reads and writes the small descriptive files that travel with an object: ANVL
// records, the ERC among them, Dublin Core and DataCite XML, and the system files named mrt-*.
//
// It makes three promises. A writer writes the whole file or, on any error, nothing, and the same
// value always gives the same bytes (no clock, no map order). A reader returns what a writer wrote:
// values are escaped, never cut or changed, except for white space in XML, which is layout. And a
// reader limits its input, so a metadata file of any size costs little memory.
//
// Sources: draft-kunze-anvl (ANVL), draft-kunze-erc (ERC, its codes for missing values), DCMI
// Metadata Element Set 1.1, DataCite kernels 2 to 4, and Merritt's system files (docs/design.md,
// "Where we differ from what might be expected").
package metadata

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The files, beside the content of a deposit, that describe the object it becomes.
const (
	ERCFile        = "mrt-erc.txt"
	DataCiteFile   = "mrt-datacite.xml"
	DublinCoreFile = "mrt-dc.xml"
	DeleteFile     = "mrt-delete.txt" // of an update
)

// MaxSize is the largest metadata file that a reader of this package takes, in bytes.
const MaxSize = 4 << 20

const byteOrderMark = "\ufeff"

// The errors of reading that have no place in the file.
var (
	// ErrTooLarge is returned when a file is larger than the reader takes: MaxSize, for ReadDelete
	// MaxDeleteSize.
	ErrTooLarge = errors.New("metadata file too large")
	// ErrNoMetadata is returned when a file is sound but not of the kind that it was read as.
	ErrNoMetadata = errors.New("no metadata of that kind in the file")
)

// SyntaxError is a fault at a line of a file. A reader that finds several returns them joined;
// errors.As gives the first.
type SyntaxError struct {
	Line   int // counted from 1
	Reason string
}

// Error implements error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Malformed says whether an error of a reader is of the file, not of reading it: a *SyntaxError,
// ErrNoMetadata or ErrTooLarge.
func Malformed(err error) bool {
	return errors.As(err, new(*SyntaxError)) || errors.Is(err, ErrNoMetadata) || errors.Is(err, ErrTooLarge)
}

// FieldError says which value a writer refused, and why. Nothing was written then.
type FieldError struct {
	File   string // "mrt-mom.txt"; "ANVL" for a record of no known file
	Field  string
	Reason string
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s %s", e.File, e.Field, e.Reason) }

// Code is one of ERC's codes that stand for a missing value.
type Code string

// The codes of ERC.
const (
	Unaccessible Code = "(:unac)" // temporarily inaccessible
	Unallowed    Code = "(:unal)" // suppressed on purpose
	Inapplicable Code = "(:unap)" // makes no sense here
	Unassigned   Code = "(:unas)" // nobody has given one; the default of every writer here
	Unavailable  Code = "(:unav)" // cannot be had, perhaps unknown
	Unknown      Code = "(:unkn)" // known to be unknown, such as an anonymous author
	None         Code = "(:none)" // there never was one and never will be
	Null         Code = "(:null)" // explicitly empty
	ToBeAssigned Code = "(:tba)"  // comes later
	EtAl         Code = "(:etal)" // too many to name
	At           Code = "(:at)"   // the value stands at the identifier that follows
)

// ParseCode takes apart a value such as "(:unkn) unknown": the code, in lower case, and the words
// after it. It reports false when the value does not begin with "(:letters)". Codes that are not
// listed above are returned as they are.
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

// splitLines cuts text at LF, CRLF and lone CR; an unfinished last line counts.
func splitLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
