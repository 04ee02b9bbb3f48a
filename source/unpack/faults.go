package unpack

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// mostFaults bounds the faults that are listed for one container.
	mostFaults = 100
	// searchOn is how many more bytes are unpacked, and discarded, in the search for further
	// faults.
	searchOn = 16 << 30
)

// Faults is returned by Walk for a container with several faults. All are content faults.
type Faults struct {
	// List has the first hundred, in the order in which they were found.
	List []*Error
	// More counts the others.
	More int
	// Cut says that the search ended before the end of the container.
	Cut bool
	// Limit says that the walk ended at a limit. That fault is counted, listed or not.
	Limit bool
}

// Error returns the first faults and how many follow.
func (f *Faults) Error() string {
	const shown = 5
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults", len(f.List)+f.More)
	for _, e := range f.List[:min(len(f.List), shown)] {
		b.WriteString("; " + e.Error())
	}
	if more := len(f.List) + f.More - shown; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	if f.Cut {
		b.WriteString("; the rest of it was not checked")
	}
	return b.String()
}

// ContentFault returns true: the container is at fault.
func (f *Faults) ContentFault() bool { return true }

// Unwrap returns the faults, for errors.As.
func (f *Faults) Unwrap() []error {
	errs := make([]error, len(f.List))
	for i, e := range f.List {
		errs[i] = e
	}
	return errs
}

func (f *Faults) add(e *Error) {
	if len(f.List) < mostFaults {
		f.List = append(f.List, e)
	} else {
		f.More++
	}
}

func (f *Faults) any() bool { return len(f.List) > 0 }

// with combines the faults with the error that ended the walk. An error that is not the container's
// fault takes precedence, because bytes that could not be read may differ from those deposited.
func (f *Faults) with(err error) error {
	var last *Error
	switch {
	case !f.any():
		return err
	case errors.As(err, &last) && last.ContentFault():
		f.add(last)
		f.Limit = last.Fault == FaultLimit
	case err != nil && !errors.Is(err, errSearchedEnough):
		return err
	}
	f.Cut = errors.Is(err, errSearchedEnough)
	if len(f.List) == 1 && !f.Cut {
		return f.List[0]
	}
	return f
}

// errSearchedEnough ends a walk that only searches for further faults. It never leaves this
// package.
var errSearchedEnough = errors.New("searched enough")

// record records a fault of one entry. The walk then continues only to find more faults. It returns
// errors that end the walk.
func (w *walker) record(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Fault == FaultLimit || e.Fault == FaultInput {
		return err
	}
	w.faults.add(e)
	return nil
}

// skip counts a sound entry after a faulty one. Its bytes are discarded.
func (w *walker) skip(entry string, size int64) error {
	if w.searched += size; w.searched > searchOn {
		return errSearchedEnough
	}
	return w.spend(entry, size)
}
