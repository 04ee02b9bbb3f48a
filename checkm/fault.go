package checkm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/faults"
)

// Severity is the severity of a Fault.
type Severity string

// The severities.
const (
	// Warning marks content that is accepted but was probably not intended.
	Warning Severity = "warning"
	// Error makes a row or the manifest unusable.
	Error Severity = "error"
)

// Fault is one fault of a manifest, worded for the depositor who wrote it. It implements error.
type Fault struct {
	// Line is the line of the fault, from 1. LF, CRLF and a lone CR each end a line.
	Line int `json:"line"`
	// Column is the column of the row, from 1, or 0 for the whole line.
	Column int `json:"column,omitempty"`
	// Field is the name of that column, such as nfo:hashValue.
	Field string `json:"field,omitempty"`
	// Offset is the byte offset in the manifest, from 0, of a byte that is not allowed.
	Offset int64 `json:"offset,omitempty"`
	// Rule names the rule that was broken. Its meaning never changes.
	Rule Rule `json:"rule"`
	// Severity is Warning or Error.
	Severity Severity `json:"severity"`
	// Manifest is set if an Error makes the whole manifest unsound, not only its row.
	Manifest bool `json:"manifest,omitempty"`
	// Expected, Found and Fix say what should be there, what is there (shortened, without the
	// secrets of a URL), and what to do.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Fix      string `json:"fix,omitempty"`
}

// Error returns the fault as one line of text.
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d", f.Line)
	if f.Column > 0 {
		fmt.Fprintf(&b, ", column %d", f.Column)
	}
	if f.Field != "" {
		fmt.Fprintf(&b, " (%s)", f.Field)
	}
	fmt.Fprintf(&b, ": %s", f.Rule)
	for _, part := range []struct{ name, text string }{{"expected", f.Expected}, {"found", f.Found}, {"fix", f.Fix}} {
		if part.text != "" {
			fmt.Fprintf(&b, "; %s: %s", part.name, part.text)
		}
	}
	return b.String()
}

// Refused reports whether a row with these faults must not be used.
func Refused(faults []Fault) bool {
	for i := range faults {
		if faults[i].Severity == Error {
			return true
		}
	}
	return false
}

// UnsoundError says that the whole manifest must not be used, even if its rows looked right.
type UnsoundError struct {
	// Faults lists the first hundred faults of the manifest, in order of lines.
	Faults []Fault
	// Total counts all of them.
	Total int64
}

// Error returns the first fault and how many follow.
func (e *UnsoundError) Error() string {
	if len(e.Faults) == 0 {
		return "unsound manifest"
	}
	text := "unsound manifest: " + e.Faults[0].Error()
	if e.Total > 1 {
		text += fmt.Sprintf(" (and %d more)", e.Total-1)
	}
	return text
}

// Unwrap returns the faults, for errors.As.
func (e *UnsoundError) Unwrap() []error {
	errs := make([]error, len(e.Faults))
	for i := range e.Faults {
		errs[i] = e.Faults[i]
	}
	return errs
}

// faultList counts all faults and keeps the first of them. Faults of the manifest come before those
// of rows, and errors before warnings, so that many minor faults never hide a major one.
type faultList struct {
	first                  *faults.List[Fault]
	nWhole, nErr, nWarning int64
}

func newFaultList(most int) faultList {
	return faultList{first: faults.New(most, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Line, b.Line))
	})}
}

func (f *Fault) rank() int {
	switch {
	case f.Severity == Error && f.Manifest:
		return 0
	case f.Severity == Error:
		return 1
	}
	return 2
}

func (l *faultList) add(f Fault) {
	*[]*int64{&l.nWhole, &l.nErr, &l.nWarning}[f.rank()]++
	l.first.Add(f)
}

// sorted returns the kept faults in order of lines.
func (l *faultList) sorted() []Fault {
	all := append([]Fault{}, l.first.Kept()...) // never null in JSON
	slices.SortStableFunc(all, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// shown shortens a value for display and replaces control characters and invalid UTF-8.
func shown(s string) string {
	const limit = 120
	short := s
	if len(short) > limit {
		short = short[:limit]
		for len(short) > 0 && !utf8.RuneStart(s[len(short)]) {
			short = short[:len(short)-1]
		}
		short += "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return utf8.RuneError
		}
		return r
	}, short)
}
