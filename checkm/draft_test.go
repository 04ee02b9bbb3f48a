package checkm_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/checkm"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDraft: rows that are typed are judged as they are, and each fault names the line of its row.
func TestDraft(t *testing.T) {
	var text bytes.Buffer
	d := checkm.NewDraft(&text, checkm.FileBatch)
	lines := map[string]int{}
	for name, cells := range map[string][]string{
		"right":     {"https://example.org/a.png", "sha1", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "0", "", "a|b.png", "", "p 1; p 2", "Ann\nMiller", "A | B"},
		"scheme":    {"ftp://example.org/a.png"},
		"algorithm": {" https://example.org/b.png ", "sha9", "00"},
		"nothing":   {"", "", "", "", "", "name"},
		"comment":   {"#https://example.org/c.png"},
	} {
		var err error
		lines[name], err = d.Write(cells)
		must(t, err)
	}
	must(t, d.Close())
	report, err := checkm.Check(bytes.NewReader(text.Bytes()), checkm.Options{})
	must(t, err)
	if !report.Sound || report.Rows != 5 || report.Refused != 4 {
		t.Fatalf("%+v of:\n%s", report, text.String())
	}
	for _, f := range report.Faults {
		if f.Line == lines["right"] {
			t.Errorf("the right row has a fault: %v", f)
		}
		delete(lines, map[checkm.Rule]string{checkm.RuleURLScheme: "scheme", checkm.RuleAlgorithm: "algorithm"}[f.Rule])
	}
	if len(lines) != 3 {
		t.Errorf("no faults of the rule for %v: %v", lines, report.Faults)
	}
	r := checkm.NewReader(&text, checkm.Options{})
	for {
		row, _, err := r.Next()
		must(t, err)
		if row.Line != lines["right"] {
			continue
		}
		want := []string{"https://example.org/a.png", "sha1", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "0", "", "a%7cb.png", "", "p 1;p 2", "Ann Miller", "A %7c B", ""}
		if got := checkm.FileBatch.Cells(row); !slices.Equal(got, want) {
			t.Errorf("cells\n%q, want\n%q", got, want)
		}
		break
	}
	if err := checkm.NewDraft(&text, checkm.FileBatch).Close(); !errors.Is(err, checkm.ErrNoRows) {
		t.Errorf("a draft without rows: %v", err)
	}
}
