package dir_test

import (
	"testing"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
)

// FuzzResume: a token from anywhere never reads anything but the prefix of an object of the store.
func FuzzResume(f *testing.F) {
	s, err := dir.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	w, err := s.Create(f.Context(), "k")
	if err != nil {
		f.Fatal(err)
	}
	if _, err := w.Write([]byte("content")); err != nil {
		f.Fatal(err)
	}
	cp, err := w.Checkpoint(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, token := range []string{cp.Token, "", "dir1.aw.x.1.1", "dir1.Li4.Li4.1.1", "dir1.a2V5.../...1"} {
		f.Add(token, cp.Size)
	}
	f.Fuzz(func(t *testing.T, token string, size int64) {
		next, err := s.Resume(t.Context(), "next", storage.Checkpoint{Token: token, Size: size})
		if err != nil {
			return
		}
		defer next.Abort()
		if size < 0 || size > 7 {
			t.Errorf("resumed %d bytes of 7", size)
		}
	})
}
