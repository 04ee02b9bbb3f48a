package open_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/open"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// TestURL: a store of either kind is opened by its address, works, and reports whether it is ready.
func TestURL(t *testing.T) {
	s3test.Setenv(t)
	for _, address := range []string{"file://" + t.TempDir(), s3test.Start(t).Address("prefix")} {
		s, err := open.URL(t.Context(), address)
		if err != nil {
			t.Fatalf("open %s: %v", address, err)
		}
		if remarks, err := s.Ready(t.Context()); err != nil || len(remarks) > 0 {
			t.Errorf("%s: ready = %q, %v", s, remarks, err)
		}
		if _, err := storage.Put(t.Context(), s, "k", []byte("content")); err != nil {
			t.Errorf("%s: put: %v", s, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", s, err)
		}
	}
	if _, err := open.URL(t.Context(), "file://"+filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: err = %v, want fs.ErrNotExist", err)
	}
	for _, address := range []string{"", "/dir", "file:", "file://host/dir", "file:///dir?x=hunter2", "ftp://hunter2@host/dir", "s3://hunter2@bucket"} {
		s, err := open.URL(t.Context(), address)
		if err == nil {
			t.Errorf("%q was opened", address)
			_ = s.Close()
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("open %q: %v, which tells a secret", address, err)
		}
	}
}
