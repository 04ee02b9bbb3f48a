package ocfl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/faults"
)

// Fault is one thing that an object does not do as the specification says.
type Fault struct {
	Code    string `json:"code"`    // E001.. for what must be, W001.. for what should be
	Path    string `json:"path"`    // the file in question, below the object's root; empty for the root
	Message string `json:"message"` // what is wrong, with the values
}

// Error says whether the fault makes the object invalid.
func (f Fault) Error() bool { return strings.HasPrefix(f.Code, "E") }

// String is the fault on one line.
func (f Fault) String() string {
	if f.Path == "" {
		return f.Code + " " + f.Message
	}
	return f.Code + " " + f.Path + ": " + f.Message
}

// Report is the outcome of a validation.
type Report struct {
	ID    string `json:"id"`    // as the inventory says; empty when it cannot be read
	Spec  string `json:"spec"`  // of the declaration
	Head  string `json:"head"`  // name of the newest version
	Files int    `json:"files"` // content files that were read
	Bytes int64  `json:"bytes"` // and their size
	// Faults are the first 1,000, errors before warnings. Count counts all.
	Faults []Fault `json:"faults"`
	Count  int64   `json:"count"`
}

// Valid says that there is no error; there may be warnings.
func (r *Report) Valid() bool { return len(r.Errors()) == 0 }

// Errors returns the faults that make the object invalid.
func (r *Report) Errors() []Fault { return onlyErrors(r.Faults) }

// Warnings returns the other faults.
func (r *Report) Warnings() []Fault {
	return slices.DeleteFunc(slices.Clone(r.Faults), Fault.Error)
}

// Codes returns the codes of all faults, sorted, each once.
func (r *Report) Codes() []string { return codesOf(r.Faults) }

func codesOf(all []Fault) []string {
	var codes []string
	for _, f := range all {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// onlyErrors returns the errors among faults.
func onlyErrors(all []Fault) []Fault {
	return slices.DeleteFunc(slices.Clone(all), func(f Fault) bool { return !f.Error() })
}

// newFaults is a list of faults that keeps errors before warnings. Which are kept does not depend
// on which goroutine came first.
func newFaults() *faults.List[Fault] {
	return faults.New(faults.Most, func(a, b Fault) int {
		if a.Error() != b.Error() {
			if a.Error() {
				return -1
			}
			return 1
		}
		return compareFaults(a, b)
	})
}

// listed are the faults that a report lists, each once, and how many there are.
func listed(l *faults.List[Fault]) ([]Fault, int64) {
	kept := sortFaults(l.Kept())
	if l.Total() > faults.Most {
		return kept, l.Total()
	}
	return kept, int64(len(kept))
}

func faultOf(code, path, format string, args ...any) Fault {
	return Fault{Code: code, Path: faults.Cut(path), Message: faults.Cut(fmt.Sprintf(format, args...))}
}

func compareFaults(a, b Fault) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
}

// sortFaults puts faults in order, each once.
func sortFaults(all []Fault) []Fault {
	all = append([]Fault{}, all...)
	slices.SortFunc(all, compareFaults)
	return slices.Compact(all)
}
