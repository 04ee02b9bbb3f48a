package ocfl_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
)

// cases returns the folder of public OCFL objects, which is not part of the project.
func cases(t *testing.T) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(wd, "..", "..", "shared", "cases", "ocfl")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the public OCFL objects are absent: %v", err)
	}
	return path
}

// codeInName finds the codes that the name of an object promises.
var codeInName = regexp.MustCompile(`[EW]\d\d\d`)

// TestConformance judges every public object. The name of the folder that it lies in is the
// expected verdict.
func TestConformance(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(cases(t), "*", "*-objects", "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no objects found: %v", err)
	}
	for _, folder := range folders {
		kind := filepath.Base(filepath.Dir(folder))
		t.Run(kind+"/"+filepath.Base(folder), func(t *testing.T) {
			report, err := ocfl.ValidateFS(t.Context(), os.DirFS(folder), ocfl.ValidateOptions{})
			if err != nil {
				t.Fatalf("validate: %v", err)
			}
			wantVerdict(t, report, kind, filepath.Base(folder))
			stored := storeOf(t, folder)
			again, err := ocfl.Validate(t.Context(), stored, "", ocfl.ValidateOptions{})
			if err != nil {
				t.Fatalf("validate on a store: %v", err)
			}
			wantVerdict(t, again, kind, filepath.Base(folder))
		})
	}
}

// wantVerdict compares a report with what the folder and the name of an object say.
func wantVerdict(t *testing.T, report *ocfl.Report, kind, name string) {
	t.Helper()
	codes := codeInName.FindAllString(name, -1)
	got := report.Codes()
	switch kind {
	case "good-objects":
		if len(got) > 0 {
			t.Errorf("faults = %v, want none", report.Faults)
		}
	case "warn-objects":
		slices.Sort(codes)
		if !report.Valid() || !slices.Equal(got, codes) {
			t.Errorf("codes = %v, want %v: %v", got, codes, report.Faults)
		}
	case "bad-objects":
		if report.Valid() {
			t.Errorf("valid, want one of %v", codes)
		}
		if !slices.ContainsFunc(codes, func(c string) bool { return slices.Contains(got, c) }) {
			t.Errorf("codes = %v, want one of %v: %v", got, codes, report.Faults)
		}
	default:
		t.Errorf("unknown kind %q", kind)
	}
}

// storeOf copies the files of a folder to a store.
func storeOf(t *testing.T, folder string) storage.Store {
	t.Helper()
	s, err := dir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		key := strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(folder)+"/")
		_, err = storage.Put(t.Context(), s, key, data)
		return err
	})
	if err != nil {
		t.Fatalf("copy %s: %v", folder, err)
	}
	return s
}
