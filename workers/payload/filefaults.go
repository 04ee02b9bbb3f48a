package payload

import (
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
)

// maxSourceFaults is how many files of a job may fail at their sources before the rest is left for
// later.
const maxSourceFaults = 16

// errTooManyFaults says that so many files failed that the rest was not tried.
var errTooManyFaults = errors.New("too many files could not be fetched for now")

// fileFaults collects the faults of a job's files. A producer thus learns of all of them at once,
// and a server that is unavailable for a while does not delay files of other servers.
type fileFaults struct {
	mu      sync.Mutex
	content []error
	more    int // further content faults
	system  []error
}

// add records the fault of one file and returns nil. It returns the error if it is not a fault of
// the file, or if there are too many.
func (f *fileFaults) add(err error) error {
	if err == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var away *source.Error
	switch {
	case base.ContentFault(err):
		if len(f.content) < faults.Named {
			f.content = append(f.content, err)
		} else {
			f.more++
		}
		return nil
	case errors.As(err, &away) && away.Kind != source.FaultCancelled:
		f.system = append(f.system, err)
		if len(f.system) < maxSourceFaults {
			return nil
		}
		return fmt.Errorf("%w: %w", errTooManyFaults, err)
	default:
		return err
	}
}

// addDamaged records a file whose staged bytes differ from the downloaded ones: a system fault.
func (f *fileFaults) addDamaged(file staging.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.system = append(f.system, fmt.Errorf("%s was damaged in staging and will be fetched again", file.Name))
}

// result returns the error of all files. stop is why not all of them were tried; nil if they were.
func (f *fileFaults) result(stop error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case stop != nil && !errors.Is(stop, errTooManyFaults):
		return stop // it passes, and then the producer learns of all faults
	case len(f.content) > 0:
		return faults.Join(f.content, f.more)
	case len(f.system) > 0:
		n := min(len(f.system), faults.Named)
		return faults.Join(f.system[:n], len(f.system)-n)
	default:
		return nil
	}
}
