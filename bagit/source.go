package bagit

import (
	"context"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// sourceReader remembers that reading failed or that the context ended, so that neither is taken
// for damage of the archive.
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

// failure keeps the first of several errors.
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

// newGroup returns a group of goroutines that hash files, one per core. Starting one more waits for
// a free core.
func newGroup(ctx context.Context) (*errgroup.Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	return g, ctx
}

// damaged reports that an archive, or one file of it, cannot be read.
func (v *Validator) damaged(sev Severity, file, found string) {
	v.addFault(newFault(sev, RuleArchive, file, "an archive without damage", found))
}
