package bagit

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// sourceReader remembers that reading itself failed, or that the context ended: what an archive
// reader makes of that must not be taken for damage of the archive.
type sourceReader struct {
	r       io.Reader
	stopped func() error
	failed  failure
}

// Read implements io.Reader.
func (s *sourceReader) Read(p []byte) (int, error) {
	if err := s.stopped(); err != nil {
		return 0, s.failed.keep(err)
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // only a bare io.EOF is a clean end
		err = s.failed.keep(err)
	}
	return n, err
}

// sourceReaderAt is the same for io.ReaderAt.
type sourceReaderAt struct {
	r       io.ReaderAt
	stopped func() error
	failed  failure
}

// ReadAt implements io.ReaderAt.
func (s *sourceReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if err := s.stopped(); err != nil {
		return 0, s.failed.keep(err)
	}
	n, err := s.r.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.failed.keep(err)
	}
	return n, err
}

// failure keeps the first error.
type failure struct {
	mu    sync.Mutex
	first error
}

func (f *failure) keep(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
	return err
}

func (f *failure) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// newGroup gives the goroutines that hash files, as many as Options say; starting one more waits
// for a free one.
func newGroup(ctx context.Context, opts Options) (*errgroup.Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers(opts))
	return g, ctx
}

// workers is how many files are hashed at a time.
func workers(opts Options) int {
	if opts.Workers > 0 {
		return opts.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// damaged reports that an archive cannot be read, as a whole or in one file.
func (v *Validator) damaged(sev Severity, file, found string) {
	v.addFault(newFault(sev, RuleArchive, file, "an archive without damage", found))
}
