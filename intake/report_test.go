package intake_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
)

// TestReport_RefusalFor checks that a collection that stops on a bad row takes all of a batch or
// nothing, and that the refusal names the lines.
func TestReport_RefusalFor(t *testing.T) {
	head := "#%profile | " + checkm.FileBatch.ProfileURI() + "\n"
	good, bad := "http://x/a | | | 1 | | a\n", "ftp://x/a | | | 1 | | b\n"
	for _, tt := range []struct {
		name, text string
		whole, ok  bool
		words      string
	}{
		{"good", head + good + good + "#%eof\n", false, true, ""},
		{"one bad row", head + good + bad + "#%eof\n", true, false, "in lines 3, and"},
		{"many bad rows", head + strings.Repeat(bad, 30) + "#%eof\n", true, false, "30 errors in lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 and 10 more"},
		{"cut", head + good, false, false, "truncated"},
	} {
		report, err := intake.Manifest(strings.NewReader(tt.text), registry.SingleFileBatch, intake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = report.RefusalFor(registry.Profile{StopOnBadRow: true})
		refusal, refused := intake.AsRefusal(err)
		if tt.ok == refused || refused && (refusal.Whole != tt.whole || !strings.Contains(err.Error(), tt.words)) {
			t.Errorf("%s: %v, want accepted %t, %q", tt.name, err, tt.ok, tt.words)
		}
		if err := report.RefusalFor(registry.Profile{}); tt.whole && err != nil {
			t.Errorf("%s: refused without the collection's wish: %v", tt.name, err)
		}
		if report.Rows == 0 {
			t.Errorf("%s: no rows", tt.name)
		}
	}
}
