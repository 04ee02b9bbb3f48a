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

// Report is what was found in a payload.
type Report struct {
	// Type is what it was judged as: a payload type, never auto, ocfl-object or ocfl-root.
	Type string `json:"type" doc:"What it was judged as"`
	// Valid says that nothing is wrong with it. Accepted says that it is taken although: bad rows
	// of a batch fail alone, and files that a bag leaves out are fetched.
	Valid    bool `json:"valid" doc:"Nothing is wrong with it"`
	Accepted bool `json:"accepted" doc:"It would be taken: of a batch, bad rows fail alone"`
	// Version is that of the specification which the payload says it follows, of a bag or an OCFL
	// object.
	Version string `json:"version,omitempty" doc:"Of the specification that a bag or OCFL object says it follows"`
	// Objects counts those of an OCFL storage root.
	Objects int64 `json:"objects,omitempty" doc:"Of an OCFL storage root"`
	// Files counts the payload's files, and Bytes adds them up as far as their sizes are known.
	// Rows counts those of a manifest, and RowsRefused those of them that would fail.
	Files       int64 `json:"files" doc:"Of the payload, without those still to be fetched"`
	Bytes       int64 `json:"bytes" doc:"Of the files whose size is known"`
	Rows        int64 `json:"rows,omitempty" doc:"Of a manifest"`
	RowsRefused int64 `json:"rows_refused,omitempty" doc:"Of a manifest, those that would fail"`
	// Errors and Warnings count all faults. Unreachable counts those of the errors that are
	// nobody's content: what could not be asked just now.
	Errors      int64 `json:"errors" doc:"How many errors there are, listed or not"`
	Warnings    int64 `json:"warnings" doc:"How many warnings there are, listed or not"`
	Unreachable int64 `json:"unreachable,omitempty" doc:"Errors that say only that something could not be asked"`
	// Faults are the first of them, errors before warnings.
	Faults []Fault `json:"faults" doc:"All faults, or the first of very many, errors before warnings"`

	most  int
	first *faults.List[Fault]
	whole bool // an error condemns all of it, not only a row
	batch bool
	named bool // see NamesObject

	limited bool // a limit on what is unpacked ended the judging
}

// NamesObject says whether the payload may say which object it is of: a file that describes it
// brings an ARK or a local id, or would lie in it and was not sent yet. Of a batch manifest each
// row speaks for itself, so that this is true.
func (v Report) NamesObject() bool { return v.named }

// Fault is one thing that is wrong with a payload.
type Fault struct {
	Severity Severity `json:"severity"`
	// Rule names what was broken; it never changes its meaning. Clause is where the specification
	// says so.
	Rule   string `json:"rule"`
	Clause string `json:"clause,omitempty"`
	// File is the name of a file in a container, bag or object; Line, Column and Field are of a
	// manifest.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	// Source is the file and line that says otherwise, as manifest-md5.txt:3.
	Source string `json:"source,omitempty"`
	// Message says in a sentence what the others do not.
	Message  string `json:"message,omitempty"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Fix      string `json:"fix,omitempty"`
	// Unreachable says that it is not the content's: something could not be asked.
	Unreachable bool `json:"unreachable,omitempty"`
}

// Location is where the fault is, for people: "line 7, column 3 (nfo:hashValue)", or a file's name;
// "" for the whole.
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

// Error is the fault in one line, with its place.
func (f Fault) Error() string {
	if at := f.Location(); at != "" {
		return at + ": " + f.Text()
	}
	return f.Text()
}

// Text is the fault in one line, without its place.
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

func newReport(what string) *Report { return (&Report{Type: what}).atMost(faults.Most) }

// atMost says how many faults are listed; 0 leaves it as it is. It is called before the first is
// added.
func (v *Report) atMost(n int) *Report {
	if n > 0 {
		v.most = n
		v.first = faults.New(n, func(a, b Fault) int { return cmp.Compare(rank(a), rank(b)) })
	}
	return v
}

// rank puts errors before warnings.
func rank(f Fault) int {
	if f.Severity == Warning {
		return 1
	}
	return 0
}

// add counts a fault, and keeps it among the first.
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

// countMore counts faults of which only the number is known.
func (v *Report) countMore(errs, warnings int64) {
	v.Errors += errs
	v.Warnings += warnings
}

// addAll counts the faults of another report, and keeps those that it has.
func (v *Report) addAll(other Report) {
	errs, warnings := v.Errors, v.Warnings
	v.addFaults(other.Faults)
	v.Errors, v.Warnings = errs+other.Errors, warnings+other.Warnings // of very many it has only the first
}

func (v *Report) addFaults(all []Fault) {
	for _, f := range all {
		v.add(f)
	}
}

// settle draws the verdict from the faults.
func (v *Report) settle() Report {
	v.Valid = v.Errors == 0
	v.Accepted = v.Valid || v.batch && !v.whole
	v.Faults = append([]Fault{}, v.first.Kept()...) // never null in JSON
	return *v
}

// Detached returns the report as whoever keeps it should have it: it holds nothing in memory but
// its own texts. size is about what it takes, in bytes.
func (v Report) Detached() (own Report, size int) {
	v.first = nil // which has the same faults
	size = 500
	v.Faults = slices.Clone(v.Faults)
	for i := range v.Faults {
		f := &v.Faults[i]
		size += 250 + len(f.Rule) + len(f.Clause) + len(f.Fix)
		for _, text := range []*string{&f.File, &f.Field, &f.Source, &f.Message, &f.Expected, &f.Found} {
			*text = strings.Clone(*text) // it may be a part of a far longer one
			size += len(*text)
		}
	}
	return v, size
}

// Refusal returns an error of type *Refusal when the payload cannot be taken, else nil.
func (v Report) Refusal() error {
	if v.Accepted {
		return nil
	}
	return &Refusal{Report: v}
}

// RefusalFor is Refusal for a collection with a profile: where that stops a batch on a bad row, one
// row that would fail condemns the manifest, too. That a row's file is not there is none of it: it
// shows when the file is fetched.
func (v Report) RefusalFor(p registry.Profile) error {
	if v.Valid || !v.Accepted || !p.StopOnBadRow {
		return v.Refusal()
	}
	return &Refusal{Report: v, Whole: true}
}

// For is the report for a collection with a profile, which may not take what others do.
func (v Report) For(p registry.Profile) Report {
	v.Accepted = v.Accepted && v.RefusalFor(p) == nil
	return v
}

// Refusal says why a payload cannot be taken. It is a content fault.
type Refusal struct {
	Report Report
	Whole  bool // only because the collection takes a batch whole or not at all
}

// AsRefusal finds the refusal in an error.
func AsRefusal(err error) (refusal *Refusal, ok bool) {
	ok = errors.As(err, &refusal)
	return refusal, ok
}

// ContentFault marks the deposit as at fault.
func (e *Refusal) ContentFault() bool { return true }

// ErrorCode is the rule that was broken first, which failures are grouped by.
func (e *Refusal) ErrorCode() string {
	for _, f := range e.Report.Faults {
		if f.Severity == Error {
			return f.Rule
		}
	}
	return ""
}

// Error names the first faults and counts the rest.
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
		fmt.Fprintf(&b, " in lines %s, and the collection takes a batch whole or not at all", e.lines())
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

// Of are the listed faults of a severity.
func (v Report) Of(s Severity) []Fault {
	return slices.DeleteFunc(slices.Clone(v.Faults), func(f Fault) bool { return f.Severity != s })
}

// lines names the first lines that have an error and counts the rest.
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
