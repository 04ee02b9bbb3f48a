package version

import (
	"bytes"

	"github.com/holdfast/holdfast/staging"
)

// maxSmall is the size of a small file in bytes. Our system files have a few hundred, but for the
// storage manifest, which has a line for each file of the version.
const maxSmall = 16 << 10

// smallFile keeps what is written to it in memory, and in staging once it is more than maxSmall.
type smallFile struct {
	data   bytes.Buffer
	create func() (*staging.Writer, error)
	staged *staging.Writer // nil: it is small
}

// Write implements io.Writer.
func (f *smallFile) Write(p []byte) (int, error) {
	if f.staged == nil && f.data.Len()+len(p) <= maxSmall {
		return f.data.Write(p)
	}
	if f.staged == nil {
		var err error
		if f.staged, err = f.create(); err != nil {
			return 0, err
		}
		if _, err := f.staged.Write(f.data.Bytes()); err != nil {
			return 0, err
		}
	}
	return f.staged.Write(p)
}

// close drops the staged file unless it was committed.
func (f *smallFile) close() {
	if f.staged != nil {
		_ = f.staged.Close() // nothing depends on a file that is dropped
	}
}
