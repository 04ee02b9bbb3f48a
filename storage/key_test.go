package storage_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/storage"
)

// FuzzCheckKey: an accepted key can be taken apart at its slashes without surprises.
func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"a/b", "", "/", "..", "a/../b", "a//b", "\x00", "\xff", strings.Repeat("x", 256)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := storage.CheckKey(key)
		if keyErr := (*storage.KeyError)(nil); err != nil && !errors.As(err, &keyErr) {
			t.Fatalf("err = %v, want a KeyError", err)
		}
		bad := len(key) > storage.MaxKey || strings.Contains(key, "\x00")
		for _, part := range strings.Split(key, "/") {
			bad = bad || part == "" || part == "." || part == ".." || len(part) > storage.MaxPart
		}
		if bad != (err != nil) {
			t.Errorf("check %q = %v", key, err)
		}
	})
}
