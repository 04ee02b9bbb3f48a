package unpack

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// mostFaults bounds the faults that are told of one container.
	mostFaults = 100
	// searchOn is how many bytes more are unpacked, to nowhere, in the search for further faults.
	searchOn = 16 << 30
)

// Faults is what Walk returns for a container that has several faults. All are the container's own.
type Faults struct {
	// List has the first hundred, in the order in which they were met.
	List []*Error
	// More counts those that follow.
	More int
	// Cut says that the search for more of them was given up before the container's end.
	Cut bool
	// Limit says that the walk ended at a limit, which is counted, listed or not.
	Limit bool
}

// Error names the first faults and counts the rest.
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
		b.WriteString("; the rest of it was not looked at")
	}
	return b.String()
}

// ContentFault reports that the container itself is at fault.
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

// with is what a walk that ended with err has found in all. An error that is not the container's
// outranks what was found: bytes that could not be read may not be those that were deposited.
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

// errSearchedEnough ends a walk that goes on only to find further faults. It never leaves this
// package.
var errSearchedEnough = errors.New("searched enough")

// note keeps what is wrong with one entry, so that the walk can go on to find more; nothing more is
// handed out then. What makes it end at once is returned.
func (w *walker) note(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Fault == FaultLimit || e.Fault == FaultInput {
		return err
	}
	w.faults.add(e)
	return nil
}

// pass takes a sound entry behind one that is not: its bytes count, and go nowhere.
func (w *walker) pass(entry string, size int64) error {
	if w.searched += size; w.searched > searchOn {
		return errSearchedEnough
	}
	return w.spend(entry, size)
}
