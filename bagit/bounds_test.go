package bagit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/bagit"
)

// judgeInShares is the verdict on a bag of which little is held in memory and most octets of
// records are kept.
func judgeInShares(t *testing.T, b bag, most int64) *bagit.Report {
	t.Helper()
	v := bagit.NewValidator(bagit.Options{Form: bagit.FormFolder, MaxRecords: most})
	defer v.Close()
	v.InShares(300)
	for _, name := range b.names() {
		if err := v.Add(t.Context(), name, -1, strings.NewReader(b[name])); err != nil {
			t.Fatal(err)
		}
	}
	r, err := v.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestValidator_SharesWithinTheLimit checks that a bag judged in shares either has all of its
// records checked or is reported as over the limit.
func TestValidator_SharesWithinTheLimit(t *testing.T) {
	files := []string{"a", "A"}
	for i := range 30 {
		files = append(files, fmt.Sprint("file-", i), fmt.Sprint("content ", i))
	}
	good := newBag("0.97", files...)
	bad := newBag("0.97", files...)
	// Before 1.0 a file needs to be in one manifest only, so an entry that is lost here is missed
	// by nothing else.
	bad["manifest-sha256.txt"] = digest("sha256", "no file") + "  data/file-7\n"
	within := 0
	for most := int64(500); most < 30_000; most += 60 {
		limited := false
		r := judgeInShares(t, good, most)
		for _, f := range r.Faults {
			limited = limited || f.Rule == bagit.RuleLimit
		}
		if !limited && !r.Valid {
			t.Errorf("%d octets: a good bag: %v", most, r.Faults)
		}
		if r.Valid {
			within++
		}
		if r := judgeInShares(t, bad, most); r.Valid {
			t.Errorf("%d octets: a bag with a wrong digest is valid", most)
		}
	}
	if within == 0 {
		t.Error("the good bag was never judged whole")
	}
}

// TestValidator_Close checks that Close removes the temporary file and may be called twice.
func TestValidator_Close(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("open files are read from /proc")
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	open := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && strings.HasPrefix(to, folder) {
				n++
			}
		}
		return n
	}
	v := bagit.NewValidator(bagit.Options{})
	line := strings.Repeat("0", 32) + "  data/" + strings.Repeat("x", 4000) + "\n"
	if err := v.Add(t.Context(), "manifest-md5.txt", -1, strings.NewReader(strings.Repeat(line, 2000))); err != nil {
		t.Fatal(err)
	}
	if open() != 1 {
		t.Fatalf("%d temporary files, want one to give up", open())
	}
	for range 2 {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if open() != 0 {
		t.Error("the temporary file is still open")
	}
	if err := v.Add(t.Context(), "data/a", -1, strings.NewReader("a")); !errors.Is(err, bagit.ErrFinished) {
		t.Errorf("add: %v, want ErrFinished", err)
	}
	if r, err := v.Finish(); r != nil || !errors.Is(err, bagit.ErrFinished) {
		t.Errorf("finish: %v, %v, want ErrFinished", r, err)
	}
}
