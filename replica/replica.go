// Package replica reads a file of an object from whichever storage has it right.
//
// A version lies in several storages, and only the recorded digests tell which of them has the
// right bytes. A Reader copies a file from one storage. Where reading breaks off, it goes on in
// another storage at the same byte. A caller that finds the whole wrong calls Blame and copies it
// again: from a storage that was not wrong about the file yet, else once more from one that was. A
// storage counts as damaged after two whole readings, since sound bytes can go wrong on their way.
// So writing a file again and again comes to an end.
//
// It remembers what it met, file by file and storage by storage, for as long as the Reader lives.
// It does not know what a storage is: a Source opens files. Memory holds no bytes of a file but
// those that are held back by Ahead.
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

// Errors that are told apart by errors.Is.
var (
	// ErrDamaged says that the bytes of a file are not those that were recorded.
	ErrDamaged = errors.New("the bytes are not those that were recorded")
	// ErrNowhere is how a Source says that no other storage has a file.
	ErrNowhere = errors.New("no other storage has the file")
)

// condemned is how many whole readings of a file must come to other bytes before its storage counts
// as damaged.
const condemned = 2

// Source opens files in the storages that have them.
type Source interface {
	// Open reads a file from an offset on, in a storage that is none of those in not, and names it,
	// also with an error that is that storage's alone. Such an error wraps ErrDamaged when the
	// storage has not the file, or not all of it, and storage.ErrArchived when it must be thawed
	// first. ErrNowhere when there is no other storage. An error without a storage ends the search.
	Open(ctx context.Context, f registry.File, offset int64, not []string) (body io.ReadCloser, storage string, err error)
}

// Reader reads the files of one version of an object. It is used by one goroutine.
type Reader struct {
	Source Source
	// Ahead is up to how many bytes a file is held in memory and compared before its first byte is
	// written: for writers that take nothing back. The caller compares a larger one.
	Ahead int64
	// Elsewhere, if not nil, is called when a file (by its path) is read from a storage because of
	// what was met in others.
	Elsewhere func(path, storage string, because error)

	troubles map[string]*troubles // by path
}

// troubles are what was met about one file.
type troubles struct {
	in   []trouble // in the order in which they were met
	told bool      // Elsewhere knows of them
}

// trouble is what was met about a file in one storage.
type trouble struct {
	storage string
	fault   error // the last one
	wrong   int   // whole readings that came to other bytes
	useless bool  // the file is not read there any more
}

// what says it for people.
func (t trouble) what() string {
	switch {
	case t.useless && t.wrong > 0 && errors.Is(t.fault, ErrDamaged):
		return "damaged"
	case !t.useless:
		return "other bytes when it was read once"
	case errors.Is(t.fault, storage.ErrArchived):
		return "archived"
	case errors.Is(t.fault, storage.ErrNotFound):
		return "missing"
	case errors.Is(t.fault, ErrDamaged):
		return "short"
	}
	return "not to be read"
}

// Finding is what was met about a file in one storage.
type Finding struct {
	Path    string
	Storage string
	What    string // damaged, missing, short, archived, or what else it was
}

// Findings are what was met so far: by path, those of one file in the order in which they were met.
func (r *Reader) Findings() (all []Finding) {
	for path, t := range r.troubles {
		all = append(all, t.findings(path)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (t *troubles) findings(path string) (all []Finding) {
	for _, in := range t.in {
		all = append(all, Finding{Path: path, Storage: in.storage, What: in.what()})
	}
	return all
}

// Useless returns why a file is not read in a storage any more; nil as long as it is.
func (r *Reader) Useless(path, storage string) error {
	if t := r.of(path).find(storage); t != nil && t.useless {
		return t.fault
	}
	return nil
}

// of are the troubles of a file; empty for most files.
func (r *Reader) of(path string) *troubles {
	if t := r.troubles[path]; t != nil {
		return t
	}
	return &troubles{}
}

func (t *troubles) find(storage string) *trouble {
	i := slices.IndexFunc(t.in, func(t trouble) bool { return t.storage == storage })
	if i < 0 {
		return nil
	}
	return &t.in[i]
}

// note keeps what was met about a file in a storage.
func (r *Reader) note(path, storage string, fault error, change func(*trouble)) {
	t := r.of(path)
	if t.find(storage) == nil {
		t.in = append(t.in, trouble{storage: storage})
	}
	met := t.find(storage)
	met.fault, t.told = fault, false
	change(met)
	if r.troubles == nil {
		r.troubles = map[string]*troubles{}
	}
	r.troubles[path] = t
}

// NowhereError says that a file cannot be had right from any storage. It wraps the fault that
// counts: one that may pass before storage.ErrArchived, and ErrDamaged only when nothing else was
// met.
type NowhereError struct {
	Path  string
	Found []Finding
	text  string
	fault error
}

// Error names every storage with what was met there.
func (e *NowhereError) Error() string { return e.text }

// Unwrap returns the fault that counts.
func (e *NowhereError) Unwrap() error { return e.fault }

// verdict is what was met about a file in all storages: a *NowhereError, or ErrNowhere when nothing
// was.
func (r *Reader) verdict(path string) error {
	t := r.of(path)
	if len(t.in) == 0 {
		return ErrNowhere
	}
	e := &NowhereError{Path: path, Found: t.findings(path)}
	var said []string
	for _, in := range t.in {
		said = append(said, fmt.Sprintf("in storage %q: %v", in.storage, in.fault))
		if e.fault == nil || weight(in.fault) > weight(e.fault) {
			e.fault = in.fault
		}
	}
	e.text = strings.Join(said, "; ")
	return e
}

// weight says how much a fault tells about what to do.
func weight(fault error) int {
	switch {
	case errors.Is(fault, ErrDamaged):
		return 0
	case errors.Is(fault, storage.ErrArchived):
		return 1
	}
	return 2
}

// NewDigester takes the digests that are recorded of a file.
func NewDigester(recorded map[string]string) (*fixity.Digester, error) {
	algorithms := make([]string, 0, len(recorded))
	for algorithm := range recorded {
		algorithms = append(algorithms, algorithm)
	}
	slices.Sort(algorithms)
	return fixity.NewDigester(algorithms...)
}

// Judge returns ErrDamaged when what d has seen is not a file of this size and these digests.
func Judge(d *fixity.Digester, size int64, recorded map[string]string) error {
	if got := d.Size(); got != size {
		return fmt.Errorf("%w: %d bytes came, %d are recorded", ErrDamaged, got, size)
	}
	for algorithm, got := range d.Sums() {
		if want := recorded[algorithm]; !strings.EqualFold(got, want) {
			return fmt.Errorf("%w: %s is %s, %s is recorded", ErrDamaged, algorithm, got, want)
		}
	}
	return nil
}
