package ocfl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/faults"
)

// Fault is one departure of an object or a storage root from the specification.
type Fault struct {
	Code    string `json:"code"`    // E001 and so on for errors, W001 and so on for warnings
	Path    string `json:"path"`    // the file, below the root of the object; empty for the root
	Message string `json:"message"` // what is wrong, with the values
}

// Error reports whether the fault makes the object invalid.
func (f Fault) Error() bool { return strings.HasPrefix(f.Code, "E") }

// String returns the fault in one line.
func (f Fault) String() string {
	if f.Path == "" {
		return f.Code + " " + f.Message
	}
	return f.Code + " " + f.Path + ": " + f.Message
}

// Report is the result of a validation.
type Report struct {
	ID    string `json:"id"`    // from the inventory; empty if it cannot be read
	Spec  string `json:"spec"`  // from the declaration
	Head  string `json:"head"`  // name of the newest version
	Files int    `json:"files"` // content files that were read
	Bytes int64  `json:"bytes"` // their total size
	// Faults lists the first 1,000, errors before warnings. Count counts all.
	Faults []Fault `json:"faults"`
	Count  int64   `json:"count"`
}

// Valid reports whether there are no errors. There may be warnings.
func (r *Report) Valid() bool { return len(r.Errors()) == 0 }

// Errors returns the faults that make the object invalid.
func (r *Report) Errors() []Fault { return onlyErrors(r.Faults) }

// onlyErrors returns the errors among faults.
func onlyErrors(all []Fault) []Fault {
	return slices.DeleteFunc(slices.Clone(all), func(f Fault) bool { return !f.Error() })
}

// newFaults returns a list of faults that keeps errors before warnings. Which faults it keeps does
// not depend on the order in which they are added.
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

// listed returns the faults that a report lists, without duplicates, and the number of all faults.
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

// sortFaults returns the faults sorted, without duplicates.
func sortFaults(all []Fault) []Fault {
	all = append([]Fault{}, all...)
	slices.SortFunc(all, compareFaults)
	return slices.Compact(all)
}
