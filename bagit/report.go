package bagit

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/faults"
)

// Severity says whether a Fault makes the bag invalid.
type Severity string

// An error makes the bag incomplete or invalid. A warning does not: the bag departs from a
// recommendation, or from a rule of 1.0 that is not binding for an older bag, or some file systems
// cannot hold it.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// sinceV1 returns the severity of a fault against a rule that is binding since 1.0.
func sinceV1(v Version) Severity {
	if v > 0 && v < Version10 {
		return SeverityWarning
	}
	return SeverityError
}

// Fault is one fault of a bag.
type Fault struct {
	// File is the path in the bag. It is the path in the archive if the base directory is unknown
	// or the file lies outside of the bag. Octets that are not UTF-8 are shown as %XX.
	File     string   `json:"file"`
	Rule     Rule     `json:"rule"`
	Severity Severity `json:"severity"`
	// Source is the tag file and line that contradicts, such as "manifest-md5.txt:3".
	Source   string `json:"source,omitempty"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Clause   string `json:"clause"` // of the specification, or the field of the profile
	Fix      string `json:"fix"`    // how the producer can correct it
}

func newFault(sev Severity, rule Rule, file, expected, found string) Fault {
	clause, fix := rule.describe()
	return Fault{
		File: faults.Cut(printable(faults.Cut(file))), Rule: rule, Severity: sev,
		Expected: faults.Cut(printable(faults.Cut(expected))), Found: faults.Cut(printable(faults.Cut(found))), Clause: clause, Fix: fix,
	}
}

func (f Fault) at(source string) Fault {
	f.Source = source
	return f
}

// String returns the fault in one line.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %q", f.Severity, f.Rule, f.File)
	if f.Source != "" {
		fmt.Fprintf(&b, " (%s)", f.Source)
	}
	if f.Expected != "" {
		fmt.Fprintf(&b, ": expected %q", f.Expected)
	}
	if f.Found != "" {
		fmt.Fprintf(&b, ", found %q", f.Found)
	}
	return b.String()
}

// Report is the verdict on a bag.
type Report struct {
	// Complete is true if the bag has all files that it lists, lists all files that it has, and
	// conforms to its version (section 3). Valid is true if it is also complete in its digests:
	// every digest of every manifest was verified, and Options.Profile is satisfied. With
	// Options.CompletenessOnly, Valid is always false.
	Complete bool `json:"complete"`
	Valid    bool `json:"valid"`

	Version  Version `json:"version"`           // 0 ("" in JSON) when unknown
	Encoding string  `json:"encoding"`          // of the tag files, as declared
	Base     string  `json:"base,omitempty"`    // the folder of the archive that holds the bag, "" for none
	Profile  string  `json:"profile,omitempty"` // the identifier of Options.Profile

	Info          []Tag    `json:"info"`           // bag-info.txt in its order
	Algorithms    []string `json:"algorithms"`     // of the payload manifests, normalized
	TagAlgorithms []string `json:"tag_algorithms"` // of the tag manifests, normalized
	PayloadFiles  int64    `json:"payload_files"`  // present files, without those to be fetched
	PayloadBytes  int64    `json:"payload_bytes"`
	TagFiles      int64    `json:"tag_files"`

	// Fetch has the entries of fetch.txt whose names are safe. Present marks those that need no
	// download.
	Fetch []FetchEntry `json:"fetch"`

	// ErrorCount and WarningCount count all faults, listed or not. NotFetched counts the errors
	// that are missing files listed in fetch.txt.
	ErrorCount   int64 `json:"errors"`
	WarningCount int64 `json:"warnings"`
	NotFetched   int64 `json:"not_fetched"`
	// Faults lists the first 1,000 faults, errors first, then by file.
	Faults []Fault `json:"faults"`
}

// Errors returns the listed faults that make the bag incomplete or invalid.
func (r *Report) Errors() []Fault { return r.of(SeverityError) }

// Warnings returns the listed faults of severity warning.
func (r *Report) Warnings() []Fault { return r.of(SeverityWarning) }

func (r *Report) of(s Severity) []Fault {
	var out []Fault
	for _, f := range r.Faults {
		if f.Severity == s {
			out = append(out, f)
		}
	}
	return out
}

// Holey reports whether the only errors are missing files that fetch.txt lists. Such a bag can be
// validated again after they were downloaded.
func (r *Report) Holey() bool {
	return r.ErrorCount > 0 && r.ErrorCount == r.NotFetched
}

// faultList counts all faults and keeps the first ones: errors before warnings, then by file.
type faultList struct {
	first               *faults.List[Fault]
	errors, warnings    int64
	lacking, notFetched int64 // errors that make a bag incomplete; errors of RuleNotFetched
}

func newFaultList() *faultList { return &faultList{first: faults.New(faults.Most, compareFaults)} }

func compareFaults(a, b Fault) int {
	rank := func(s Severity) int {
		if s == SeverityError {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.File, b.File),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Found, b.Found),
	)
}

func (l *faultList) add(f Fault) {
	l.first.Add(f)
	l.count(f, 1)
}

// count adds n to the count of faults with the severity and rule of f.
func (l *faultList) count(f Fault, n int64) {
	if f.Severity != SeverityError {
		l.warnings += n
		return
	}
	l.errors += n
	if f.Rule == RuleNotFetched {
		l.notFetched += n
	}
	if f.Rule != RuleDigest && f.Rule != RuleNotVerified && !f.Rule.ofProfile() {
		l.lacking += n
	}
}

// settle takes the verdict from the faults.
func (r *Report) settle(l *faultList, completenessOnly bool) {
	r.Faults = append([]Fault{}, l.first.Kept()...) // never null in JSON
	r.ErrorCount, r.WarningCount, r.NotFetched = l.errors, l.warnings, l.notFetched
	r.Complete = l.lacking == 0
	r.Valid = l.errors == 0 && !completenessOnly
}
