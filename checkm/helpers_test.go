package checkm_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
)

const (
	objectHead = "#%checkm_0.7\n" +
		"#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n" +
		"#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:mimeType\n"
	batchHead = "#%checkm_0.7\n" +
		"#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n" +
		"#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n"
	eof  = "#%eof\n"
	row1 = "https://h.test/d/a.jpg | md5 | 0b21c6d48e815dd537d42dc1cfac0111 | 12 | | a.jpg\n"
)

// object returns an object manifest of these lines.
func object(lines ...string) string { return objectHead + strings.Join(lines, "") + eof }

// batch returns a batch manifest of these lines.
func batch(lines ...string) string { return batchHead + strings.Join(lines, "") + eof }

// check checks a manifest held in text.
func check(t *testing.T, text string, opts checkm.Options) checkm.Report {
	t.Helper()
	rep, err := checkm.Check(strings.NewReader(text), opts)
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	return rep
}

// brief gives the faults as "line severity rule", which is what tests compare.
func brief(faults []checkm.Fault) []string {
	var out []string
	for _, f := range faults {
		out = append(out, fmt.Sprintf("%d %s %s", f.Line, f.Severity, f.Rule))
	}
	return out
}

// wantFaults compares the faults of a report with what is expected.
func wantFaults(t *testing.T, rep checkm.Report, want ...string) {
	t.Helper()
	if got := brief(rep.Faults); !slices.Equal(got, want) {
		t.Errorf("faults:\n got %q\nwant %q", got, want)
		for _, f := range rep.Faults {
			t.Log(f.Error())
		}
	}
}

// readAll returns the usable rows of a manifest and the error at its end.
func readAll(t *testing.T, text string, opts checkm.Options) ([]checkm.Row, error) {
	t.Helper()
	r := checkm.NewReader(strings.NewReader(text), opts)
	var rows []checkm.Row
	for {
		row, faults, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if !checkm.Refused(faults) {
			rows = append(rows, row)
		}
	}
}

// one reads the only row of a manifest and its faults.
func one(t *testing.T, text string) (checkm.Row, []checkm.Fault) {
	t.Helper()
	r := checkm.NewReader(strings.NewReader(text), checkm.Options{})
	row, faults, err := r.Next()
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the row: %v, want io.EOF", err)
	}
	return row, faults
}

// casesDir returns the folder of Merritt's own manifests, beside the module.
func casesDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			cases := filepath.Join(filepath.Dir(dir), "shared", "cases", "merritt")
			if _, err := os.Stat(cases); err != nil {
				t.Skipf("Merritt's sample manifests are absent: %v", err)
			}
			return cases
		}
	}
	t.Skip("no go.mod above the working directory")
	return ""
}
