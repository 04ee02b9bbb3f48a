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

// patience is how many files of a job may fail on their sources before the others are left for
// later.
const patience = 16

// errImpatient says that so many files could not be had that the rest was not tried.
var errImpatient = errors.New("too many files could not be fetched for now")

// troubles gathers what is wrong with a job's files: so that a producer hears of everything at
// once, and so that one server that is down for a while does not keep the others' files from
// coming.
type troubles struct {
	mu      sync.Mutex
	content []error
	more    int // content faults beside those
	trouble []error
}

// keep takes the fault of one file and returns nil; or the error, when it is not the file's own or
// patience has ended.
func (f *troubles) keep(err error) error {
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
		f.trouble = append(f.trouble, err)
		if len(f.trouble) < patience {
			return nil
		}
		return fmt.Errorf("%w: %w", errImpatient, err)
	default:
		return err
	}
}

// damaged notes a file whose staged bytes are not those that were downloaded: the system's fault.
func (f *troubles) damaged(file staging.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = append(f.trouble, fmt.Errorf("%s was damaged in staging and is fetched again", file.Name))
}

// err is what the files' faults come to. stop is why not all of them were looked at; nil when they
// were.
func (f *troubles) err(stop error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case stop != nil && !errors.Is(stop, errImpatient):
		return stop // it passes, and then the producer hears of all that is wrong
	case len(f.content) > 0:
		return faults.Join(f.content, f.more)
	case len(f.trouble) > 0:
		n := min(len(f.trouble), faults.Named)
		return faults.Join(f.trouble[:n], len(f.trouble)-n)
	default:
		return nil
	}
}
