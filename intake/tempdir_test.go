package intake_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// TestJudge_TempDir checks that the temporary files of a large bag are made in the configured
// folder only.
func TestJudge_TempDir(t *testing.T) {
	t.Parallel()
	var bag bytes.Buffer
	bagWith("manifest-sha512.txt", func() io.Reader {
		return numbered(60_000, func(b []byte, i int) []byte { return fmt.Appendf(b, "%0128d  data/%0100d\n", i, i) })
	})(t, &bag)
	judge := func(folder string) (intake.Report, error) {
		in := unpack.FromReaderAt(bytes.NewReader(bag.Bytes()), int64(bag.Len()))
		return intake.Judge(t.Context(), in, registry.AutoType, intake.Options{TempDir: folder})
	}
	folder := t.TempDir()
	if v, err := judge(folder); err != nil || v.Errors < 60_000 {
		t.Errorf("%d errors (%v), want one for each name that is missing", v.Errors, err)
	}
	if _, err := judge(filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that there is no such folder", err)
	}
}
