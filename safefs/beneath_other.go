//go:build !linux

package safefs

import (
	"errors"
	"io/fs"
	"os"
)

// OpenBeneath is not supported here.
func OpenBeneath(*os.File, string, int) (*os.File, error) { return nil, errors.ErrUnsupported }

// LstatBeneath is not supported here.
func LstatBeneath(*os.File, string) (fs.FileInfo, error) { return nil, errors.ErrUnsupported }
