package intake

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/registry"
)

// Severity says whether a Fault makes a payload invalid.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Report is the result of checking a payload.
type Report struct {
	// Type is the type as which it was checked: a payload type but never auto, or ocfl-object or
	// ocfl-root.
	Type string `json:"type" doc:"The type of payload that it was checked as"`
	// Valid says that there are no errors. Accepted says that it can be submitted: bad rows of a
	// batch fail alone, and missing files of a bag are fetched.
	Valid    bool `json:"valid" doc:"Whether there are no errors"`
	Accepted bool `json:"accepted" doc:"Whether it would be accepted. In a batch, bad rows fail alone"`
	// Version is the version of the specification that a bag or OCFL object declares.
	Version string `json:"version,omitempty" doc:"The version of the specification that a bag or OCFL object declares"`
	// Objects is the number of objects of an OCFL storage root.
	Objects int64 `json:"objects,omitempty" doc:"The number of objects in an OCFL storage root"`
	// Files is the number of the payload's files, Bytes the sum of their known sizes. Rows is the
	// number of rows of a manifest, RowsRefused the number of those that would fail.
	Files       int64 `json:"files" doc:"The number of files in the payload, without those still to be fetched"`
	Bytes       int64 `json:"bytes" doc:"The total size of the files whose size is known"`
	Rows        int64 `json:"rows,omitempty" doc:"The number of rows in a manifest"`
	RowsRefused int64 `json:"rows_refused,omitempty" doc:"The number of a manifest's rows that would fail"`
	// Errors and Warnings count all faults. Unreachable counts the errors that are not content
	// faults, because a source could not be asked.
	Errors      int64 `json:"errors" doc:"The number of errors, listed or not"`
	Warnings    int64 `json:"warnings" doc:"The number of warnings, listed or not"`
	Unreachable int64 `json:"unreachable,omitempty" doc:"The number of errors that mean only that a source could not be reached"`
	// Faults lists the first 1,000 faults, errors before warnings.
	Faults []Fault `json:"faults" doc:"All faults, or the first of very many, errors before warnings"`

	first *faults.List[Fault]
	whole bool // an error refuses the whole manifest, not only a row
	batch bool
	named bool // see NamesObject

	limited bool // the check ended at a limit on unpacking
}

// NamesObject reports whether the payload may identify its object: a metadata file contains an ARK
// or a local id, or such a file is still to be fetched. It is true for a batch manifest, whose rows
// identify their objects.
func (v Report) NamesObject() bool { return v.named }

// Fault is one fault of a payload.
type Fault struct {
	Severity Severity `json:"severity"`
	// Rule names the rule that was broken; its meaning never changes. Clause is its place in the
	// specification.
	Rule   string `json:"rule"`
	Clause string `json:"clause,omitempty"`
	// File is the name of a file in a container, bag or object. Line, Column and Field are those of
	// a manifest.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	// Source is the file and line that contradicts, such as manifest-md5.txt:3.
	Source string `json:"source,omitempty"`
	// Message is a sentence, used where Expected and Found do not suffice.
	Message  string `json:"message,omitempty"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Fix      string `json:"fix,omitempty"`
	// Unreachable says that it is not a content fault: a source could not be asked.
	Unreachable bool `json:"unreachable,omitempty"`
}

// Location returns the place of the fault for people: "line 7, column 3 (nfo:hashValue)", or the
// name of a file, or "" for the whole payload.
func (f Fault) Location() string {
	switch {
	case f.Line > 0:
		at := fmt.Sprintf("line %d", f.Line)
		if f.Column > 0 {
			at += fmt.Sprintf(", column %d", f.Column)
		}
		if f.Field != "" {
			at += " (" + f.Field + ")"
		}
		return at
	case f.Source != "" && f.File != "":
		return f.File + " (" + f.Source + ")"
	default:
		return cmp.Or(f.File, f.Source)
	}
}

// Error returns the fault in one line with its place.
func (f Fault) Error() string {
	if at := f.Location(); at != "" {
		return at + ": " + f.Text()
	}
	return f.Text()
}

// Text returns the fault in one line without its place.
func (f Fault) Text() string {
	var b strings.Builder
	b.WriteString(f.Rule)
	for _, part := range []struct{ name, text string }{{"", f.Message}, {"expected: ", f.Expected}, {"found: ", f.Found}, {"fix: ", f.Fix}} {
		if part.text != "" {
			b.WriteString("; " + part.name + part.text)
		}
	}
	return b.String()
}

func newReport(what string) *Report {
	return &Report{Type: what, first: faults.New(faults.Most, func(a, b Fault) int { return cmp.Compare(rank(a), rank(b)) })}
}

// rank puts errors before warnings.
func rank(f Fault) int {
	if f.Severity == Warning {
		return 1
	}
	return 0
}

// add counts a fault, and keeps it if it is among the first.
func (v *Report) add(f Fault) {
	switch {
	case f.Severity == Warning:
		v.Warnings++
	case f.Unreachable:
		v.Unreachable++
		fallthrough
	default:
		v.Errors++
	}
	for _, text := range []*string{&f.File, &f.Field, &f.Source, &f.Message, &f.Expected, &f.Found} {
		*text = faults.Cut(*text)
	}
	v.first.Add(f)
}

// countMore counts faults that are not listed.
func (v *Report) countMore(errs, warnings int64) {
	v.Errors += errs
	v.Warnings += warnings
}

// addAll adds the listed faults of another report and counts all.
func (v *Report) addAll(other Report) {
	errs, warnings := v.Errors, v.Warnings
	v.addFaults(other.Faults)
	v.Errors, v.Warnings = errs+other.Errors, warnings+other.Warnings // other may list only the first of its faults
}

func (v *Report) addFaults(all []Fault) {
	for _, f := range all {
		v.add(f)
	}
}

// settle takes the verdict from the faults.
func (v *Report) settle() Report {
	v.Valid = v.Errors == 0
	v.Accepted = v.Valid || v.batch && !v.whole
	v.Faults = append([]Fault{}, v.first.Kept()...) // never null in JSON
	return *v
}

// Detached returns a copy for keeping. It shares no memory with other data. size is its memory in
// bytes, estimated.
func (v Report) Detached() (own Report, size int) {
	v.first = nil // Faults has the same
	size = 500
	v.Faults = slices.Clone(v.Faults)
	for i := range v.Faults {
		f := &v.Faults[i]
		size += 250 + len(f.Rule) + len(f.Clause) + len(f.Fix)
		for _, text := range []*string{&f.File, &f.Field, &f.Source, &f.Message, &f.Expected, &f.Found} {
			*text = strings.Clone(*text) // it may be part of a much longer string
			size += len(*text)
		}
	}
	return v, size
}

// Refusal returns a *Refusal if the payload cannot be accepted, else nil.
func (v Report) Refusal() error {
	if v.Accepted {
		return nil
	}
	return &Refusal{Report: v}
}

// RefusalFor returns the refusal for a collection with this profile, or nil. With StopOnBadRow, one
// bad row refuses the whole batch. A missing file at a source does not count as a bad row: it shows
// when the file is fetched.
func (v Report) RefusalFor(p registry.Profile) error {
	if v.Valid || !v.Accepted || !p.StopOnBadRow {
		return v.Refusal()
	}
	return &Refusal{Report: v, Whole: true}
}

// For returns the report for a collection with this profile, which may refuse what others accept.
func (v Report) For(p registry.Profile) Report {
	v.Accepted = v.Accepted && v.RefusalFor(p) == nil
	return v
}

// Refusal says why a payload is refused. It is a content fault.
type Refusal struct {
	Report Report
	Whole  bool // only because the collection accepts a batch only as a whole
}

// AsRefusal returns the *Refusal in an error, if there is one.
func AsRefusal(err error) (refusal *Refusal, ok bool) {
	ok = errors.As(err, &refusal)
	return refusal, ok
}

// ContentFault returns true: the deposit is at fault.
func (e *Refusal) ContentFault() bool { return true }

// ErrorCode returns the first broken rule. Failures are grouped by it.
func (e *Refusal) ErrorCode() string {
	for _, f := range e.Report.Faults {
		if f.Severity == Error {
			return f.Rule
		}
	}
	return ""
}

// Error returns the first faults and how many follow.
func (e *Refusal) Error() string {
	const shown = 3
	var b strings.Builder
	v := e.Report
	errors := "errors"
	if v.Errors == 1 {
		errors = "error"
	}
	fmt.Fprintf(&b, "%s refused, %d %s", v.Type, v.Errors, errors)
	if e.Whole {
		fmt.Fprintf(&b, " in lines %s, and the collection accepts a batch only as a whole", e.lines())
	}
	errs := v.Of(Error)
	for _, f := range errs[:min(len(errs), shown)] {
		b.WriteString("; " + f.Error())
	}
	if more := v.Errors - shown; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// Of returns the listed faults of a severity.
func (v Report) Of(s Severity) []Fault {
	return slices.DeleteFunc(slices.Clone(v.Faults), func(f Fault) bool { return f.Severity != s })
}

// lines lists the first lines with errors and how many follow.
func (e *Refusal) lines() string {
	const shown = 20
	var lines []string
	last := 0
	for _, f := range e.Report.Of(Error) {
		if f.Line != last && len(lines) < shown {
			last = f.Line
			lines = append(lines, strconv.Itoa(f.Line))
		}
	}
	text := strings.Join(lines, ", ")
	if more := e.Report.RowsRefused - int64(len(lines)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
