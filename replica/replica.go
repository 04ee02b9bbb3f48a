// Package replica reads a file of an object from any storage that has it right.
//
// A version is in several storages, and only the recorded digests show which of them has the right
// bytes. A Reader copies a file from one storage. If reading fails, it continues with another
// storage at the same byte. A caller that finds the whole file wrong calls Blame and copies it
// again: from a storage without faults, or else once more from a faulty one. A storage counts as
// damaged after two wrong readings, since good bytes can be damaged on their way. The number of
// repeats is thus limited.
//
// A Reader remembers faults by file and storage during its life. It does not know what a storage
// is: a Source opens files. It holds no bytes of files in memory, except those of files up to
// Ahead.
package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// Errors for errors.Is.
var (
	// ErrDamaged says that the bytes of a file differ from the record.
	ErrDamaged = errors.New("the bytes differ from the record")
	// ErrNowhere is returned by a Source if no other storage has a file.
	ErrNowhere = errors.New("no other storage has the file")
)

// maxWrongReads is after how many wrong readings of a file its storage counts as damaged.
const maxWrongReads = 2

// Source opens files in the storages that have them.
type Source interface {
	// Open reads a file from an offset on, in a storage that is not listed in not. It returns the
	// storage's name, also with an error that is the storage's fault. Such an error wraps
	// ErrDamaged if the storage does not have the whole file, and storage.ErrArchived if the file
	// must be thawed first. Open returns ErrNowhere if there is no other storage. An error without
	// a storage ends the search.
	Open(ctx context.Context, f registry.File, offset int64, not []string) (body io.ReadCloser, storage string, err error)
}

// Reader reads the files of one version of an object. It must not be used concurrently.
type Reader struct {
	Source Source
	// Ahead is the size in bytes up to which a file is held in memory and compared before its first
	// byte is written: for writers that cannot take bytes back. The caller compares larger files.
	Ahead int64
	// Elsewhere, if not nil, is called when a file (by its path) is read from a storage because of
	// faults in others.
	Elsewhere func(path, storage string, because error)

	faults map[string]*fileFaults // by path
}

// fileFaults are the faults of one file.
type fileFaults struct {
	faults   []storageFault // in the order of their discovery
	reported bool           // Elsewhere was called for them
}

// storageFault describes the faults of a file in one storage.
type storageFault struct {
	storage    string
	fault      error // the last error
	wrongReads int   // readings of the whole file that gave wrong bytes
	excluded   bool  // the file is no longer read there
}

// describe describes the fault for people.
func (t storageFault) describe() string {
	switch {
	case t.excluded && t.wrongReads > 0 && errors.Is(t.fault, ErrDamaged):
		return "damaged"
	case !t.excluded:
		return "other bytes at one reading"
	case errors.Is(t.fault, storage.ErrArchived):
		return "archived"
	case errors.Is(t.fault, storage.ErrNotFound):
		return "missing"
	case errors.Is(t.fault, ErrDamaged):
		return "short"
	}
	return "unreadable"
}

// Finding describes the fault of a file in one storage.
type Finding struct {
	Path    string
	Storage string
	What    string // damaged, missing, short, archived, or another description
}

// Findings returns the faults so far, sorted by path; those of one file in the order of their
// discovery.
func (r *Reader) Findings() (all []Finding) {
	for path, t := range r.faults {
		all = append(all, t.findings(path)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (t *fileFaults) findings(path string) (all []Finding) {
	for _, in := range t.faults {
		all = append(all, Finding{Path: path, Storage: in.storage, What: in.describe()})
	}
	return all
}

// Excluded returns why a file is no longer read in a storage; nil if it is.
func (r *Reader) Excluded(path, storage string) error {
	if t := r.of(path).find(storage); t != nil && t.excluded {
		return t.fault
	}
	return nil
}

// of returns the faults of a file; none for most files.
func (r *Reader) of(path string) *fileFaults {
	if t := r.faults[path]; t != nil {
		return t
	}
	return &fileFaults{}
}

func (t *fileFaults) find(storage string) *storageFault {
	i := slices.IndexFunc(t.faults, func(t storageFault) bool { return t.storage == storage })
	if i < 0 {
		return nil
	}
	return &t.faults[i]
}

// note records a fault of a file in a storage.
func (r *Reader) note(path, storage string, fault error, change func(*storageFault)) {
	t := r.of(path)
	if t.find(storage) == nil {
		t.faults = append(t.faults, storageFault{storage: storage})
	}
	met := t.find(storage)
	met.fault, t.reported = fault, false
	change(met)
	if r.faults == nil {
		r.faults = map[string]*fileFaults{}
	}
	r.faults[path] = t
}

// NowhereError says that no storage can deliver a file right. It wraps the decisive fault: a
// temporary one before storage.ErrArchived, and ErrDamaged only if there is nothing else.
type NowhereError struct {
	Path  string
	Found []Finding
	text  string
	fault error
}

// Error names every storage with its fault.
func (e *NowhereError) Error() string { return e.text }

// Unwrap returns the decisive fault.
func (e *NowhereError) Unwrap() error { return e.fault }

// verdict returns the error for a file that no storage delivers: a *NowhereError, or ErrNowhere if
// there were no faults.
func (r *Reader) verdict(path string) error {
	t := r.of(path)
	if len(t.faults) == 0 {
		return ErrNowhere
	}
	e := &NowhereError{Path: path, Found: t.findings(path)}
	var said []string
	for _, in := range t.faults {
		said = append(said, fmt.Sprintf("in storage %q: %v", in.storage, in.fault))
		if e.fault == nil || weight(in.fault) > weight(e.fault) {
			e.fault = in.fault
		}
	}
	e.text = strings.Join(said, "; ")
	return e
}

// weight ranks faults by how much they decide what to do.
func weight(fault error) int {
	switch {
	case errors.Is(fault, ErrDamaged):
		return 0
	case errors.Is(fault, storage.ErrArchived):
		return 1
	}
	return 2
}

// NewDigester returns a digester for a file's recorded digests.
func NewDigester(recorded map[string]string) (*fixity.Digester, error) {
	algorithms := make([]string, 0, len(recorded))
	for algorithm := range recorded {
		algorithms = append(algorithms, algorithm)
	}
	slices.Sort(algorithms)
	return fixity.NewDigester(algorithms...)
}

// Judge returns ErrDamaged if the bytes that d has read differ from this size or these digests.
func Judge(d *fixity.Digester, size int64, recorded map[string]string) error {
	if got := d.Size(); got != size {
		return fmt.Errorf("%w: %d bytes read, %d are recorded", ErrDamaged, got, size)
	}
	for algorithm, got := range d.Sums() {
		if want := recorded[algorithm]; !strings.EqualFold(got, want) {
			return fmt.Errorf("%w: %s is %s, %s is recorded", ErrDamaged, algorithm, got, want)
		}
	}
	return nil
}
