package bagit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/bagit"
)

// sharedCases finds the public cases beside the checkout, or skips the test.
func sharedCases(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	cases := filepath.Join(filepath.Dir(dir), "shared", "cases", name)
	if _, err := os.Stat(cases); err != nil {
		t.Skipf("public cases are absent: %v", err)
	}
	return cases
}

// TestValidate_Conformance judges every public bag as a folder, a tar and a zip. The name of the
// folder that it lies in is the expected verdict.
func TestValidate_Conformance(t *testing.T) {
	bags, err := filepath.Glob(filepath.Join(sharedCases(t, "bagit"), "v*", "*", "*", "bagit.txt"))
	if err != nil || len(bags) == 0 {
		t.Fatalf("no bags: %v", err)
	}
	for _, declaration := range bags {
		bag := filepath.Dir(declaration)
		verdict := filepath.Base(filepath.Dir(bag))
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(bag)))+"/"+verdict+"/"+filepath.Base(bag), func(t *testing.T) {
			files := readFolder(t, bag)
			reports := map[string]*bagit.Report{
				"folder": validateFolder(t, bag),
				"tar":    validateTar(t, files, "top", nil),
				"zip":    validateZip(t, files, "top"),
			}
			for form, r := range reports {
				if want := verdict == "valid" || verdict == "warning"; r.Valid != want {
					t.Errorf("as %s: valid=%t, want %t: %v", form, r.Valid, want, r.Faults)
				}
				if verdict == "warning" && len(r.Warnings()) == 0 {
					t.Errorf("as %s: no warning", form)
				}
				sameFaults(t, form, r, reports["folder"])
			}
		})
	}
}
