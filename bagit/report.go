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
// recommendation, or from a rule of 1.0 that an older bag need not follow, or it will not survive
// every file system.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// sinceV1 is the severity of what 1.0 forbids and the drafts before it did not.
func sinceV1(v Version) Severity {
	if v > 0 && v < Version10 {
		return SeverityWarning
	}
	return SeverityError
}

// Fault is one thing that is wrong with a bag.
type Fault struct {
	// File is the path in the bag that the fault is about; in an archive whose base folder is not
	// known, and for what lies outside of the bag, the path in the archive. Octets that are not
	// UTF-8 are shown as %XX.
	File     string   `json:"file"`
	Rule     Rule     `json:"rule"`
	Severity Severity `json:"severity"`
	// Source is the tag file and line that says otherwise, such as "manifest-md5.txt:3".
	Source   string `json:"source,omitempty"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Clause   string `json:"clause"` // of the specification, or the field of the profile
	Fix      string `json:"fix"`    // what the maker of the bag can do
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

// String is the fault in one line.
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
	// Complete is true when the bag has all that it lists, lists all that it has and conforms to
	// its version (section 3). Valid is true when it is complete, every digest of every manifest
	// was verified, and the bag has what Options.Profile asks for, if one is given. A bag that was
	// looked at with Options.CompletenessOnly is never called valid.
	Complete bool `json:"complete"`
	Valid    bool `json:"valid"`

	Version  Version `json:"version"`           // 0 ("" in JSON) when unknown
	Encoding string  `json:"encoding"`          // of the tag files, as declared
	Base     string  `json:"base,omitempty"`    // the folder of the archive that the bag lies in, "" for none
	Profile  string  `json:"profile,omitempty"` // the identifier of Options.Profile

	Info          []Tag    `json:"info"`           // bag-info.txt in its order
	Algorithms    []string `json:"algorithms"`     // of the payload manifests, normalized
	TagAlgorithms []string `json:"tag_algorithms"` // of the tag manifests, normalized
	PayloadFiles  int64    `json:"payload_files"`  // present, without those still to be fetched
	PayloadBytes  int64    `json:"payload_bytes"`
	TagFiles      int64    `json:"tag_files"`

	// Fetch has the entries of fetch.txt whose names are safe to fill; Present says which need no
	// download.
	Fetch []FetchEntry `json:"fetch"`

	// ErrorCount and WarningCount count all faults, listed or not. NotFetched counts those of the
	// errors that are only files which fetch.txt names.
	ErrorCount   int64 `json:"errors"`
	WarningCount int64 `json:"warnings"`
	NotFetched   int64 `json:"not_fetched"`
	// Faults are the first Options.MaxFaults of them, errors first, then by file.
	Faults []Fault `json:"faults"`
}

// Errors are the listed faults that make the bag incomplete or invalid.
func (r *Report) Errors() []Fault { return r.of(SeverityError) }

// Warnings are the listed faults that leave a bag valid.
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

// Holey says that nothing but files that fetch.txt names is missing: once they are downloaded, the
// bag can be judged again. It is false for a bag with any other error, and for a valid one.
func (r *Report) Holey() bool {
	return r.ErrorCount > 0 && r.ErrorCount == r.NotFetched
}

// faultList counts all faults and keeps the first of them: errors before warnings, then by file.
type faultList struct {
	first               *faults.List[Fault]
	errors, warnings    int64
	lacking, notFetched int64 // of the errors, those by which a bag is not complete; those of RuleNotFetched
}

func newFaultList(most int) *faultList { return &faultList{first: faults.New(most, compareFaults)} }

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

// count counts n faults like f.
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

// settle draws the verdict from the faults.
func (r *Report) settle(l *faultList, completenessOnly bool) {
	r.Faults = append([]Fault{}, l.first.Kept()...) // never null in JSON
	r.ErrorCount, r.WarningCount, r.NotFetched = l.errors, l.warnings, l.notFetched
	r.Complete = l.lacking == 0
	r.Valid = l.errors == 0 && !completenessOnly
}
