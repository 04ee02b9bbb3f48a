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

// Severity tells what must be repaired from what should be.
type Severity string

// The severities.
const (
	// Warning marks what is accepted but is likely not what was meant.
	Warning Severity = "warning"
	// Error marks what makes a row, or the manifest, unusable.
	Error Severity = "error"
)

// Fault is one thing wrong with a manifest, in words for the depositor who wrote it. It
// is also an error value.
type Fault struct {
	// Line is the line it stands on, from 1. LF, CRLF and a lone CR each end a line.
	Line int `json:"line"`
	// Column is the column of the row, from 1, or 0 when the whole line is meant.
	Column int `json:"column,omitempty"`
	// Field is the name of that column, as nfo:hashValue.
	Field string `json:"field,omitempty"`
	// Offset is the byte offset in the manifest, from 0, of a byte that may not be there.
	Offset int64 `json:"offset,omitempty"`
	// Rule names what was broken; it never changes its meaning.
	Rule Rule `json:"rule"`
	// Severity is Warning or Error.
	Severity Severity `json:"severity"`
	// Manifest is set when an Error condemns the whole manifest, not only its row.
	Manifest bool `json:"manifest,omitempty"`
	// Expected, Found and Fix say what should stand there, what does (shortened, without
	// the secrets of a URL), and what to do.
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

// UnsoundError says that a manifest as a whole must not be trusted, whatever its rows
// looked like.
type UnsoundError struct {
	// Faults are the faults that condemn it, in order of lines; the first hundred.
	Faults []Fault
	// Total counts all of them.
	Total int64
}

// Error names the first fault and how many follow.
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

// faultList counts all faults and keeps the first of them: those of the manifest before
// those of rows, errors before warnings, so that a flood of the lesser never hides the
// greater.
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

// shown makes a value fit to be shown: without bytes that a terminal, a page or a
// database would choke on, and not longer than a line.
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
